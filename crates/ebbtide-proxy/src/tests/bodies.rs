//! Long bodies of HTTP clients, which pass through block by block.

use super::http::{exchange, gateway, request, status};
use super::{Through, config, serve};
use ebbtide::server::{BodyStream, Call, HandlerError, Router, State, get, put};
use ebbtide::{Client, Code, OptionNumber, Response};
use ebbtide_core::wire::{Block, Content, Message, Opt, Type};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::sync::Semaphore;

const LONG: usize = 300_000;

/// Waits for a condition; a test whose condition never comes is ended from outside.
async fn eventually(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn bytes(length: usize) -> String {
    (0..length).map(|n| char::from(b'a' + (n / 7 % 26) as u8)).collect()
}

/// The data of a chunked body, and whether it has its end.
fn chunks(answer: &str) -> (String, bool) {
    let (_, mut rest) = answer.split_once("\r\n\r\n").unwrap();
    let mut data = String::new();
    while let Some((length, body)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return (data, true);
        }
        data.push_str(&body[..length]);
        rest = &body[length + 2..];
    }
    (data, false)
}

/// The bodies that the device received, and the permits without which it takes no block.
#[derive(Clone)]
struct Store {
    bodies: Arc<Mutex<Vec<usize>>>,
    received: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
}

async fn store(State(store): State<Store>, mut body: BodyStream) -> Result<Code, HandlerError> {
    let mut length = 0;
    loop {
        store.permits.acquire().await.map_err(std::io::Error::other)?.forget();
        let Some(bytes) = body.next().await? else { break };
        length += bytes.len();
        store.received.store(length, Ordering::SeqCst);
    }
    store.bodies.lock().unwrap().push(length);
    Ok(Code::CHANGED)
}

fn device(permits: usize) -> (SocketAddr, Store) {
    let store_of = Store {
        bodies: Arc::default(),
        received: Arc::default(),
        permits: Arc::new(Semaphore::new(permits)),
    };
    let firmware = put(store).streamed().max_body(4 << 20);
    let router = Router::new().route("/firmware", firmware).route("/", get(|| async { "here" }));
    (serve(router.with_state(store_of.clone())), store_of)
}

fn upload(device: SocketAddr, length: usize) -> String {
    let uri = format!("coap://{device}/firmware");
    format!("PUT /hc/{uri} HTTP/1.1\r\nHost: g\r\nContent-Length: {length}\r\n\r\n")
}

#[tokio::test]
async fn a_long_body_of_a_device_goes_on_block_by_block_and_its_beginning_is_shared() {
    let body = bytes(LONG);
    let sent = body.clone();
    let read = move |_: &Call<'_>| Response::content(sent.clone()).etag(&[7]).max_age(9);
    let device = serve(Router::new().route("/log", get(read)));
    let (_, gateway) = gateway(config()).await;
    let uri = format!("coap://{device}/log");
    let rest = "\r\n";
    let (first, second) =
        tokio::join!(request(gateway, "GET", &uri, rest), request(gateway, "GET", &uri, rest));
    for answer in [first, second] {
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:.300}");
        assert!(answer.contains("etag: \"07\"\r\n"), "{answer:.300}");
        assert_eq!(chunks(&answer), (body.clone(), true));
    }
    let known = request(gateway, "GET", &uri, "If-None-Match: \"07\"\r\n\r\n").await;
    assert_eq!(status(&known), "304");
    assert_eq!(status(&request(gateway, "HEAD", &uri, rest).await), "200");
    let old = exchange(gateway, &format!("GET /hc/{uri} HTTP/1.0\r\n\r\n")).await;
    assert!(old.contains("content-length: 300000\r\n") && old.ends_with(&body), "{old:.300}");
}

/// A device whose body has another ETag from the block with this number on.
async fn changing_device(changed: u32) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut request = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut request).await {
            let request = Message::parse(&request[..length]).unwrap();
            let wanted = request.option(OptionNumber::BLOCK2);
            let wanted = wanted.map_or(0, |option| Block::from_option(&option).unwrap().num());
            let block = Block::new(wanted, true, 6).unwrap().to_uint().to_be_bytes();
            let etag = [u8::from(wanted >= changed)];
            let options = [
                Opt { number: OptionNumber::ETAG, value: &etag },
                Opt { number: OptionNumber::BLOCK2, value: &block[1..] },
            ];
            let content =
                Content { code: Code::CONTENT, options: &options, payload: &[b'x'; 1024] };
            let (mut answer, token) = ([0; 2048], request.token().unwrap());
            let kind = Type::Acknowledgement;
            let encoded = content.encode(&mut answer, kind, request.message_id(), token).unwrap();
            socket.send_to(&answer[..encoded.len], from).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn a_body_that_changes_meanwhile_has_no_end() {
    let (_, gateway) = gateway(config()).await;
    let short = format!("coap://{}/log", changing_device(10).await);
    assert_eq!(status(&request(gateway, "GET", &short, "\r\n").await), "502");
    let long = format!("coap://{}/log", changing_device(40).await);
    let answer = request(gateway, "GET", &long, "\r\n").await;
    assert_eq!(chunks(&answer), ("x".repeat(40 << 10), false));
    // Without chunks the end of the connection would be that of the body (RFC 9112 section 6.3).
    let old = format!("GET /hc/{long} HTTP/1.0\r\n\r\n");
    assert_eq!(status(&exchange(gateway, &old).await), "502");
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_blocks_and_leaves_its_device_free() {
    let read = |_: &Call<'_>| Response::content(bytes(1 << 20));
    let router = Router::new().route("/log", get(read)).route("/", get(|| async { "here" }));
    let device = serve(router);
    let (gateway, _) = gateway(config()).await;
    let listener = TcpSocket::new_v4().unwrap();
    listener.set_send_buffer_size(8 << 10).unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.listen(8).unwrap();
    let (address, served) = (listener.local_addr().unwrap(), gateway.clone());
    tokio::spawn(async move { served.serve_http(listener).await });
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 << 10).unwrap();
    let mut slow = socket.connect(address).await.unwrap();
    let get = format!("GET /hc/coap://{device}/log HTTP/1.1\r\nHost: g\r\n\r\n");
    slow.write_all(get.as_bytes()).await.unwrap();
    let mut head = [0; 15];
    slow.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    // The device has one place, and is asked many times.
    for _ in 0..20 {
        let uri = format!("coap://{device}/");
        let other = request(address, "GET", &uri, "Cache-Control: no-cache\r\n\r\n").await;
        assert!(other.ends_with("here"), "{other}");
    }
    let following = Arc::strong_count(&gateway.inner.upstream);
    drop(slow);
    eventually(|| Arc::strong_count(&gateway.inner.upstream) < following).await;
}

#[tokio::test]
async fn a_long_body_of_a_client_is_taken_as_fast_as_the_device_takes_it() {
    let (device, store) = device(0);
    let (_, gateway) = gateway(config()).await;
    let mut stream = TcpStream::connect(gateway).await.unwrap();
    stream.write_all(upload(device, LONG).as_bytes()).await.unwrap();
    let sent = bytes(LONG);
    stream.write_all(sent.as_bytes()).await.unwrap();
    // It takes ten blocks, so that the others wait.
    store.permits.add_permits(10);
    eventually(|| store.received.load(Ordering::SeqCst) == 10 * 1024).await;
    assert!(store.bodies.lock().unwrap().is_empty());
    let second = exchange(gateway, &format!("{}{sent}", upload(device, LONG))).await;
    assert!(status(&second) == "503" && second.contains("retry-after: "), "{second}");
    store.permits.add_permits(LONG);
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 204");
    assert_eq!(*store.bodies.lock().unwrap(), [LONG]);
}

#[tokio::test]
async fn a_body_in_blocks_waits_until_the_one_before_it_is_complete() {
    const SHORT: usize = 20_000;
    let (device, store) = device(0);
    let (gateway, address) = gateway(config()).await;
    let through = Through { client: Client::new(), proxy: serve(gateway.router()) };
    gateway.inner.upstream.timeline.watch();
    let first = format!("{}{}", upload(device, LONG), bytes(LONG));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(first.as_bytes()).await.unwrap();
    store.permits.add_permits(10);
    eventually(|| store.received.load(Ordering::SeqCst) == 10 * 1024).await;
    let put = through.put(&format!("coap://{device}/firmware")).payload(bytes(SHORT));
    let (uri, fields) = (format!("coap://{device}/firmware"), format!("Content-Length: {SHORT}"));
    let short = format!("{fields}\r\n\r\n{}", bytes(SHORT));
    let released = async {
        // Both have been received by the gateway.
        eventually(|| gateway.inner.upstream.uploads.waiting() == 2).await;
        store.permits.add_permits(2 * LONG);
    };
    let (http, coap, ()) =
        tokio::join!(request(address, "PUT", &uri, &short), through.send(put), released);
    assert_eq!((status(&http), coap.code()), ("204", Code::CHANGED));
    assert_eq!(*store.bodies.lock().unwrap(), [LONG, SHORT, SHORT]);
    let latest = gateway.inner.upstream.timeline.latest();
    // An explorer sees when the first block was sent.
    assert!(latest[0].answer == "2.04" && latest[0].took > Duration::ZERO, "{latest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_body_whose_client_trickles_it_does_not_keep_its_resource() {
    let (device, _store) = device(usize::MAX >> 4);
    let (gateway, address) = gateway(config()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let begun = format!("{}{}", upload(device, LONG), bytes(40 << 10));
    stream.write_all(begun.as_bytes()).await.unwrap();
    let began = crate::system::now();
    let mut answer = [0; 12];
    loop {
        // Enough for a block in each of the times that a pause may last.
        stream.write_all(&[b'x'; 1024]).await.unwrap();
        let answered = stream.read_exact(&mut answer);
        if tokio::time::timeout(Duration::from_secs(20), answered).await.is_ok() {
            break;
        }
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(gateway.inner.upstream.uploads.count(), 0);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_long_body() {
    let (device, store) = device(10);
    let (gateway, address) = gateway(config()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(upload(device, LONG).as_bytes()).await.unwrap();
    stream.write_all(bytes(LONG / 2).as_bytes()).await.unwrap();
    eventually(|| store.received.load(Ordering::SeqCst) == 10 * 1024).await;
    assert_eq!(gateway.inner.upstream.uploads.count(), 1);
    drop(stream);
    // It is noticed when the device wants more.
    store.permits.add_permits(LONG);
    eventually(|| gateway.inner.upstream.uploads.count() == 0).await;
    assert!(store.bodies.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_long_body_that_is_too_long_or_not_wanted_is_refused_before_its_end() {
    let (device, store) = device(usize::MAX >> 4);
    let (_, gateway) = gateway(config().max_body(LONG)).await;
    let uri = format!("coap://{device}/firmware");
    let chunk = format!("{:x}\r\n{}\r\n", LONG / 2 + 1, bytes(LONG / 2 + 1));
    let endless = format!("Transfer-Encoding: chunked\r\n\r\n{chunk}{chunk}");
    assert_eq!(status(&request(gateway, "PUT", &uri, &endless).await), "413");
    let announced = format!("Content-Length: {LONG}\r\n\r\n{}", bytes(LONG));
    let absent = format!("coap://{device}/absent");
    assert_eq!(status(&request(gateway, "PUT", &absent, &announced).await), "404");
    assert_eq!(status(&request(gateway, "GET", &uri, &announced).await), "400");
    assert!(store.bodies.lock().unwrap().is_empty());
}
