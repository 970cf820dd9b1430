//! OSCORE (RFC 8613) between a client and a server: bodies in blocks, observations, loss, restarts,
//! and what is refused.

use crate::common::errors::source;
use crate::common::relay::{Trouble, relay};
use ebbtide::oscore::{Algorithm, ContextError, OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, Server, Subject, get, post, put};
use ebbtide::stream::Listen;
use ebbtide::{Client, ClientConfig, Error, OscoreFailure, Request, Response, ServerConfig};
use ebbtide_core::wire::{Code, Message};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;

const SECRET: &[u8; 16] = b"sixteen bytes 16";

fn of_client(secret: &[u8]) -> OscoreContext {
    OscoreContext::new(secret, b"c", b"s")
}

fn of_server() -> OscoreContext {
    OscoreContext::new(SECRET, b"s", b"c").name("lamp")
}

fn contexts(context: OscoreContext) -> OscoreContexts {
    OscoreContexts::new([context]).unwrap()
}

/// A client of a network of milliseconds.
fn config(context: OscoreContext) -> ClientConfig {
    let config = ClientConfig::new().oscore(contexts(context)).nstart(4);
    config.ack_timeout(Duration::from_millis(100)).max_retransmit(8)
}

/// A server of the same network.
fn server_config(context: OscoreContext) -> ServerConfig {
    let config = ServerConfig::new().oscore(contexts(context)).nstart(4);
    config.ack_timeout(Duration::from_millis(100)).max_retransmit(8)
}

fn router(subject: &Subject, count: &Arc<AtomicUsize>) -> Router {
    let (state, count) = (subject.clone(), count.clone());
    let posted = move |_: &Call<'_>| {
        Response::new(Code::CHANGED).payload(count.fetch_add(1, Ordering::SeqCst).to_string())
    };
    let who = |call: &Call<'_>| {
        Response::content(call.identity().map_or_else(|| "nobody".into(), <[u8]>::to_vec))
    };
    Router::new()
        .route("/who", get(who))
        .route("/count", post(posted))
        .route("/long", get(|_: &Call<'_>| Response::content("x".repeat(20_000))))
        .route(
            "/echo",
            put(|call: &Call<'_>| Response::new(Code::CHANGED).payload(call.payload().to_vec())),
        )
        .route(
            "/slow",
            get(|| async {
                tokio::time::sleep(Duration::from_millis(120)).await;
                "slow"
            }),
        )
        .route("/state", get(|_: &Call<'_>| Response::content("state")).observable(&state))
}

fn serve_with(config: ServerConfig) -> (SocketAddr, Subject, Arc<AtomicUsize>) {
    let (subject, count) = (Subject::default(), Arc::default());
    let server = Server::with_config(router(&subject, &count), config, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    tokio::spawn(server.run());
    (address, subject, count)
}

#[tokio::test]
async fn a_handler_knows_the_client_and_a_client_without_a_key_is_nobody() {
    let (at, ..) = serve_with(server_config(of_server()));
    let who = format!("coap://{at}/who");
    let client = Client::with_config(config(of_client(SECRET)));
    for _ in 0..3 {
        assert_eq!(client.get(who.as_str()).await.unwrap().text(), "lamp");
    }
    assert_eq!(Client::new().get(who.as_str()).await.unwrap().text(), "nobody");
    let missing = client.get(format!("coap://{at}/nothing").as_str()).await.unwrap();
    assert_eq!(missing.code(), Code::NOT_FOUND, "an error is protected as well");
}

#[tokio::test]
async fn bodies_in_blocks_slow_answers_and_observations_are_protected_through_loss() {
    for (lost, algorithm) in [(0, Algorithm::AesGcm128), (10, Algorithm::AesCcm16_64_128)] {
        let (at, subject, count) = serve_with(server_config(of_server().algorithm(algorithm)));
        let trouble = Trouble { lost, repeated: lost, late: lost, damaged: 0 };
        let at = relay(at, trouble, 8613).await;
        let client = Client::with_config(config(of_client(SECRET).algorithm(algorithm)));
        let uri = |path: &str| format!("coap://{at}{path}");
        assert_eq!(client.get(uri("/long").as_str()).await.unwrap().body().len(), 20_000);
        let body = "y".repeat(20_000);
        let request = Request::put(uri("/echo").as_str()).unwrap().payload(body.clone());
        assert_eq!(client.request(request).await.unwrap().text(), body);
        assert_eq!(client.get(uri("/slow").as_str()).await.unwrap().text(), "slow");
        for n in 0..10 {
            let counted = client.post(uri("/count").as_str(), "").await.unwrap();
            assert_eq!(counted.text(), n.to_string(), "each one is processed once");
        }
        assert_eq!(count.load(Ordering::SeqCst), 10);
        let mut states = client.observe(uri("/state").as_str()).await.unwrap();
        for _ in 0..5 {
            let state = tokio::time::timeout(Duration::from_secs(20), states.next()).await;
            assert_eq!(state.unwrap().unwrap().unwrap().text(), "state");
            subject.changed();
        }
        states.cancel().await.unwrap();
    }
}

/// The context with its state in `folder`, once what used it before is gone: a driver ends with its task.
async fn kept(context: &OscoreContext, folder: &Path, name: &str) -> OscoreContext {
    let context = || context.clone().state_file(folder.join(name));
    let free = async {
        while matches!(OscoreContexts::new([context()]), Err(ContextError::State { .. })) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), free).await.unwrap();
    context()
}

#[tokio::test]
async fn contexts_go_on_after_restarts_of_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let (subject, count) = (Subject::default(), Arc::default());
        let serving = server_config(kept(&of_server(), folder.path(), "server").await);
        let server =
            Server::with_config(router(&subject, &count), serving, ["127.0.0.1:0"]).unwrap();
        let at = server.local_addrs()[0];
        let handle = server.handle();
        let running = tokio::spawn(server.run());
        for _ in 0..2 {
            let client = Client::with_config(config(
                kept(&of_client(SECRET), folder.path(), "client").await,
            ));
            let busy = of_client(SECRET).state_file(folder.path().join("client"));
            let busy = OscoreContexts::new([busy]);
            assert!(matches!(busy, Err(ContextError::State { .. })), "one program at a time");
            let counted = client.post(format!("coap://{at}/count").as_str(), "").await.unwrap();
            assert_eq!(counted.code(), Code::CHANGED, "round {round}");
        }
        assert_eq!(count.load(Ordering::SeqCst), 2, "a challenged request is processed once");
        handle.close();
        drop((handle, running.await));
    }
}

/// A relay that keeps the first datagram of a client.
async fn captured(client: &Client, server: SocketAddr, path: &str) -> (Vec<u8>, Response) {
    let (front, back) = (
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
    );
    let at = front.local_addr().unwrap();
    back.connect(server).await.unwrap();
    let relayed = tokio::spawn(async move {
        let mut buf = [0; 2048];
        let (len, client) = front.recv_from(&mut buf).await.unwrap();
        let captured = buf[..len].to_vec();
        back.send(&captured).await.unwrap();
        let len = back.recv(&mut buf).await.unwrap();
        front.send_to(&buf[..len], client).await.unwrap();
        captured
    });
    let response =
        client.post(format!("coap://{at}{path}").as_str(), "a readable body").await.unwrap();
    (relayed.await.unwrap(), response)
}

#[tokio::test]
async fn a_captured_request_shows_nothing_and_is_refused_when_it_is_replayed() {
    let (at, _, count) = serve_with(server_config(of_server()));
    let client = Client::with_config(config(of_client(SECRET)));
    let (datagram, response) = captured(&client, at, "/count").await;
    assert_eq!(response.text(), "0");
    for text in ["count", "a readable body"] {
        assert!(!datagram.windows(text.len()).any(|part| part == text.as_bytes()), "{text}");
    }
    // Another address and another message ID: only the replay window knows the request.
    let thief = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut copy = datagram;
    copy[2] ^= 0x55;
    thief.send_to(&copy, at).await.unwrap();
    let mut buf = [0; 256];
    let len = thief.recv(&mut buf).await.unwrap();
    let refused = Message::parse(&buf[..len]).unwrap();
    assert_eq!((refused.code(), refused.payload()), (Code::UNAUTHORIZED, &b"Replay detected"[..]));
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_client_says_why_it_got_no_protected_answer() {
    let (at, ..) = serve_with(server_config(of_server()).oscore_required(true));
    let uri = format!("coap://{at}/who");
    let reason = |error: Error| source(&error).unwrap_or_else(|| panic!("{error}"));
    let wrong_key = Client::with_config(config(of_client(b"another secret")));
    let refused = reason(wrong_key.get(uri.as_str()).await.unwrap_err());
    let expected =
        OscoreFailure::Refused { code: Code::BAD_REQUEST, diagnostic: "Decryption failed".into() };
    assert_eq!(refused, expected);
    let unknown = Client::with_config(config(OscoreContext::new(SECRET, b"x", b"s")));
    let refused = reason(unknown.get(uri.as_str()).await.unwrap_err());
    assert!(matches!(refused, OscoreFailure::Refused { code: Code::UNAUTHORIZED, .. }));
    let of_another = Client::with_config(config(of_client(SECRET).server("192.0.2.7", None)));
    assert_eq!(reason(of_another.get(uri.as_str()).await.unwrap_err()), OscoreFailure::NoContext);
    let plain = Client::new().get(uri.as_str()).await.unwrap();
    assert_eq!(plain.code(), Code::UNAUTHORIZED, "the server requires OSCORE");
    let answered =
        Client::with_config(config(of_client(SECRET).server("127.0.0.1", Some(at.port()))));
    assert_eq!(answered.get(uri.as_str()).await.unwrap().text(), "lamp");
}

#[tokio::test]
async fn a_server_without_contexts_answers_bad_option() {
    let (subject, count) = (Subject::default(), Arc::default());
    let server = Server::bind(router(&subject, &count), ["127.0.0.1:0"]).unwrap();
    let at = server.local_addrs()[0];
    tokio::spawn(server.run());
    let client = Client::with_config(config(of_client(SECRET)));
    let error = client.get(format!("coap://{at}/who").as_str()).await.unwrap_err();
    let Some(OscoreFailure::Refused { code, .. }) = source(&error) else { panic!("{error}") };
    assert_eq!(code, Code::BAD_OPTION);
}

#[tokio::test]
async fn a_busy_client_is_served_however_few_requests_are_remembered() {
    let server = server_config(of_server()).limits(|limits| limits.remembered_messages(8));
    let (at, _, count) = serve_with(server);
    let client = Client::with_config(config(of_client(SECRET)));
    for n in 0..40 {
        let counted = client.post(format!("coap://{at}/count").as_str(), "").await.unwrap();
        assert_eq!((counted.code(), counted.text()), (Code::CHANGED, n.to_string().into()));
    }
    assert_eq!(count.load(Ordering::SeqCst), 40);
}

#[tokio::test]
async fn forged_requests_take_no_place_of_those_that_are_remembered() {
    let server = server_config(of_server()).limits(|limits| limits.remembered_messages(8));
    let (at, ..) = serve_with(server);
    let thief = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    thief.connect(at).await.unwrap();
    let mut buf = [0; 256];
    for id in 0..50_u8 {
        // A POST with an OSCORE option: Partial IV 5, kid `c`; and a ciphertext that is none.
        let forged = [0x40, 2, 0, id, 0x93, 0x09, 5, b'c', 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        thief.send(&forged).await.unwrap();
        let len = thief.recv(&mut buf).await.unwrap();
        let refused = Message::parse(&buf[..len]).unwrap();
        assert_eq!(
            (refused.code(), refused.payload()),
            (Code::BAD_REQUEST, &b"Decryption failed"[..])
        );
    }
    let plain = Client::new();
    let posted = plain.post(format!("coap://{at}/count").as_str(), "").await.unwrap();
    assert_eq!(posted.code(), Code::CHANGED, "there is room to remember it");
}

#[tokio::test]
async fn a_server_that_requires_oscore_serves_nobody_without_it_over_connections() {
    let (subject, count) = (Subject::default(), Arc::default());
    let config = server_config(of_server()).oscore_required(true);
    let server = Server::with_config(router(&subject, &count), config, Vec::<SocketAddr>::new());
    let server = server.unwrap().listen(Listen::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let at = server.listeners()[0].1;
    tokio::spawn(server.run());
    let client = Client::new();
    let refused = client.post(format!("coap+tcp://{at}/count").as_str(), "").await.unwrap();
    assert_eq!(refused.code(), Code::UNAUTHORIZED);
    assert_eq!(count.load(Ordering::SeqCst), 0);
}
