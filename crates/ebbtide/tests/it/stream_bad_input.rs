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
async fn a_request_for_something_else_than_a_websocket_for_coap_is_refused_with_a_status() {
    let config = ServerConfig::new().allow_origin("https://home.example");
    let (server, _) = serve(config, &Certificates::new().identity());
    let address = base(&server, ebbtide::Scheme::CoapWs).replace("coap+ws://", "");
    let good = format!(
        "GET /.well-known/coap HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: coap\r\n"
    );
    let page = |origin: &str| format!("{good}Origin: {origin}\r\n");
    let other = |from, to| good.replace(from, to);
    for (request, answer) in [
        (good.clone(), "101 Switching Protocols"),
        (other("/.well-known/coap", "/"), "404 Not Found"),
        (other("Protocol: coap", "Protocol: chat"), "400 Bad Request"),
        (other("dGhlIHNhbXBsZSBub25jZQ==", "abc"), "400 Bad Request"),
        (other("GET", "POST"), "405 Method Not Allowed\r\nconnection: close"),
        (other("Version: 13", "Version: 8"), "426 Upgrade Required"),
        (other("Upgrade: websocket\r\n", ""), "426 Upgrade Required"),
        (other("HTTP/1.1", "junk"), "400 Bad Request"),
        (format!("{good}X: {}\r\n", "x".repeat(9000)), "431 Request Header Fields Too Large"),
        (page("https://evil.example"), "403 Forbidden"),
        (page("null"), "403 Forbidden"),
        (page("https://home.example"), "101 Switching Protocols"),
        (page(&format!("http://{address}")), "101 Switching Protocols"),
    ] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
        let expected = format!("HTTP/1.1 {answer}\r\n");
        let mut said = vec![0; expected.len()];
        stream.read_exact(&mut said).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&said), expected, "{request}");
    }
}

/// The frames that a client of a WebSocket receives after this one, up to the server's close.
async fn answers_to_frame(address: &str, frame: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /.well-known/coap HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: coap\r\n\r\n"
    );
    // The frame comes in the same segment as the request.
    stream.write_all(&[request.as_bytes(), frame].concat()).await.unwrap();
    rest(&mut stream).await
}

#[tokio::test]
async fn a_websocket_is_closed_with_a_code_that_says_why() {
    let (server, _) = serve(ServerConfig::new(), &Certificates::new().identity());
    let address = base(&server, ebbtide::Scheme::CoapWs).replace("coap+ws://", "");
    // Masked with zeros; a CSM is the byte 0x00 and its code, 7.01.
    for (frame, code) in [
        (&[0x81, 0x82, 0, 0, 0, 0, b'h', b'i'][..], 1003),
        (&[0x82, 0x02, 0x00, 0xe1], 1002),
        (&[0x83, 0x80, 0, 0, 0, 0], 1002),
        (&[0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], 1009),
        // The peer closes with 1000.
        (&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8], 1000),
    ] {
        let said = answers_to_frame(&address, frame).await;
        let close = [&[0x88, 2][..], &u16::to_be_bytes(code)].concat();
        assert!(said.ends_with(&close), "{code}: {}", said.escape_ascii());
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
