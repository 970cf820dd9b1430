//! What a datagram of each kind may cost a server before its sender has shown that it receives at its address. A kind
//! that gets dearer than its line fails; a new kind needs a line.

use crate::common::counting::{allocations, bytes_in_use};
use crate::common::eventually::eventually;
use crate::common::many_clients::{GET, ManyClients, Outgoing};
use crate::edhoc::{CLIENT, SERVER, SERVER_KEY, hex};
use ebbtide::edhoc::EdhocCredentials;
use ebbtide::oscore::{Algorithm, OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, Server, Subject, Verify, get};
use ebbtide::{Response, ServerConfig};
use ebbtide_core::oscore::{MasterSecret, SecurityContext, Volatile};
use ebbtide_core::wire::{Code, Content, Message, Opt, OptionNumber, Type};
use std::ops::Range;

const OBSERVE: u16 = 6;
const OSCORE: u16 = 9;
const PATH: u16 = 11;
const Q_BLOCK1: u16 = 19;
const EDHOC: u16 = 21;
const BLOCK2: u16 = 23;
const BLOCK1: u16 = 27;
const Q_BLOCK2: u16 = 31;
const PROXY_URI: u16 = 35;
const SIZE1: u16 = 60;
const ECHO: u16 = 252;

const ROUNDS: u16 = 64;
/// With full tables, in which nothing grows any more.
const FEW_ROUNDS: u16 = 8;
/// Allocations for a hundred challenges, and bytes that leave with them for each hundred that came.
const CHALLENGE: (usize, usize) = (310, 115);
/// From here on are the addresses that fill them.
const FULL: u32 = 1 << 16;
/// Clients that ask at once.
const BATCH: usize = 200;
/// Datagrams in a round, each of another address.
const SOURCES: u32 = 16;
/// IPv4 and UDP.
const HEADERS: usize = 28;

/// The most that a datagram of a kind may cost.
struct Line {
    name: &'static str,
    datagram: Outgoing<'static>,
    /// Allocations for a hundred datagrams: less than one each is memory that grows at times.
    allocations: usize,
    /// Bytes that are held for it afterwards.
    held: isize,
    /// Bytes that leave for each hundred bytes that came, headers included.
    sent: usize,
}

const NON: Outgoing<'static> = Outgoing { kind: Type::NonConfirmable, ..GET };
const EMPTY: Outgoing<'static> = Outgoing { code: Code::EMPTY, ..GET };

const fn line(
    name: &'static str,
    datagram: Outgoing<'static>,
    [allocations, held, sent]: [usize; 3],
) -> Line {
    Line { name, datagram, allocations, held: held as isize, sent }
}

fn lines() -> Vec<Line> {
    let on = |path: &'static [(u16, &'static [u8])]| Outgoing { options: path, ..GET };
    let non = |options: &'static [(u16, &'static [u8])]| Outgoing { options, ..NON };
    let short: &[u8] = &[7; 16];
    vec![
        line("GET", on(&[(PATH, b"short")]), [10, 1, 95]),
        line("GET of a resource that is not there", on(&[(PATH, b"none")]), [10, 1, 90]),
        line("GET of a long resource", on(&[(PATH, b"long")]), [420, 1, 125]),
        line("a later block", on(&[(PATH, b"long"), (BLOCK2, &[0x16])]), [420, 1, 120]),
        line(
            "POST",
            Outgoing { code: Code::POST, payload: short, ..on(&[(PATH, b"short")]) },
            [120, 260, 70],
        ),
        line("a registration", on(&[(OBSERVE, b""), (PATH, b"short")]), [130, 230, 95]),
        line(
            "the first block of an upload",
            Outgoing {
                code: Code::PUT,
                payload: short,
                ..on(&[(PATH, b"short"), (BLOCK1, &[0x08])])
            },
            [320, 1, 80],
        ),
        line(
            "a block of RFC 9177",
            Outgoing {
                code: Code::PUT,
                payload: short,
                ..non(&[(PATH, b"short"), (Q_BLOCK1, &[0x08]), (SIZE1, &[64])])
            },
            [10, 270, 120],
        ),
        line(
            "a long resource in blocks of RFC 9177",
            non(&[(PATH, b"long"), (Q_BLOCK2, &[0x0e])]),
            [520, 270, 120],
        ),
        line(
            "missing blocks",
            non(&[(PATH, b"long"), (Q_BLOCK2, &[0x06]), (Q_BLOCK2, &[0x16])]),
            [620, 270, 110],
        ),
        line("a request for a proxy", on(&[(PROXY_URI, b"coap://192.0.2.1/x")]), [10, 1, 70]),
        line("a ping", EMPTY, [10, 1, 100]),
        line("an acknowledgement", Outgoing { kind: Type::Acknowledgement, ..EMPTY }, [10, 1, 0]),
        line("a Reset", Outgoing { kind: Type::Reset, ..EMPTY }, [10, 1, 0]),
        line("a response", Outgoing { code: Code::CONTENT, payload: short, ..NON }, [10, 1, 0]),
        // Flags, a Partial IV of one byte and `kid` (RFC 8613 section 6.1).
        line("OSCORE without a context", sealed(&[(OSCORE, b"\x09\x05x")], short), [105, 1, 120]),
        line(
            "OSCORE that is not authentic",
            sealed(&[(OSCORE, b"\x09\x05c")], short),
            [105, 1, 120],
        ),
        line("OSCORE with a malformed option", sealed(&[(OSCORE, b"\x0f")], short), [105, 1, 120]),
        replayed(),
        // From 64 unfinished handshakes on, an address has to be shown first.
        line("message 1 of EDHOC", handshake(message_1()), [420, 260, 55]),
        line("message 1 of EDHOC that is malformed", handshake(b"\xf5\x03"), [210, 260, 75]),
        line("message 3 of no handshake", handshake(MESSAGE_3), [210, 260, 55]),
        line(
            "a request with message 3 of no handshake",
            // RFC 9668: the request that OSCORE protects follows message 3.
            sealed(&[(OSCORE, b"\x09\x05x"), (EDHOC, b"")], MESSAGE_3_AND_REQUEST),
            [105, 1, 55],
        ),
    ]
}

/// An identifier of no handshake, and what could be message 3.
const MESSAGE_3: &[u8] = b"\x37\x52eighteen bytes: 18";
/// The same without an identifier, and what could be a ciphertext.
const MESSAGE_3_AND_REQUEST: &[u8] = b"\x52eighteen bytes: 18sixteen bytes 16";

/// A message to the resource of EDHOC (RFC 9528 appendix A.2).
const fn handshake(payload: &'static [u8]) -> Outgoing<'static> {
    const EDHOC: &[(u16, &[u8])] = &[(PATH, b".well-known"), (PATH, b"edhoc")];
    Outgoing { code: Code::POST, options: EDHOC, payload, ..GET }
}

/// Message 1 of RFC 9529 chapter 3, for the suite that the server has.
fn message_1() -> &'static [u8] {
    const SHARE: &str = "8af6f430ebe18d34184017a9a11bf511c8dff8f834730b96c1b7c8dbca2fc3b6";
    [&b"\xf5\x03\x02\x58\x20"[..], &hex(SHARE), b"\x37"].concat().leak()
}

const SECRET: &[u8; 16] = b"sixteen bytes 16";

const fn sealed(
    options: &'static [(u16, &'static [u8])],
    payload: &'static [u8],
) -> Outgoing<'static> {
    Outgoing { code: Code::POST, options, payload, ..GET }
}

/// An authentic request, recorded and sent again.
fn replayed() -> Line {
    let algorithm = Algorithm::AesCcm16_64_128;
    let secret = MasterSecret { secret: SECRET, salt: &[], id_context: None, algorithm };
    let mut client = SecurityContext::new(&secret, b"c", b"s", Volatile).unwrap();
    let path = [Opt { number: OptionNumber::URI_PATH, value: b"short" }];
    let content = Content { code: Code::POST, options: &path, payload: &[7; 16] };
    let buf = Box::leak(Box::new([0; 64]));
    let (outer, _) = client.protect_request(&content, buf).unwrap();
    let value: &[u8] = outer.value.as_slice().to_vec().leak();
    line(
        "OSCORE that is replayed",
        sealed(vec![(OSCORE, value)].leak(), outer.payload),
        [105, 1, 80],
    )
}

/// A server that trusts no address before it has echoed, of whose limits `change` makes some smaller.
fn serve(change: impl FnOnce(ServerConfig) -> ServerConfig) -> Server {
    let body = |_: &Call<'_>| Response::content("on");
    let long = |_: &Call<'_>| Response::content(vec![7; 5000]);
    let router = Router::new()
        .route("/short", get(body).post(body).put(body).observable(&Subject::default()))
        .route("/long", get(long));
    let contexts = OscoreContexts::new([OscoreContext::new(SECRET, b"s", b"c")]).unwrap();
    let credentials = EdhocCredentials::new(&hex(SERVER_KEY), &hex(SERVER)).unwrap();
    let credentials = credentials.peer(&hex(CLIENT), "sensor").unwrap();
    let config = ServerConfig::new().verify(Verify::All).oscore(contexts).edhoc(credentials);
    Server::with_config(router, change(config), ["127.0.0.1:0"]).unwrap()
}

/// What the datagrams of a line cost, from the address with this number on: allocations for a hundred, bytes held for
/// each, bytes sent for a hundred.
async fn measure(
    server: &Server,
    many: &mut ManyClients,
    line: &Line,
    first: u32,
    rounds: u16,
) -> (usize, isize, usize) {
    let before = server.snapshot().counters.received;
    let (mut made, mut left, mut held) = (0, 0, 0);
    for round in 0..2 * rounds {
        for n in 0..SOURCES {
            let number = first + u32::from(round) * SOURCES + n;
            many.say(number, &Outgoing { id: round, ..line.datagram });
        }
        many.flush();
        let before = (allocations(), bytes_in_use());
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        // What buffers have to grow, they have in the first half.
        if round >= rounds {
            made += allocations() - before.0;
            held += bytes_in_use() - before.1;
        }
        let mut add = |_: u32, message: &Message<'_>| left += message.as_bytes().len() + HEADERS;
        while many.hear(|_| false, &mut add) > 0 {}
    }
    let received = usize::try_from(server.snapshot().counters.received - before).unwrap();
    assert_eq!(received, 2 * usize::from(rounds) * SOURCES as usize, "{}", line.name);
    let counted = usize::from(rounds) * SOURCES as usize;
    let options: usize = line.datagram.options.iter().map(|(_, value)| value.len() + 2).sum();
    let came = received * (4 + HEADERS + options + line.datagram.payload.len());
    (100 * made / counted, held / counted as isize, 100 * left / came)
}

/// Compares what a line cost with what it may.
fn check(line: &Line, (made, held, sent): (usize, isize, usize), dearer: &mut Vec<String>) {
    let cost = format!("{}: {made} allocations, {held} bytes held, {sent} % sent", line.name);
    println!("{cost}");
    if made > line.allocations || held > line.held || sent > line.sent {
        dearer.push(cost);
    }
}

#[tokio::test]
async fn no_datagram_costs_more_than_its_line_says() {
    let mut dearer = Vec::new();
    for line in lines() {
        let server = serve(|config| config);
        let mut many = ManyClients::new(server.local_addrs()[0]);
        check(&line, measure(&server, &mut many, &line, 0, ROUNDS).await, &mut dearer);
    }
    assert!(dearer.is_empty(), "dearer than its line: {dearer:#?}");
}

/// Lets clients, each with an address of its own, ask once, and again with the Echo option if they are challenged.
async fn fill(many: &mut ManyClients, clients: Range<u32>, ask: &Outgoing<'_>) {
    for first in clients.clone().step_by(BATCH) {
        let batch = first..clients.end.min(first + BATCH as u32);
        batch.clone().for_each(|n| many.say(n, ask));
        let challenges = answers(many, batch.len()).await;
        for (n, echo) in &challenges {
            let options = [ask.options, &[(ECHO, &echo[..])]].concat();
            many.say(*n, &Outgoing { id: ask.id + 1, options: &options, ..*ask });
        }
        answers(many, challenges.len()).await;
    }
}

/// Waits for so many answers. Those who are challenged, and the values that they have to echo.
async fn answers(many: &mut ManyClients, count: usize) -> Vec<(u32, Vec<u8>)> {
    many.flush();
    let (mut heard, mut challenges) = (0, Vec::new());
    eventually(|| {
        let echo = |n: u32, message: &Message<'_>| {
            let echo = message.option(OptionNumber(ECHO));
            challenges.extend(echo.map(|echo| (n, echo.value.to_vec())));
        };
        heard += many.hear(|_| true, echo);
        heard == count
    })
    .await;
    challenges
}

/// Allocations do not show how much of a table is looked at. Those that are searched for a datagram have 1,024 places at
/// most: that of bodies that handlers take as they arrive, for a first block; those of uploads and of bodies that are
/// fetched, for one that begins while they are full, which then needs an address that has echoed.
#[tokio::test]
async fn full_tables_make_no_datagram_dearer() {
    const REMEMBERED: usize = 512;
    const OBSERVERS: usize = 256;
    let server = serve(|config| {
        config.limits(|limits| limits.remembered_messages(REMEMBERED).observers(OBSERVERS))
    });
    let mut many = ManyClients::new(server.local_addrs()[0]);
    let all = lines();
    let kind = |name| all.iter().find(|line| line.name == name).unwrap().datagram;
    fill(&mut many, FULL..FULL + 1100, &kind("the first block of an upload")).await;
    fill(&mut many, 2 * FULL..2 * FULL + 1100, &kind("GET of a long resource")).await;
    fill(&mut many, 3 * FULL..3 * FULL + 600, &kind("POST")).await;
    fill(&mut many, 4 * FULL..4 * FULL + 300, &kind("a registration")).await;
    let full = server.snapshot();
    assert_eq!((full.load.uploads, full.load.downloads), (1024, 1024));
    assert_eq!((full.remembered, full.observers), (REMEMBERED, OBSERVERS));
    let mut dearer = Vec::new();
    for (n, mut line) in lines().into_iter().enumerate() {
        // Where half of a table is taken, the address has to be shown first.
        line.allocations = line.allocations.max(CHALLENGE.0);
        line.sent = line.sent.max(CHALLENGE.1);
        let first = n as u32 * 2 * u32::from(FEW_ROUNDS) * SOURCES;
        check(&line, measure(&server, &mut many, &line, first, FEW_ROUNDS).await, &mut dearer);
    }
    assert!(dearer.is_empty(), "dearer than its line: {dearer:#?}");
}
