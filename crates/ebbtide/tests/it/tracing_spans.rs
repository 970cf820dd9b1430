//! What an application's `tracing` subscriber sees of requests.

use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Call, Router, Server, get};
use ebbtide::{Client, ClientConfig, Response, ServerConfig};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tracing::{Dispatch, Level};

/// Where the subscriber writes: a line per event, the spans that it is in before it.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// The first line that has all of `parts`.
    #[track_caller]
    fn with(&self, parts: &[&str]) -> String {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let found = text.lines().find(|line| parts.iter().all(|part| line.contains(part)));
        found.unwrap_or_else(|| panic!("no line with {parts:?} in:\n{text}")).to_owned()
    }
}

/// While a program has one dispatcher, tracing asks that of the present thread whether a call site is of
/// interest, and remembers the answer: a test of another thread that reaches the call site first would
/// silence it for this one.
fn have_a_second_dispatcher() {
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
}

#[tokio::test]
async fn events_are_in_the_span_of_their_request_and_name_its_exchange() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    have_a_second_dispatcher();
    let _guard = tracing::subscriber::set_default(subscriber);
    let slow = get(|call: Call<'static>| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        tracing::info!(room = call.param("room"), "measured");
        Response::content("22.3 C")
    });
    let quick = get(|_: &Call<'_>| {
        tracing::info!("looked up");
        Response::content("x")
    });
    let router = Router::new().route("/rooms/{room}", slow).route("/quick", quick);
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    let client = Client::new();
    client.get(format!("coap://{address}/rooms/kitchen")).await.unwrap();
    client.get(format!("coap://{address}/quick")).await.unwrap();

    let peer = format!("peer={address}");
    // The request leaves within its span, and the response names the same exchange.
    let request = "request{method=\"GET\" path=\"/rooms/kitchen\"";
    lines.with(&[request, &peer, "ebbtide::message: sent", "exchange=0", "Uri-Path \"kitchen\""]);
    lines.with(&["ebbtide::control: learnt", &peer, "exchange=0", "rtt=", "srtt="]);
    lines.with(&["ebbtide::message: received", &peer, "2.05 Content", "6 bytes of payload"]);
    // What a handler says is in the span of the request that it answers, slow or not.
    let slow = lines.with(&["measured", "room=\"kitchen\""]);
    assert!(slow.contains("serve{method=\"GET\" path=\"/rooms/kitchen\" peer="), "{slow}");
    let quick = lines.with(&["looked up"]);
    assert!(quick.contains("serve{method=\"GET\" path=\"/quick\""), "{quick}");
}

#[tokio::test]
async fn the_span_of_a_body_of_many_blocks_does_not_grow_and_peers_have_their_own_addresses() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    have_a_second_dispatcher();
    let _guard = tracing::subscriber::set_default(subscriber);
    let router =
        Router::new().route("/long", get(|_: &Call<'_>| Response::content("x".repeat(9000))));
    let keys =
        |identity: &[u8]| (identity == b"device").then(|| Psk::new(b"secret").ok()).flatten();
    let config = ServerConfig::new()
        .bind_dtls(DtlsBind::new(std::net::SocketAddr::from(([127, 0, 0, 1], 0)), keys));
    let none: [&str; 0] = [];
    let server = Server::with_config(router, config, none).unwrap();
    let address = server.dtls_addrs()[0];
    let psk = Psk::new(b"secret").unwrap();
    let client =
        Client::with_config(ClientConfig::new().credentials(Credentials::new("device", psk)));
    let uri = format!("coaps://{address}/long");
    assert_eq!(client.get(uri.as_str()).await.unwrap().body().len(), 9000);
    client.ping(uri.as_str()).await.unwrap();

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(text.lines().count() > 30, "{text}");
    for line in text.lines() {
        assert!(line.matches("exchange=").count() <= 1, "{line}");
        assert!(!line.contains("peer=[1eb:"), "{line}");
    }
    let peer = format!("peer={address}");
    lines.with(&["ebbtide::message: sent", &peer, "Block2 8/"]);
    lines.with(&["ebbtide::message: received", &peer]);
    lines.with(&["ebbtide::control: learnt", &peer]);
}

#[tokio::test]
async fn timeouts_and_failures_are_told() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::DEBUG)
        .with_writer(move || writer.clone())
        .finish();
    have_a_second_dispatcher();
    let _guard = tracing::subscriber::set_default(subscriber);
    // It is bound and never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let config =
        ebbtide::ClientConfig::new().max_retransmit(1).ack_timeout(Duration::from_millis(20));
    let client = Client::with_config(config);
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    client.get(uri).await.unwrap_err();
    lines.with(&["ebbtide::message: timeout", "exchange=0", "ordinal=1"]);
    lines.with(&["ebbtide::message: failed", "exchange=0", "no acknowledgement"]);
}
