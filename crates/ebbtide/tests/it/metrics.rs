//! Metrics against traffic that is known.

use crate::common::eventually::eventually;
use ebbtide::congestion::ControlConfig;
use ebbtide::server::{Call, Router, Server, Subject, get, put};
use ebbtide::{Client, ClientConfig, Response};
use ebbtide_core::wire::Code;
use tokio::net::UdpSocket;

fn router(state: &Subject) -> Router {
    Router::new()
        .route("/x", get(|_: &Call<'_>| Response::content("x")).observable(state))
        .route("/long", get(|_: &Call<'_>| Response::content(vec![0; 5000])))
        .route("/put", put(|_: &Call<'_>| Response::new(Code::CHANGED)))
}

#[tokio::test]
async fn both_sides_count_what_went_over_the_wire() {
    let state = Subject::new();
    let server = Server::bind(router(&state), ["127.0.0.1:0"]).unwrap();
    let base = format!("coap://{}", server.local_addrs()[0]);
    // Its timeouts are seconds: nothing is repeated because a busy machine was late.
    let client =
        Client::with_config(ClientConfig::new().control(ControlConfig::parse("default").unwrap()));
    for _ in 0..20 {
        client.get(format!("{base}/x")).await.unwrap();
    }
    let asked = client.snapshot();
    assert_eq!((asked.counters.sent, asked.counters.received), (20, 20));
    let (control, counted) = &asked.controls[0];
    assert_eq!(control.to_string(), "default");
    assert_eq!((counted.messages, counted.retransmissions, counted.timeouts), (20, 0, 0));
    assert_eq!((counted.rtt.count(), counted.rto.count()), (20, 20));
    assert!(counted.rtt.sum_micros() > 0);
    assert_eq!(asked.peers, 1);
    let served = server.snapshot();
    assert_eq!((served.counters.received, served.counters.sent), (20, 20));
    assert_eq!(served.exchanges, ebbtide_core::endpoint::Exchanges::default());
}

#[tokio::test]
async fn the_metrics_show_a_servers_state_while_it_is_held() {
    let state = Subject::new();
    let server = Server::bind(router(&state), ["127.0.0.1:0"]).unwrap();
    let base = format!("coap://{}", server.local_addrs()[0]);
    let meter = server.meter();
    let client = Client::new();
    let mut observation = client.observe(format!("{base}/x")).await.unwrap();
    observation.next().await.unwrap().unwrap();
    assert_eq!(meter.snapshot().observers, 1);
    assert_eq!(client.snapshot().exchanges.observing, 1);
    client.get(format!("{base}/long")).await.unwrap();
    let load = meter.snapshot().load;
    assert_eq!((load.block_bytes, load.downloads, load.uploads), (5000, 1, 0));
    // PUT /put with Block1 0/more/16: the first block of a body that never comes whole.
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    let head = [0x40, 3, 0, 1, 0xb3, b'p', b'u', b't', 0xd1, 3, 0x08, 0xff];
    socket.send(&[head.as_slice(), &[7; 16]].concat()).await.unwrap();
    assert_eq!(socket.recv(&mut [0; 64]).await.unwrap(), 7, "2.31 Continue with Block1");
    let load = meter.snapshot().load;
    assert_eq!((load.block_bytes, load.uploads), (5016, 1));
    drop(observation);
    eventually(|| {
        state.changed();
        meter.snapshot().observers == 0
    })
    .await;
    drop(server);
    // Its driver ends when it next runs; then there is nothing left to count.
    eventually(|| meter.snapshot().counters.received == 0).await;
}

#[tokio::test]
async fn malformed_datagrams_are_exported_by_reason() {
    let server = Server::bind(router(&Subject::new()), ["127.0.0.1:0"]).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.local_addrs()[0]).await.unwrap();
    socket.send(&[0x40]).await.unwrap();
    socket.send(&[0x80, 1, 0, 1]).await.unwrap();
    socket.send(&[0x80, 1, 0, 2]).await.unwrap();
    // A ping, answered in order: what was sent before has been counted.
    socket.send(&[0x40, 0, 0, 3]).await.unwrap();
    socket.recv(&mut [0; 8]).await.unwrap();
    let text = server.snapshot().to_string();
    for line in [
        "ebbtide_malformed_total{reason=\"too-short\"} 1",
        "ebbtide_malformed_total{reason=\"version\"} 2",
        "ebbtide_malformed_total{reason=\"token-length\"} 0",
        "ebbtide_ignored_total{reason=\"ping\"} 1",
        "ebbtide_datagrams_received_total 4",
        "ebbtide_datagrams_sent_total 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
    }
}
