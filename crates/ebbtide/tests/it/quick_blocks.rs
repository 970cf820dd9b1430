//! Bodies in Non-confirmable blocks (RFC 9177), both ways between our client and our server.

use crate::common::eventually::eventually;
use crate::common::relay::{Trouble, relay};
use bytes::Bytes;
use ebbtide::QBlockParameters;
use ebbtide::server::{Call, Router, Server, Verify, get, post};
use ebbtide::{
    Client, ClientConfig, Code, ErrorKind, OptionNumber, Request, Response, ServerConfig,
};
use ebbtide_core::time::Micros;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A network of milliseconds.
fn pace() -> QBlockParameters {
    QBlockParameters {
        non_timeout: Micros::from_millis(50),
        probing_rate: 1_000_000,
        ..QBlockParameters::DEFAULT
    }
}

fn config() -> ClientConfig {
    let config = ClientConfig::new().transport(|transport| transport.q_block(pace()));
    config.ack_timeout(Duration::from_millis(50)).max_retransmit(8)
}

fn server_config() -> ServerConfig {
    let config = ServerConfig::new().transport(|transport| transport.q_block(pace()));
    config.ack_timeout(Duration::from_millis(50)).max_retransmit(8)
}

fn body(length: usize) -> Bytes {
    (0..length).map(|n| (n ^ n >> 8) as u8).collect()
}

fn echo(call: &Call<'_>) -> Response {
    Response::new(Code::CHANGED).payload(Bytes::copy_from_slice(call.payload()))
}

struct Served {
    server: Server,
    address: SocketAddr,
    posts: Arc<AtomicUsize>,
}

fn serve(change: impl FnOnce(ServerConfig) -> ServerConfig) -> Served {
    let posts = Arc::new(AtomicUsize::new(0));
    let count = posts.clone();
    let router = Router::new()
        .route("/large", get(|_: &Call<'_>| Response::content(body(100_000))))
        .route("/small", get(|_: &Call<'_>| Response::content("small")).put(echo))
        .route(
            "/count",
            post(move |call: &Call<'_>| {
                count.fetch_add(1, Ordering::Relaxed);
                Response::new(Code::CHANGED).payload(call.payload().len().to_string())
            }),
        )
        .route(
            "/usual",
            // Serves blocks itself, as `ebbtide serve --dir` does.
            get(|call: &Call<'_>| {
                let asked =
                    call.message().option(OptionNumber::BLOCK2).and_then(|opt| opt.as_uint());
                let num = asked.unwrap_or(6) >> 4;
                let block = Response::content(vec![num as u8; 1024]);
                let more = u32::from(num < 2);
                let value = (num << 4 | more << 3 | 6).to_be_bytes();
                block.option(OptionNumber::BLOCK2, &value[3..])
            }),
        )
        .route(
            "/slow",
            post(|call: Call<'static>| async move {
                tokio::time::sleep(Duration::from_millis(80)).await;
                Response::new(Code::CHANGED).payload(call.payload().len().to_string())
            }),
        );
    let config = change(server_config());
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    Served { server, address, posts }
}

fn request(method: Code, to: SocketAddr, path: &str, length: usize) -> Request {
    let request = Request::new(method, format!("coap://{to}{path}")).unwrap();
    request.payload(body(length)).q_block().timeout(Duration::from_secs(60))
}

#[tokio::test]
async fn a_body_arrives_whole_in_either_direction_and_in_both() {
    // A wait is seconds, so that a busy machine is not one: nothing may wait.
    let served = serve(|_| ServerConfig::new());
    let client = Client::new();
    let at = served.address;
    let got = client.request(request(Code::GET, at, "/large", 0)).await.unwrap();
    assert_eq!((got.code(), got.body()), (Code::CONTENT, &body(100_000)));
    for length in [1, 1024, 1025, 10 * 1024, 10 * 1024 + 1, 100_000, 1 << 20] {
        let put = client.request(request(Code::PUT, at, "/small", length)).await.unwrap();
        assert_eq!((put.code(), put.body()), (Code::CHANGED, &body(length)), "{length} bytes");
    }
    let small = client.request(request(Code::GET, at, "/small", 0)).await.unwrap();
    assert_eq!(small.text(), "small");
    let missing = client.request(request(Code::GET, at, "/missing", 0)).await.unwrap();
    assert_eq!(missing.code(), Code::NOT_FOUND);
    let refused = client.request(request(Code::POST, at, "/large", 5000)).await.unwrap();
    assert_eq!(refused.code(), Code::METHOD_NOT_ALLOWED);
    let slow = client.request(request(Code::POST, at, "/slow", 5000)).await.unwrap();
    assert_eq!(slow.text(), "5000");
    let usual = client.request(request(Code::GET, at, "/usual", 0)).await.unwrap();
    let expected = [[0; 1024], [1; 1024], [2; 1024]].concat();
    assert!(usual.body() == &expected, "a handler that serves the usual blocks itself");
    assert_eq!(client.snapshot().open_exchanges(), 0);
    // Nothing was lost, so nothing had to wait: a set follows the other at once.
    assert_eq!(client.snapshot().counters.retransmissions, 0);
}

#[tokio::test]
async fn blocks_may_be_as_small_as_sixteen_bytes() {
    let served = serve(|config| config.block_size(64));
    let client = Client::with_config(config());
    let put = request(Code::PUT, served.address, "/small", 3000).block_size(16);
    assert!(client.request(put).await.unwrap().body() == &body(3000));
    // The server's are of 64 bytes, however large ours.
    let put = request(Code::PUT, served.address, "/small", 3000);
    assert!(client.request(put).await.unwrap().body() == &body(3000));
}

#[tokio::test]
async fn bodies_get_through_though_much_is_lost_and_late() {
    let served = serve(|config| config);
    let trouble = Trouble { lost: 10, repeated: 5, late: 10, damaged: 0 };
    let at = relay(served.address, trouble, 7).await;
    let client = Client::with_config(config());
    let get = client.request(request(Code::GET, at, "/large", 0));
    let put = client.request(request(Code::PUT, at, "/small", 60_000));
    let (get, put) = tokio::join!(get, put);
    assert!(get.unwrap().body() == &body(100_000));
    assert!(put.unwrap().body() == &body(60_000));
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

#[tokio::test]
async fn a_body_is_processed_once_though_every_block_comes_twice() {
    let served = serve(|config| config);
    let trouble = Trouble { repeated: 100, ..Trouble::default() };
    let at = relay(served.address, trouble, 7).await;
    let client = Client::with_config(config());
    for n in 1..=3 {
        let answer = client.request(request(Code::POST, at, "/count", 25_000)).await.unwrap();
        assert_eq!(answer.text(), "25000");
        assert_eq!(served.posts.load(Ordering::Relaxed), n);
    }
}

#[tokio::test]
async fn a_server_that_does_not_understand_gets_the_usual_blocks() {
    let served = serve(|config| config.transport(|transport| transport.q_block_supported(false)));
    let client = Client::with_config(config());
    for _ in 0..2 {
        let put = client.request(request(Code::PUT, served.address, "/small", 30_000)).await;
        assert!(put.unwrap().body() == &body(30_000));
    }
    // One refusal, which is remembered.
    assert_eq!(served.server.snapshot().counters.bad_options, 1);
}

#[tokio::test]
async fn an_address_that_may_be_forged_must_echo_before_anything_is_kept_or_sent() {
    let served = serve(|config| config.verify(Verify::All));
    let client = Client::with_config(config());
    let at = served.address;
    let put = client.request(request(Code::PUT, at, "/small", 30_000)).await.unwrap();
    assert!(put.body() == &body(30_000));
    let got = client.request(request(Code::GET, at, "/large", 0)).await.unwrap();
    assert!(got.body() == &body(100_000));
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_by_either_side() {
    let served = serve(|config| config.max_body(50_000));
    let client = Client::with_config(config().max_body(50_000));
    let put = client.request(request(Code::PUT, served.address, "/small", 50_001)).await.unwrap();
    assert_eq!(put.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    let got = client.request(request(Code::GET, served.address, "/large", 0)).await;
    let error = got.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("50000"), "{error}");
}

#[tokio::test]
async fn a_body_that_no_room_would_hold_drives_no_other_out() {
    let served = serve(|config| config.limits(|limits| limits.block_bytes(60_000)));
    let client = Client::with_config(config());
    let at = served.address;
    let kept = client.request(request(Code::PUT, at, "/small", 20_000)).await.unwrap();
    assert!(kept.body() == &body(20_000));
    let load = || {
        let load = served.server.snapshot().load;
        (load.uploads, load.downloads, load.block_bytes)
    };
    let before = load();
    assert!(before.1 == 1 && before.2 >= 20_000, "{before:?}");
    // The handler makes it again for every set.
    let got = client.request(request(Code::GET, at, "/large", 0)).await.unwrap();
    assert!(got.body() == &body(100_000));
    assert_eq!(load(), before);
    // A block takes more than its bytes: this one is shorter than all that is held, and too long.
    let put = client.request(request(Code::PUT, at, "/small", 59_000)).await.unwrap();
    assert_eq!(put.code(), Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(load(), before);
}

#[tokio::test]
async fn a_server_that_vanishes_is_given_up() {
    let served = serve(|config| config);
    let hasty = QBlockParameters { non_max_retransmit: 1, ..pace() };
    let client = Client::with_config(config().transport(|transport| transport.q_block(hasty)));
    let put = || client.request(request(Code::PUT, served.address, "/small", 30_000));
    assert!(put().await.is_ok());
    // Somebody who never answers takes its place.
    let address = served.address;
    drop(served.server);
    let mut deaf = None;
    eventually(|| {
        deaf = std::net::UdpSocket::bind(address).ok();
        deaf.is_some()
    })
    .await;
    let ask = request(Code::PUT, address, "/small", 30_000);
    let error = client.request(ask).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoResponse, "{error}");
    assert_eq!(client.snapshot().open_exchanges(), 0);
    drop(deaf);
}
