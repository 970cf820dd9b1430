//! What a datagram of each kind may cost a server of DTLS before its sender has shown that it
//! receives at its address, or has a key. A kind that gets dearer than its line fails; a new kind
//! needs a line.

use crate::common::certificates::{accept, certified, shows};
use crate::common::{CLIENT, SERVER, address, client, client_config, credentials, server};
use crate::counting::{allocations, bytes_in_use};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_dtls::{
    ClientCertificates, ClientCredentials, Config, Endpoint, Output, SessionId, Timing,
};
use std::net::SocketAddr;

/// IPv4 and UDP.
const HEADERS: usize = 28;
const ROUNDS: u32 = 4000;

/// What a hundred datagrams of a kind cost at most.
#[derive(Debug, PartialEq)]
struct Cost {
    allocations: usize,
    /// Bytes that are held for them afterwards.
    held: isize,
    /// Bytes that leave, for each hundred that came.
    sent: usize,
    signatures: u64,
}

/// A datagram from each of many addresses: a stranger's own, or one that it has recorded.
enum Sender {
    /// Each from another address.
    Forged(Vec<u8>),
    /// From the address of an established session.
    Peer(Vec<u8>),
    /// A hello with a correct cookie of 600 ports of one address, again and again.
    Replayed(Vec<Vec<u8>>),
}

fn nth(number: u32) -> SocketAddr {
    SocketAddr::from(((0x0a00_0000 + number).to_be_bytes(), 40_000))
}

fn port(number: usize) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], 10_000 + number as u16))
}

fn next(endpoint: &mut Endpoint) -> Option<Vec<u8>> {
    loop {
        match endpoint.poll_output() {
            Output::Transmit { datagram, .. } => return Some(datagram.to_vec()),
            Output::Event(_) => {}
            Output::Timeout(_) => return None,
        }
    }
}

fn deliver(now: Instant, to: &mut Endpoint, from: SocketAddr, mut datagram: Vec<u8>) {
    to.handle_datagram(now, from, &mut datagram, &mut |_, _| {});
}

/// The first hello of a client, and that with the cookie of `from`.
fn hellos(
    now: Instant,
    server: &mut Endpoint,
    from: SocketAddr,
    shown: impl Into<ClientCredentials>,
) -> [Vec<u8>; 2] {
    let mut client = client(client_config(), from.port().into());
    client.connect(now, address(SERVER), shown, Timing::default());
    let first = next(&mut client).unwrap();
    deliver(now, server, from, first.clone());
    let cookie = next(server).unwrap();
    deliver(now, &mut client, address(SERVER), cookie);
    [first, next(&mut client).unwrap()]
}

fn second([_, second]: [Vec<u8>; 2]) -> Vec<u8> {
    second
}

/// A server with keys and a certificate, an established session with it, and a record of that session.
fn prepared(now: Instant) -> (Endpoint, Endpoint, SessionId) {
    let mut server = server(Config::default(), 1);
    accept(&mut server, &certified("server"), ClientCertificates::None);
    let mut client = client(client_config(), 2);
    let session =
        client.connect(now, address(SERVER), credentials("device", b"secret"), Timing::default());
    for _ in 0..4 {
        while let Some(datagram) = next(&mut client) {
            deliver(now, &mut server, address(CLIENT), datagram);
        }
        while let Some(datagram) = next(&mut server) {
            deliver(now, &mut client, address(SERVER), datagram);
        }
    }
    (server, client, session)
}

/// What datagrams of a kind cost, once buffers have grown to what they need.
fn measure(make: impl Fn(Instant, &mut Endpoint, &mut Vec<u8>) -> Sender) -> Cost {
    let mut now = Instant::ZERO + Duration::from_secs(1000);
    let (mut server, mut client, session) = prepared(now);
    let mut record = Vec::new();
    client.send(now, session, b"request", &mut record).unwrap();
    let sender = make(now, &mut server, &mut record);
    let (mut made, mut held, mut came, mut left, mut signed) = (0, 0, 0, 0, 0);
    for round in 0..2 * ROUNDS {
        now = now + Duration::from_micros(250);
        let (from, mut datagram) = match &sender {
            Sender::Forged(datagram) => (nth(round), datagram.clone()),
            Sender::Peer(datagram) => (address(CLIENT), datagram.clone()),
            Sender::Replayed(hellos) => {
                let number = round as usize % hellos.len();
                (port(number), hellos[number].clone())
            }
        };
        let before = (allocations(), bytes_in_use(), server.counters().signatures);
        let length = datagram.len();
        server.handle_datagram(now, from, &mut datagram, &mut |_, _| {});
        let mut sent = 0;
        // As a driver does: what is due at once is done at once.
        loop {
            match server.poll_output() {
                Output::Transmit { datagram, .. } => sent += datagram.len() + HEADERS,
                Output::Event(_) => {}
                Output::Timeout(Some(due)) if due <= now => server.handle_timeout(now),
                Output::Timeout(_) => break,
            }
        }
        if round >= ROUNDS {
            made += allocations() - before.0;
            held += bytes_in_use() - before.1;
            signed += server.counters().signatures - before.2;
            came += length + HEADERS;
            left += sent;
        }
    }
    let hundreds = ROUNDS as usize / 100;
    Cost {
        allocations: made / hundreds,
        held: held / hundreds as isize,
        sent: 100 * left / came,
        signatures: signed / hundreds as u64,
    }
}

#[test]
fn no_datagram_of_dtls_costs_more_than_its_line_says() {
    type Make<'a> = &'a dyn Fn(Instant, &mut Endpoint, &mut Vec<u8>) -> Sender;
    let psk = || credentials("device", b"secret");
    let replayed = |now: Instant, server: &mut Endpoint, shown: &dyn Fn() -> ClientCredentials| {
        Sender::Replayed((0..600).map(|n| second(hellos(now, server, port(n), shown()))).collect())
    };
    let lines: [(&str, Make<'_>, [usize; 4]); 12] = [
        (
            "a hello without a cookie",
            &|now, server, _| {
                let [first, _] = hellos(now, server, port(0), psk());
                Sender::Forged(first)
            },
            [300, 0, 65, 0],
        ),
        (
            "a hello with the cookie of another address",
            &|now, server, _| {
                let [_, second] = hellos(now, server, port(0), psk());
                Sender::Forged(second)
            },
            [300, 0, 58, 0],
        ),
        (
            "a hello that is replayed, keys",
            &|now, server, _| replayed(now, server, &|| psk().into()),
            [5, 5, 5, 0],
        ),
        (
            "a hello that is replayed, certificates",
            &|now, server, _| replayed(now, server, &|| shows(None).into()),
            [50, 4500, 10, 1],
        ),
        (
            "a part of a hello",
            &|now, server, _| {
                let [first, _] = hellos(now, server, port(0), psk());
                Sender::Forged(part_of(&first))
            },
            [0; 4],
        ),
        ("a record from another address", &|_, _, record| Sender::Forged(record.clone()), [0; 4]),
        (
            "a record that is no one's",
            &|_, _, record| {
                record[0] = 23;
                Sender::Forged(record.clone())
            },
            [0; 4],
        ),
        (
            // A second has 1,024 answers to such.
            "a record with another connection ID",
            &|_, _, record| {
                record[11] ^= 1;
                Sender::Forged(record.clone())
            },
            [30, 0, 20, 0],
        ),
        (
            "a record that is not authentic",
            &|_, _, record| {
                *record.last_mut().unwrap() ^= 1;
                Sender::Peer(record.clone())
            },
            [0; 4],
        ),
        (
            "a record that is replayed",
            &|now, server, record| {
                deliver(now, server, address(CLIENT), record.clone());
                Sender::Peer(record.clone())
            },
            [0; 4],
        ),
        (
            "an alert without protection",
            &|_, _, _| Sender::Peer(vec![21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40]),
            [0; 4],
        ),
        ("what is no record", &|_, _, _| Sender::Forged(vec![7; 50]), [0; 4]),
    ];
    let mut dearer = Vec::new();
    for (name, make, [allocations, held, sent, signatures]) in lines {
        let (held, signatures) = (held as isize, signatures as u64);
        let cost = measure(make);
        println!("{name}: {cost:?}");
        if cost.allocations > allocations
            || cost.held > held
            || cost.sent > sent
            || cost.signatures > signatures
        {
            dearer.push(format!("{name}: {cost:?}"));
        }
    }
    assert!(dearer.is_empty(), "dearer than its line: {dearer:#?}");
}

/// The first fragment of a hello in a record of its own (RFC 6347 section 4.2.3).
fn part_of(hello: &[u8]) -> Vec<u8> {
    const LENGTH: usize = 20;
    let mut part = hello[..13 + 12 + LENGTH].to_vec();
    part[12] = 12 + LENGTH as u8;
    part[11] = 0;
    part[13 + 9..13 + 12].copy_from_slice(&[0, 0, LENGTH as u8]);
    part
}
