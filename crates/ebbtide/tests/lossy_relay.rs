//! Through a network that loses, repeats, reorders and damages a tenth of everything, each request
//! is answered or fails, none twice, and nothing stays open.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

mod common;

use ebbtide::server::{Call, Router, Server, ServerConfig, get, post};
use ebbtide::{Client, Code, Config, Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn config() -> Config {
    let mut config = Config::default().nstart(8);
    config.endpoint.params.max_retransmit = 10;
    config
}

/// `count` mixed exchanges; the number of times that the handler of POST ran, and of answered POSTs.
async fn soak(count: usize) {
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    let large = bytes::Bytes::from(vec![b'x'; 5000]);
    let router = Router::new()
        .route("/small", get(|_: &Call<'_>| Response::content("small")))
        .route("/large", get(move |_: &Call<'_>| Response::content(large.clone())))
        .route(
            "/once",
            post(move |call: &Call<'_>| {
                counter.fetch_add(1, Ordering::Relaxed);
                Response::new(Code::CHANGED).payload(bytes::Bytes::copy_from_slice(call.payload()))
            }),
        );
    let settings = ServerConfig { net: config(), ..ServerConfig::default() };
    let server = Server::with_config(router, settings, ["127.0.0.1:0"]).unwrap();
    let relay = common::relay(server.local_addrs()[0], 10, 42).await;
    let client = Client::with_config(config());
    let workers = 16;
    let tasks: Vec<_> = (0..workers)
        .map(|worker| {
            let client = client.clone();
            tokio::spawn(async move {
                let (mut answered, mut failed, mut posts) = (0, 0, 0);
                for n in (worker..count).step_by(workers) {
                    let request = match n % 10 {
                        0 => Request::get(format!("coap://{relay}/large")).unwrap(),
                        1..=3 => {
                            let body = n.to_string();
                            Request::post(format!("coap://{relay}/once")).unwrap().payload(body)
                        }
                        _ => Request::get(format!("coap://{relay}/small")).unwrap(),
                    };
                    match client.request(request).await {
                        Ok(response) => {
                            let body = response.body();
                            match n % 10 {
                                0 => assert_eq!(body.len(), 5000),
                                1..=3 => assert_eq!(body.as_ref(), n.to_string().as_bytes()),
                                _ => assert_eq!(body.as_ref(), b"small"),
                            }
                            answered += 1;
                            posts += usize::from(matches!(n % 10, 1..=3));
                        }
                        Err(_) => failed += 1,
                    }
                }
                (answered, failed, posts)
            })
        })
        .collect();
    let (mut answered, mut failed, mut posts) = (0, 0, 0);
    for task in tasks {
        let part = task.await.unwrap();
        answered += part.0;
        failed += part.1;
        posts += part.2;
    }
    assert_eq!(answered + failed, count);
    assert!(failed * 1000 <= count, "{failed} of {count} failed");
    let ran = ran.load(Ordering::Relaxed);
    assert!(ran >= posts && ran <= posts + failed, "{ran} runs for {posts} answered POSTs");
    assert_eq!(client.open_exchanges(), 0);
}

#[tokio::test]
async fn two_thousand_mixed_exchanges_end_once_each_and_leave_nothing_open() {
    soak(2_000).await;
}

#[tokio::test]
#[ignore = "takes half an hour: ci.sh --full"]
async fn a_million_mixed_exchanges_end_once_each_and_leave_nothing_open() {
    soak(1_000_000).await;
}
