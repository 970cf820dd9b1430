//! One API for all transports: the same client, the same handlers.

use crate::common::eventually::eventually;
use crate::common::stream::{
    Certificates, LARGE, base, large, router, serve, serve_tcp, serve_tcp_with,
};
use ebbtide::server::{Subject, get};
use ebbtide::stream::Trust;
use ebbtide::{Client, ClientConfig, Code, ErrorKind, Request, Response, Scheme, ServerConfig};
use std::time::Duration;
use tokio::sync::watch;

#[tokio::test]
async fn requests_blocks_and_observations_are_the_same_over_every_transport() {
    let certificates = Certificates::new();
    let (server, time) = serve(ServerConfig::new(), &certificates.identity());
    let client = certificates.client();
    // DTLS has tests of its own: it needs a key.
    for scheme in Scheme::ALL.into_iter().filter(|scheme| *scheme != Scheme::Coaps) {
        let base = base(&server, scheme);
        assert_eq!(client.get(format!("{base}/test")).await.unwrap().text(), "hello", "{scheme}");
        let got = client.get(format!("{base}/large")).await.unwrap();
        assert!(got.body() == &large(), "{scheme}: {} {}", got.code(), got.body().len());
        let put = client.put(format!("{base}/echo"), large()).await.unwrap();
        assert!(put.body() == &large(), "{scheme}: {} {}", put.code(), put.body().len());
        let small = Request::post(format!("{base}/echo")).unwrap().block_size(64);
        let small = client.request(small.payload(vec![7; 1000])).await.unwrap();
        assert_eq!(small.body(), &vec![7; 1000], "{scheme}: blocks as small as wanted");
        assert_eq!(client.get(format!("{base}/slow")).await.unwrap().text(), "slow", "{scheme}");
        let missing = client.get(format!("{base}/missing")).await.unwrap();
        assert_eq!(missing.code(), Code::NOT_FOUND, "{scheme}");
        client.ping(base.as_str()).await.unwrap();

        let mut observation = client.observe(format!("{base}/time")).await.unwrap();
        for _ in 0..3 {
            assert_eq!(observation.next().await.unwrap().unwrap().text(), "now", "{scheme}");
            time.changed();
        }
        assert_eq!(time.observers(), 1, "{scheme}");
        drop(observation);
        time.changed();
        eventually(|| time.observers() == 0).await;
        eventually(|| client.snapshot().open_exchanges() == 0).await;
    }
    let counters = server.snapshot().connections;
    assert_eq!((counters.connections, counters.open), (4, 4), "one connection for all requests");
    for text in [server.snapshot().to_string(), client.snapshot().to_string()] {
        assert!(text.contains("ebbtide_connections 4\n"), "{text}");
        assert!(text.contains("ebbtide_connections_established_total 4\n"), "{text}");
    }
    let frames = counters.messages.received;
    assert!(frames < 250, "{frames} messages for {LARGE} bytes in each direction: no BERT?");
    client.get(base(&server, Scheme::CoapTcp)).await.unwrap();
}

#[tokio::test]
async fn many_requests_share_one_connection_and_overtake_a_slow_one() {
    let (done, waits) = watch::channel(false);
    let slow = get(move || {
        let mut waits = waits.clone();
        async move {
            waits.wait_for(|done| *done).await.unwrap();
            Response::content("slow")
        }
    });
    let router = router(&Subject::new()).route("/until-told", slow);
    let (server, address) = serve_tcp_with(router, ServerConfig::new());
    let client = Client::new();
    let slow = tokio::spawn({
        let client = client.clone();
        async move { client.get(format!("coap+tcp://{address}/until-told")).await }
    });
    let asked: Vec<_> = (0..100)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.get(format!("coap+tcp://{address}/test")).await })
        })
        .collect();
    for answered in asked {
        assert_eq!(answered.await.unwrap().unwrap().text(), "hello");
    }
    assert!(!slow.is_finished());
    done.send(true).unwrap();
    assert_eq!(slow.await.unwrap().unwrap().text(), "slow");
    assert_eq!(server.snapshot().connections.connections, 1);
}

#[tokio::test]
async fn a_lost_connection_is_opened_again() {
    let (server, address) = serve_tcp(ServerConfig::new());
    let client = Client::new();
    let uri = format!("coap+tcp://{address}/test");
    client.get(uri.as_str()).await.unwrap();
    drop(server);
    // The port is free as soon as nobody listens there.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(
        matches!(&client.get(uri.as_str()).await, Err(error) if error.kind() == ErrorKind::Network)
    );
    let (_server, other) = serve_tcp(ServerConfig::new());
    let uri = format!("coap+tcp://{other}/test");
    client.get(uri.as_str()).await.unwrap();
    assert_eq!(client.snapshot().connections.connections, 2);
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused_unless_nobody_is_to_be_trusted() {
    let certificates = Certificates::new();
    let (server, _) = serve(ServerConfig::new(), &certificates.identity());
    let uri = format!("{}/test", base(&server, Scheme::CoapsTcp));
    let stranger = Certificates::new().client();
    let refused = stranger.get(uri.as_str()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Tls, "{refused}");
    assert!(refused.to_string().contains("name the authority to trust"), "{refused}");
    eventually(|| server.snapshot().connections.handshakes_failed == 1).await;

    let config = ClientConfig::new().trust(Trust::dangerously_anyone());
    let careless = Client::with_config(config);
    assert_eq!(careless.get(uri.as_str()).await.unwrap().text(), "hello");
}

#[tokio::test]
async fn a_response_that_nobody_wants_is_not_sent() {
    let (server, address) = serve_tcp(ServerConfig::new());
    let client = Client::new();
    // RFC 7967: no response of class 2.
    let quiet = Request::post(format!("coap+tcp://{address}/echo")).unwrap();
    let quiet = quiet.option(ebbtide::OptionNumber::NO_RESPONSE, &[2]);
    let asked = client.request(quiet.timeout(Duration::from_millis(100))).await;
    assert!(matches!(&asked, Err(error) if error.kind() == ErrorKind::TimedOut), "{asked:?}");
    client.get(format!("coap+tcp://{address}/test")).await.unwrap();
    let messages = server.snapshot().connections.messages;
    assert_eq!((messages.requests, messages.sent), (2, 2), "its CSM and one response");
}
