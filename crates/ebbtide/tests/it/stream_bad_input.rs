//! Peers that break the rules of RFC 8323: an Abort that says which, the connection closed, counted,
//! and everybody else served on.

use crate::common::eventually::eventually;
use crate::common::stream::{Certificates, base, serve, serve_tcp};
use ebbtide::stream::StreamCounters;
use ebbtide::{Client, ClientConfig, ErrorKind, ServerConfig};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const CSM: &[u8] = &[0x00, 0xe1];
const SHORT: Duration = Duration::from_millis(200);

/// A server that has little patience for one thing: a machine that is busy must not make it lose
/// that for another first.
/// All that the server says until it closes.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    let read = stream.read_to_end(&mut said);
    tokio::time::timeout(Duration::from_secs(20), read).await.expect("it closes").unwrap();
    said
}

/// Sends this to a server, which aborts with this diagnostic and counts it.
async fn aborts(input: &[u8], diagnostic: &str, counter: impl Fn(&StreamCounters) -> u64) {
    aborts_by(ServerConfig::new(), input, diagnostic, counter).await;
}

/// As [`aborts`], with these settings.
async fn aborts_by(
    config: ServerConfig,
    input: &[u8],
    diagnostic: &str,
    counter: impl Fn(&StreamCounters) -> u64,
) {
    let (server, address) = serve_tcp(config);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(input).await.unwrap();
    let said = rest(&mut stream).await;
    let text = String::from_utf8_lossy(&said);
    assert!(text.contains(diagnostic), "{diagnostic}: {text:?}");
    assert!(said.windows(1).any(|code| code == [0xe5]), "an Abort");
    eventually(|| counter(&server.snapshot().connections) == 1).await;
    eventually(|| server.snapshot().connections.open == 0).await;
    let client = Client::new();
    assert!(client.get(format!("coap+tcp://{address}/test")).await.unwrap().is_success());
}

#[tokio::test]
async fn a_request_before_the_csm() {
    aborts(&[0x00, 0x01], "the first message must be a CSM", |c| c.no_csm).await;
}

#[tokio::test]
async fn a_csm_that_does_not_come() {
    // In which a client that asks afterwards has sent it.
    let config =
        ServerConfig::new().transport(|transport| transport.csm_timeout(Duration::from_secs(1)));
    aborts_by(config, &[], "no CSM in time", |c| c.no_csm).await;
}

#[tokio::test]
async fn a_length_beyond_max_message_size() {
    let input = [CSM, &[0xf0, 0xff, 0xff, 0xff, 0xff, 0x01]].concat();
    aborts(&input, "exceeds Max-Message-Size 66688", |c| c.too_long).await;
}

#[tokio::test]
async fn a_critical_option_that_no_signal_has() {
    aborts(&[0x10, 0xe1, 0x10], "critical option 1 of signal 7.01", |c| c.malformed).await;
}

#[tokio::test]
async fn an_invalid_message_ends_only_its_connection() {
    aborts(&[CSM, &[0x0f, 0x01]].concat(), "token length 15", |c| c.malformed).await;
    aborts(b"GET / HTTP/1.1\r\n\r\n", "not a message", |c| c.malformed).await;
}

#[tokio::test]
async fn a_message_that_begins_and_does_not_end() {
    let input = [CSM, &[0xd0, 0x57, 0x02, 0xff, 0x00]].concat();
    let config = ServerConfig::new().transport(|transport| transport.message_timeout(SHORT));
    aborts_by(config, &input, "a message took too long", |c| c.slow).await;
}

#[tokio::test]
async fn a_peer_that_answers_no_ping_is_taken_for_gone() {
    let config =
        ServerConfig::new().transport(|transport| transport.keep_alive(SHORT).pong_timeout(SHORT));
    aborts_by(config, CSM, "no Pong in time", |c| c.slow).await;
}

#[tokio::test]
async fn a_peer_that_takes_no_answers_is_given_up_with_bounded_memory() {
    let (server, address) = serve_tcp(
        ServerConfig::new()
            .transport(|transport| transport.write_timeout(SHORT))
            .limits(|limits| limits.output(64 << 10)),
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    // Asks for the large body, over and over, and reads nothing.
    let ask = [&[0x60, 0x01, 0xb5][..], b"large"].concat();
    let csm = [0x40, 0xe1, 0x22, 0xff, 0xff, 0x20];
    stream.write_all(&csm).await.unwrap();
    let many = ask.repeat(1000);
    let flood = async { while stream.write_all(&many).await.is_ok() {} };
    let _ = tokio::time::timeout(Duration::from_secs(20), flood).await;
    eventually(|| server.snapshot().connections.slow == 1).await;
    eventually(|| server.snapshot().connections.open == 0).await;
    let answered = server.snapshot().connections.messages.requests;
    assert!(answered < 1000, "{answered} answers of 64 KB were made for nobody");
}

#[tokio::test]
async fn a_handshake_that_drags_on_is_ended() {
    let config = ServerConfig::new().transport(|transport| transport.handshake_timeout(SHORT));
    let (server, _) = serve(config, &Certificates::new().identity());
    for scheme in [ebbtide::Scheme::CoapsTcp, ebbtide::Scheme::CoapWs] {
        let address = base(&server, scheme);
        let address = address.split_once("://").unwrap().1.parse::<SocketAddr>().unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert_eq!(rest(&mut stream).await, b"");
    }
    eventually(|| server.snapshot().connections.handshakes_failed == 2).await;
    assert_eq!(server.snapshot().connections.open, 0);
}

#[tokio::test]
async fn a_websocket_for_something_else_is_refused() {
    let (server, _) = serve(ServerConfig::new(), &Certificates::new().identity());
    let address = base(&server, ebbtide::Scheme::CoapWs).replace("coap+ws://", "");
    for (path, protocol, status) in [
        ("/", "coap", "404"),
        ("/.well-known/coap", "chat", "400"),
        ("/.well-known/coap", "coap", "101"),
    ] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Protocol: {protocol}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"));
    }
}

#[tokio::test]
async fn connections_are_bounded_in_all_and_by_address() {
    for (connections, per_address) in [(2, 100), (100, 2)] {
        let config =
            ServerConfig::new().connection_limits(|limits| limits.connections(connections));
        let (server, address) =
            serve_tcp(config.connection_limits(|limits| limits.per_address(per_address)));
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(CSM).await.unwrap();
            stream.read_u8().await.unwrap();
            held.push(stream);
        }
        let mut refused = TcpStream::connect(address).await.unwrap();
        assert_eq!(rest(&mut refused).await, b"");
        assert_eq!(server.snapshot().connections.refused, 1);
        held.pop();
        eventually(|| server.snapshot().connections.open == 1).await;
        let client = Client::new();
        client.get(format!("coap+tcp://{address}/test")).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_exchanges_no_csm_is_named_as_such() {
    // As Californium does: it answers, but says nothing of itself before.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut input = [0; 256];
        let mut seen = Vec::new();
        loop {
            let len = stream.read(&mut input).await.unwrap_or(0);
            seen.extend_from_slice(&input[..len]);
            // Behind our CSM of eight bytes: the request's token is four bytes from its third on.
            if len == 0 || seen.len() >= 14 {
                break;
            }
        }
        let token = seen[seen.len() - 9..][..4].to_vec();
        let answer = [&[0x34, 0x45][..], &token, &[0xff, b'h', b'i']].concat();
        stream.write_all(&answer).await.unwrap();
        let _ = stream.read(&mut input).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    });
    let client = Client::new();
    let error = client.get(format!("coap+tcp://{address}/test")).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the first message must be a CSM"), "{text}");
    assert!(text.contains("Californium"), "{text}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for_longer_than_for_its_csm() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = ClientConfig::new().transport(|transport| transport.csm_timeout(SHORT));
    let client = Client::with_config(config);
    let error = client.get(format!("coap+tcp://{address}/test")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    assert!(error.to_string().contains("no CSM in time"), "{error}");
}

#[tokio::test]
async fn a_request_that_waits_for_a_missing_csm_says_so() {
    // As Californium does while it is sent signals only: it keeps the connection, and is silent.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("coap+tcp://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    let config = ClientConfig::new().transport(|transport| transport.csm_wait(SHORT));
    // A sign of life, and a body of which it must be known how long its blocks may be.
    let client = Client::with_config(config.clone());
    let no_pong = client.ping(base.as_str()).await.unwrap_err();
    let client = Client::with_config(config);
    let no_body = client.put(format!("{base}/test"), vec![0; 5000]).await.unwrap_err();
    for error in [no_pong, no_body] {
        let text = error.to_string();
        assert!(text.contains("no CSM in time (RFC 8323 section 5.3)"), "{text}");
        assert!(text.contains("Californium"), "{text}");
    }
}
