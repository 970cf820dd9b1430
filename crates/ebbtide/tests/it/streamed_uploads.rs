//! Bodies that a handler takes as they arrive.

use crate::common::eventually::eventually;
use crate::common::many_clients::{GET, ManyClients, Outgoing};
use ebbtide::server::{BodyStream, HandlerError, Path, Router, Server, State, Verify, put};
use ebbtide::stream::Listen;
use ebbtide::{Client, Code, Request, ServerConfig};
use ebbtide_core::wire::{
    Block, Content, Message, MessageId, Opt, OptionNumber, Token, Type, encode_uint,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;

const MAX: usize = 4 << 20;

/// What the handlers saw, and the permits without which they take nothing.
#[derive(Clone)]
struct Store {
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
    ends: Arc<Mutex<Vec<io::ErrorKind>>>,
    chunks: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
}

async fn store(
    State(store): State<Store>,
    Path(name): Path<String>,
    mut body: BodyStream,
) -> Result<Code, HandlerError> {
    if name == "forbidden" {
        return Err(HandlerError::code(Code::FORBIDDEN));
    }
    let mut whole = Vec::new();
    loop {
        store.permits.acquire().await.map_err(io::Error::other)?.forget();
        match body.next().await {
            Ok(Some(bytes)) => {
                store.chunks.fetch_add(1, Ordering::SeqCst);
                whole.extend_from_slice(&bytes);
            }
            Ok(None) => break,
            Err(error) => {
                store.ends.lock().unwrap().push(error.kind());
                return Err(error.into());
            }
        }
    }
    assert!(body.next().await?.is_none(), "the end stays the end");
    store.bodies.lock().unwrap().push(whole);
    Ok(Code::CHANGED)
}

fn serve(permits: usize) -> (Server, Store) {
    serve_with(permits, ServerConfig::new())
}

fn serve_with(permits: usize, config: ServerConfig) -> (Server, Store) {
    let store_of = Store {
        bodies: Arc::default(),
        ends: Arc::default(),
        chunks: Arc::default(),
        permits: Arc::new(Semaphore::new(permits)),
    };
    let resource = put(store).post(store).streamed().max_body(MAX);
    let router = Router::new().route("/{name}", resource).with_state(store_of.clone());
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    (server.listen(Listen::Tcp(([127, 0, 0, 1], 0).into())).unwrap(), store_of)
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n / 7 % 251) as u8).collect()
}

#[tokio::test]
async fn a_body_arrives_whole_over_udp_and_tcp_whatever_its_length() {
    let (server, store) = serve(Semaphore::MAX_PERMITS);
    let (udp, tcp) = (server.local_addrs()[0], server.listeners()[0].1);
    let client = Client::new();
    for base in [format!("coap://{udp}"), format!("coap+tcp://{tcp}")] {
        for length in [0, 1, 1024, 1025, 2048, 300_000] {
            let answer = client.put(format!("{base}/a"), body(length)).await.unwrap();
            assert_eq!(answer.code(), Code::CHANGED, "{base} {length}");
            assert!(store.bodies.lock().unwrap().pop().unwrap() == body(length), "{length}");
        }
        // What is not idempotent arrives once.
        let answer = client.post(format!("{base}/a"), body(5000)).await.unwrap();
        assert_eq!(answer.code(), Code::CHANGED);
        assert!(store.bodies.lock().unwrap().pop().unwrap() == body(5000));
    }
    assert_eq!(store.bodies.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn an_abandoned_upload_keeps_its_handler_for_the_longest_pause_only() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let store = put(move |mut body: BodyStream| {
        let tell = tell.clone();
        async move {
            let mut bytes = 0;
            let error = loop {
                match body.next().await {
                    Ok(chunk) => bytes += chunk.map_or(0, |chunk| chunk.len()),
                    Err(error) => break error,
                }
            };
            tell.send((bytes, error.kind())).unwrap();
            Code::CHANGED
        }
    });
    let resource = store.streamed().max_pause(std::time::Duration::from_secs(1));
    let server = Server::bind(Router::new().route("/x", resource), ["127.0.0.1:0"]).unwrap();
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    // The first of several blocks of 16 bytes, and nothing more.
    let head = [0x40, 3, 0, 1, 0xb1, b'x', 0xd1, 3, 0x08, 0xff];
    let block = [&head[..], &[7; 16]].concat();
    socket.send_to(&block, server.local_addrs()[0]).await.unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), told.recv()).await;
    assert_eq!(ended.unwrap().unwrap(), (16, std::io::ErrorKind::TimedOut));
}

#[tokio::test]
async fn forged_addresses_get_half_of_the_places_of_arriving_bodies_and_answered_ones_take_none() {
    let (server, _store) = serve_with(0, ServerConfig::new().verify(Verify::All));
    let mut many = ManyClients::new(server.local_addrs()[0]);
    let mut begin = async |clients: core::ops::Range<u32>, path: &str, code| {
        for first in clients.clone().step_by(32) {
            let batch = first..clients.end.min(first + 32);
            for n in batch.clone() {
                let options = [(11, path.as_bytes()), (27, &[0x08])];
                let put = Outgoing { code: Code::PUT, options: &options, payload: &[0; 16], ..GET };
                many.say(n, &put);
            }
            many.flush();
            let mut left = batch.len();
            eventually(|| {
                many.hear(
                    |_| true,
                    |n, message| {
                        assert_eq!(message.code(), code, "{path} of {n}");
                        left -= 1;
                    },
                );
                left == 0
            })
            .await;
        }
    };
    // Their handlers answer as soon as they have their turn.
    begin(0..512, "forbidden", Code::CONTINUE).await;
    begin(512..1024, "a", Code::CONTINUE).await;
    begin(1024..1056, "a", Code::UNAUTHORIZED).await;
}

#[tokio::test]
async fn a_client_waits_for_a_handler_that_takes_nothing_and_little_is_held() {
    let (server, store) = serve(0);
    let sent = AtomicU64::new(0);
    let whole = body(200_000);
    let uri = format!("coap://{}/slow", server.local_addrs()[0]);
    let client = Client::new();
    let request = Request::put(uri.as_str()).unwrap();
    let progress = |bytes| sent.store(bytes, Ordering::SeqCst);
    let uploaded = client.send_from(request, &whole[..], progress);
    let watched = async {
        // Four blocks wait for the handler, and the fifth for room.
        eventually(|| sent.load(Ordering::SeqCst) >= 4096).await;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert_eq!(sent.load(Ordering::SeqCst), 4096);
        assert_eq!(store.chunks.load(Ordering::SeqCst), 0);
        store.permits.add_permits(10);
        eventually(|| sent.load(Ordering::SeqCst) >= 14 * 1024).await;
        store.permits.add_permits(1 << 20);
    };
    let (answer, ()) = tokio::join!(uploaded, watched);
    assert_eq!(answer.unwrap().code(), Code::CHANGED);
    assert!(store.bodies.lock().unwrap().pop().unwrap() == whole);
}

#[tokio::test]
async fn an_upload_that_is_refused_or_too_long_ends_early() {
    let (server, store) = serve(Semaphore::MAX_PERMITS);
    let base = format!("coap://{}", server.local_addrs()[0]);
    let client = Client::new();
    let sent = AtomicU64::new(0);
    let request = Request::put(format!("{base}/forbidden")).unwrap();
    let progress = |bytes| sent.store(bytes, Ordering::SeqCst);
    let refused = client.send_from(request, &body(500_000)[..], progress).await.unwrap();
    assert_eq!(refused.code(), Code::FORBIDDEN);
    assert!(sent.load(Ordering::SeqCst) < 100_000, "{}", sent.load(Ordering::SeqCst));
    let long = client.put(format!("{base}/a"), body(MAX + 1)).await.unwrap();
    assert_eq!(long.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(long.options().get_uint(OptionNumber::SIZE1), Some(MAX as u32));
    assert_eq!(store.chunks.load(Ordering::SeqCst), 0, "it announced its length");
}

/// A block of a PUT, and the code that it is answered with; of a separate answer that code.
async fn block(socket: &UdpSocket, id: u16, num: u32, more: bool, payload: &[u8]) -> Code {
    let option = Block::new(num, more, 0).unwrap().to_uint();
    let mut value = [0; 4];
    let options = [
        Opt { number: OptionNumber::URI_PATH, value: b"a" },
        Opt { number: OptionNumber::BLOCK1, value: encode_uint(option, &mut value) },
    ];
    let content = Content { code: Code::PUT, options: &options, payload };
    let mut buf = [0; 128];
    let token = Token::new(&id.to_be_bytes()).unwrap();
    let length = content.encode(&mut buf, Type::Confirmable, MessageId(id), token).unwrap().len;
    socket.send(&buf[..length]).await.unwrap();
    loop {
        let length = socket.recv(&mut buf).await.unwrap();
        let message = Message::parse(&buf[..length]).unwrap();
        if message.code() != Code::EMPTY && message.token() == Some(token) {
            let answered = message.option(OptionNumber::BLOCK1).and_then(|opt| opt.as_uint());
            assert_eq!(answered, Some(option), "it says which block it answers");
            return message.code();
        }
    }
}

#[tokio::test]
async fn copies_of_blocks_are_passed_on_once_and_gaps_are_not() {
    let (server, store) = serve(Semaphore::MAX_PERMITS);
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    let chunk = |n: u8| [n; 16];
    for (id, num, expected) in [
        (1, 0, Code::CONTINUE),
        (2, 0, Code::CONTINUE),
        (3, 1, Code::CONTINUE),
        (4, 1, Code::CONTINUE),
        // Late copies of earlier ones, and one that overtook.
        (5, 0, Code::CONTINUE),
        (6, 3, Code::REQUEST_ENTITY_INCOMPLETE),
        (7, 2, Code::CONTINUE),
    ] {
        assert_eq!(block(&socket, id, num, true, &chunk(num as u8)).await, expected, "{id}");
    }
    for id in 8..11 {
        // The last one and its copies get the handler's answer.
        assert_eq!(block(&socket, id, 3, false, b"end").await, Code::CHANGED);
    }
    let bodies = store.bodies.lock().unwrap().clone();
    assert_eq!(bodies, [[&chunk(0)[..], &chunk(1), &chunk(2), b"end"].concat()]);
}

#[tokio::test]
async fn a_block_that_waits_for_its_handler_is_not_lost_while_all_places_are_taken() {
    let limited = ServerConfig::new().limits(|limits| limits.working(1));
    let (server, store) = serve_with(0, limited);
    let meter = server.meter();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    for n in 0..4 {
        assert_eq!(block(&socket, n, n.into(), true, &[n as u8; 16]).await, Code::CONTINUE);
    }
    let released = async {
        eventually(|| meter.snapshot().load.working == 2).await;
        store.permits.add_permits(10);
    };
    let (waited, ()) = tokio::join!(block(&socket, 4, 4, true, &[4; 16]), released);
    assert_eq!(waited, Code::CONTINUE);
    assert_eq!(block(&socket, 5, 5, false, b"end").await, Code::CHANGED);
    let whole = [&[0; 16][..], &[1; 16], &[2; 16], &[3; 16], &[4; 16], b"end"].concat();
    assert_eq!(*store.bodies.lock().unwrap(), [whole]);
}

#[tokio::test]
async fn one_address_gets_half_of_the_places_of_arriving_bodies_and_a_newcomer_finds_one() {
    let (server, _store) = serve(Semaphore::MAX_PERMITS);
    let many = RefCell::new(ManyClients::new(server.local_addrs()[0]));
    let heard = RefCell::new(BTreeMap::<(u32, Code), usize>::new());
    let say = |client, names: core::ops::Range<u16>| {
        for id in names {
            let name = id.to_string();
            let options = [(11, name.as_bytes()), (27, &[0x08])];
            let put = Outgoing { code: Code::PUT, id, options: &options, payload: &[0; 16], ..GET };
            many.borrow_mut().say(client, &put);
        }
        many.borrow_mut().flush();
    };
    let answers = || {
        many.borrow_mut().hear(
            |_| true,
            |n, message| *heard.borrow_mut().entry((n, message.code())).or_default() += 1,
        );
        heard.borrow().values().sum::<usize>()
    };
    for first in (0..600).step_by(50) {
        say(0, first..first + 50);
        eventually(|| answers() >= usize::from(first) + 50).await;
    }
    // One that begins anew has the place that it had.
    let options = [(11, &b"0"[..]), (27, &[0x08])];
    let anew = Outgoing { code: Code::PUT, id: 600, options: &options, payload: &[1; 16], ..GET };
    many.borrow_mut().say(0, &anew);
    say(1, 0..1);
    eventually(|| answers() >= 602).await;
    let expected = [
        ((0, Code::CONTINUE), 513),
        ((0, Code::SERVICE_UNAVAILABLE), 88),
        ((1, Code::CONTINUE), 1),
    ];
    assert_eq!(*heard.borrow(), BTreeMap::from(expected));
}

#[tokio::test]
async fn finished_bodies_take_no_share_of_those_that_arrive() {
    let (server, _store) = serve(Semaphore::MAX_PERMITS);
    let mut many = ManyClients::new(server.local_addrs()[0]);
    // Two blocks each, as many as one address may not have at once, and before the first one is forgotten.
    for first in (0..600_u16).step_by(50) {
        for (number, block, code) in [(0, 0x08, Code::CONTINUE), (1, 0x10, Code::CHANGED)] {
            for id in first..first + 50 {
                let name = id.to_string();
                let options = [(11, name.as_bytes()), (27, &[block][..])];
                let put = Outgoing { code: Code::PUT, options: &options, ..GET };
                many.say(0, &Outgoing { id: 2 * id + number, payload: &[0; 16], ..put });
            }
            many.flush();
            let mut answered = 0;
            eventually(|| {
                many.hear(
                    |_| true,
                    |_, message| {
                        assert_eq!(message.code(), code, "block {number} of {first} and more");
                        answered += 1;
                    },
                );
                answered == 50
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_client_that_begins_anew_ends_the_body_before() {
    let (server, store) = serve(Semaphore::MAX_PERMITS);
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    assert_eq!(block(&socket, 1, 1, true, &[0; 16]).await, Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(block(&socket, 2, 0, true, &[1; 16]).await, Code::CONTINUE);
    assert_eq!(block(&socket, 3, 1, true, &[1; 16]).await, Code::CONTINUE);
    assert_eq!(block(&socket, 4, 0, true, &[2; 16]).await, Code::CONTINUE);
    eventually(|| *store.ends.lock().unwrap() == [io::ErrorKind::UnexpectedEof]).await;
    assert_eq!(block(&socket, 5, 1, false, &[2; 3]).await, Code::CHANGED);
    assert_eq!(*store.bodies.lock().unwrap(), [[2; 19]]);
    // A block that is shorter than it says, and the same body once more.
    assert_eq!(block(&socket, 6, 0, true, &[2; 15]).await, Code::BAD_REQUEST);
    assert_eq!(block(&socket, 7, 0, true, &[2; 16]).await, Code::CONTINUE);
    assert_eq!(block(&socket, 8, 1, false, b"").await, Code::CHANGED);
    assert_eq!(store.bodies.lock().unwrap().len(), 2);
}
