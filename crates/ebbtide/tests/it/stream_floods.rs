//! Connections of those who mean harm: what all of them hold is bounded, everything is counted, and
//! others are served.

use crate::common::eventually::eventually;
use crate::common::stream::{Certificates, base, serve, serve_tcp, serve_tcp_with};
use ebbtide::server::{Call, Router, get};
use ebbtide::stream::Listen;
use ebbtide::{Client, Code, Response, Scheme, Server, ServerConfig};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const CSM: &[u8] = &[0x00, 0xe1];

/// A connection from 127.0.0.`host`, that sends `bytes`.
async fn connection(host: u8, server: SocketAddr, bytes: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, host], 0).into()).unwrap();
    let mut stream = socket.connect(server).await.unwrap();
    // Who is turned away may have no time for it.
    let _ = stream.write_all(bytes).await;
    stream
}

async fn is_served(server: SocketAddr) {
    let response = Client::new().get(format!("coap+tcp://{server}/test")).await.unwrap();
    assert_eq!(response.text(), "hello");
}

/// A POST of 64 kB, of which `part` bytes come.
fn half_a_message(part: usize) -> Vec<u8> {
    // The length is what exceeds 269, in two bytes (RFC 8323 section 3.2).
    let length = (64_000 - 269_u16).to_be_bytes();
    let mut bytes = [CSM, &[0xe0], &length, &[0x02, 0xb4], b"echo", &[0xff]].concat();
    bytes.resize(bytes.len() + part, 0);
    bytes
}

/// Bytes that each of 300 connections costs, their clients' ends included.
async fn cost(bytes: &[u8]) -> isize {
    let (server, address) = serve_tcp(ServerConfig::new());
    is_served(address).await;
    let before = crate::common::counting::bytes_in_use();
    let mut held = Vec::new();
    for n in 0..300_u16 {
        held.push(connection(2 + (n % 100) as u8, address, bytes).await);
    }
    eventually(|| server.snapshot().connections.messages.received >= 301).await;
    // What began to arrive after the CSM is there soon.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let cost = (crate::common::counting::bytes_in_use() - before) / 300;
    is_served(address).await;
    drop(held);
    eventually(|| server.snapshot().connections.open == 0).await;
    eventually(|| crate::common::counting::bytes_in_use() - before < 300 * 1000).await;
    cost
}

#[tokio::test]
async fn ten_thousand_connections_that_wait_fit_into_128_megabytes() {
    let cost = cost(CSM).await;
    assert!(cost < 12_000, "{cost} bytes for each");
}

#[tokio::test]
async fn ten_thousand_half_sent_messages_fit_into_128_megabytes() {
    let cost = cost(&half_a_message(500)).await;
    assert!(cost < 12_000, "{cost} bytes for each");
}

/// As a client asks for a WebSocket (RFC 6455 section 4.1).
const UPGRADE: &[u8] = b"GET /.well-known/coap HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: coap\r\n\r\n";

#[tokio::test]
async fn ten_thousand_half_sent_upgrades_and_silent_websockets_fit_into_128_megabytes() {
    for asked in [&UPGRADE[..UPGRADE.len() - 2], UPGRADE] {
        let at: SocketAddr = ([127, 0, 0, 1], 0).into();
        let router = Router::new().route("/test", get(|_: &Call<'_>| Response::content("hello")));
        let server = Server::without_plain_sockets(router, ServerConfig::new()).unwrap();
        let server = server.listen(Listen::Ws(at)).unwrap();
        let (client, base) = (Client::new(), base(&server, Scheme::CoapWs));
        client.get(format!("{base}/test")).await.unwrap();
        let before = crate::common::counting::bytes_in_use();
        let mut held = Vec::new();
        for n in 0..300_u16 {
            held.push(connection(2 + (n % 100) as u8, server.listeners()[0].1, asked).await);
        }
        eventually(|| server.snapshot().connections.open >= 301).await;
        // What a half-sent upgrade waits for is not counted.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let cost = (crate::common::counting::bytes_in_use() - before) / 300;
        assert!(cost < 12_000, "{cost} bytes for each of {} bytes", asked.len());
        client.get(format!("{base}/test")).await.unwrap();
    }
}

#[tokio::test]
async fn few_connections_are_read_after_their_end() {
    let (server, address) = serve_tcp(ServerConfig::new());
    is_served(address).await;
    let before = crate::common::counting::bytes_in_use();
    let mut held = Vec::new();
    for n in 0..2000_u16 {
        // A request before the CSM.
        held.push(connection(2 + (n % 100) as u8, address, &[0x00, 0x01]).await);
    }
    eventually(|| server.snapshot().connections.no_csm == 2000).await;
    let cost = (crate::common::counting::bytes_in_use() - before) / 2000;
    println!("{cost} bytes for each");
    assert!(cost < 2_500, "{cost} bytes for each");
}

#[tokio::test]
async fn connections_that_ask_for_much_and_read_nothing_cost_no_hash_for_each_request() {
    let body = bytes::Bytes::from(vec![b'l'; 16 << 20]);
    let router = Router::new()
        .route("/test", get(|_: &Call<'_>| Response::content("hello")))
        .route("/large", get(move |_: &Call<'_>| Response::content(body.clone())));
    let (server, address) = serve_tcp_with(router, ServerConfig::new());
    // 64 requests for 16 MiB at a time. To hash each body would take minutes.
    let request = [&[0x60, 0x01, 0xb5][..], b"large"].concat();
    let greedy = [CSM, &request.repeat(64)].concat();
    is_served(address).await;
    let before = crate::common::counting::bytes_in_use();
    let mut held = Vec::new();
    for n in 0..100 {
        held.push(connection(2 + n % 50, address, &greedy).await);
    }
    for _ in 0..20 {
        let served = tokio::time::timeout(Duration::from_secs(20), is_served(address)).await;
        served.expect("nobody else is served");
    }
    eventually(|| server.snapshot().connections.messages.received > 100 * 32).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    // What is counted is what is held, all but some hundred bytes for each.
    let (counted, held_bytes) =
        (server.snapshot().connections.bytes, crate::common::counting::bytes_in_use() - before);
    println!("{counted} counted, {held_bytes} held");
    assert!(held_bytes as usize <= counted + 100 * 4096, "{counted} counted, {held_bytes} held");
    drop(held);
    eventually(|| server.snapshot().connections.open == 0).await;
}

#[tokio::test]
async fn those_who_hold_most_lose_their_connections_when_all_hold_too_much() {
    const MAX: usize = 1 << 20;
    let (server, address) =
        serve_tcp(ServerConfig::new().connection_limits(|limits| limits.bytes(MAX)));
    let mut honest = connection(2, address, CSM).await;
    let mut held = Vec::new();
    for n in 0..40 {
        held.push(connection(3 + n % 4, address, &half_a_message(60_000)).await);
        assert!(server.snapshot().connections.bytes <= MAX, "{:?}", server.snapshot().connections);
    }
    eventually(|| server.snapshot().connections.held_too_much > 0).await;
    is_served(address).await;
    // And 127.0.0.2, which holds little, is still there: a Ping has its Pong.
    honest.write_all(&[0x00, 0xe2]).await.unwrap();
    let mut said = Vec::new();
    while !said.ends_with(&[0x00, 0xe3]) {
        let read = tokio::time::timeout(Duration::from_secs(20), honest.read_u8()).await;
        said.push(read.expect("no Pong").unwrap());
    }
}

#[tokio::test]
async fn the_address_that_has_most_connections_makes_room_for_others() {
    let (server, address) =
        serve_tcp(ServerConfig::new().connection_limits(|limits| limits.connections(20)));
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(connection(2, address, CSM).await);
    }
    eventually(|| server.snapshot().connections.messages.received == 20).await;
    is_served(address).await;
    let counters = server.snapshot().connections;
    assert_eq!((counters.made_room, counters.refused), (1, 0));
    // The idlest went, and was told why.
    let mut said = Vec::new();
    held.remove(0).read_to_end(&mut said).await.unwrap();
    assert!(String::from_utf8_lossy(&said).contains("the server is full"), "{said:?}");
    // Its own address gets no more.
    held.push(connection(2, address, CSM).await);
    eventually(|| {
        server.snapshot().connections.open < 20 || server.snapshot().connections.refused > 0
    })
    .await;
}

#[tokio::test]
async fn scarce_descriptors_are_kept_for_others() {
    // As if the process might have none.
    let (server, address) = serve_tcp(
        ServerConfig::new().connection_limits(|limits| limits.spare_descriptors(u32::MAX)),
    );
    let mut refused = connection(2, address, CSM).await;
    let mut said = Vec::new();
    // Its end may be a Reset, since it has sent something.
    let _ = refused.read_to_end(&mut said).await;
    assert_eq!(said, b"");
    let counters = server.snapshot().connections;
    assert_eq!((counters.refused, counters.refused_without_descriptors), (1, 1));
}

#[tokio::test]
async fn handshakes_that_do_not_end_give_way() {
    let certificates = Certificates::new();
    let (server, _) = serve(
        ServerConfig::new().connection_limits(|limits| limits.handshakes(10)),
        &certificates.identity(),
    );
    let address_of = |server: &Server, scheme| {
        server.listeners().iter().find(|(of, _)| *of == scheme).map(|(_, at)| *at).unwrap()
    };
    for scheme in [Scheme::CoapsTcp, Scheme::CoapWs] {
        let at = address_of(&server, scheme);
        let mut held = Vec::new();
        for _ in 0..40 {
            held.push(connection(2, at, b"").await);
        }
        let client = certificates.client();
        let response = client.get(format!("{}/test", base(&server, scheme))).await.unwrap();
        assert_eq!(response.code(), Code::CONTENT);
        eventually(|| server.snapshot().connections.open <= 11).await;
        assert!(server.snapshot().connections.handshakes_displaced >= 30);
    }
}

#[tokio::test]
async fn a_flood_of_pings_over_one_connection_gets_turns_not_all_the_time() {
    let (server, address) = serve_tcp(ServerConfig::new());
    let client = Client::new();
    let uri = format!("coap+tcp://{address}/test");
    client.get(uri.as_str()).await.unwrap();
    let (mut from, mut to) = connection(2, address, CSM).await.into_split();
    let flood = tokio::spawn(async move {
        let pings = [0x00, 0xe2].repeat(8 << 10);
        while to.write_all(&pings).await.is_ok() {}
    });
    let read = tokio::spawn(async move {
        let mut sink = vec![0; 64 << 10];
        while from.read(&mut sink).await.is_ok_and(|len| len > 0) {}
    });
    eventually(|| server.snapshot().connections.messages.pings > 10_000).await;
    let before = server.snapshot().connections.messages.pings;
    for _ in 0..50 {
        let answer = tokio::time::timeout(Duration::from_secs(20), client.get(uri.as_str())).await;
        answer.expect("starved").unwrap();
    }
    // Some turns of each of the tasks that a request needs, not tens of thousands in each.
    let pings = server.snapshot().connections.messages.pings - before;
    assert!(pings < 50 * 500, "{pings} pings beside 50 requests");
    flood.abort();
    read.abort();
}
