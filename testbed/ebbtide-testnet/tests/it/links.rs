//! What the network does to packets, and what of it an application notices.

use ebbtide::server::{Call, Router, Server, post};
use ebbtide::{Client, Response};
use ebbtide_testnet::{Conditions, PacketFate, TestNetwork, play};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// A server at `HOST`, and how often its handler has run.
fn counting(network: &TestNetwork) -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let handler =
        move |_: &Call<'_>| Response::content(counted.fetch_add(1, Ordering::SeqCst).to_string());
    let router = Router::new().route("/count", post(handler));
    let server = Server::with_config(router, network.server_config(), ["10.0.0.1:5683"]).unwrap();
    tokio::spawn(server.run());
    count
}

#[test]
fn a_handler_runs_once_for_a_request_that_arrives_twice() {
    let trace = play(3, Conditions::new().duplicates(1.0), async |network| {
        let count = counting(&network);
        let client = Client::with_config(network.client_config());
        for n in 0..20 {
            let answer = client.post("coap://10.0.0.1/count", "").await.unwrap();
            assert_eq!(answer.text(), n.to_string());
        }
        assert_eq!(count.load(Ordering::SeqCst), 20);
    });
    // Twenty requests and their answers, each twice, and an answer to each duplicate, twice.
    assert!(trace.packets().len() >= 80, "{trace}");
}

#[test]
fn packets_overtake_each_other_where_the_delay_varies() {
    let delay = Duration::from_millis(1)..=Duration::from_secs(1);
    let trace = play(4, Conditions::new().delay(delay), async |network| {
        let count = counting(&network);
        let client = Client::with_config(network.client_config());
        let asked = (0..20).map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.post("coap://10.0.0.1/count", "").await })
        });
        for answer in asked.collect::<Vec<_>>() {
            assert!(answer.await.unwrap().unwrap().is_success());
        }
        assert_eq!(count.load(Ordering::SeqCst), 20);
    });
    let arrivals = trace.packets().iter().filter(|packet| packet.to.ip() == HOST);
    let times = arrivals.map(|packet| match packet.fate {
        PacketFate::Arrives(at) => at,
        other => panic!("{other:?}"),
    });
    assert!(!times.collect::<Vec<_>>().is_sorted(), "{trace}");
}

#[test]
fn a_cut_of_ten_seconds_costs_an_exchange_nothing_but_time() {
    play(5, Conditions::new(), async |network| {
        counting(&network);
        let client = Client::with_config(network.client_config());
        assert!(client.post("coap://10.0.0.1/count", "").await.unwrap().is_success());
        network.cut(HOST, Ipv4Addr::new(10, 1, 0, 1));
        let asked = tokio::spawn(async move { client.post("coap://10.0.0.1/count", "").await });
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!asked.is_finished());
        network.restore();
        assert_eq!(asked.await.unwrap().unwrap().text(), "1");
    });
}
