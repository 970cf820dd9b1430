//! A client's own limit for its requests.

use ebbtide::{Client, ClientConfig, ErrorKind, Request};
use std::net::UdpSocket;
use std::time::Duration;

#[tokio::test]
async fn a_request_without_a_limit_has_the_client_s_and_one_with_a_limit_its_own() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    let limit = Duration::from_millis(300);
    let client = Client::with_config(ClientConfig::new().request_timeout(limit));
    let uri = format!("coap://{at}/x");
    let early = tokio::time::timeout(limit / 3, client.get(&uri)).await;
    assert!(early.is_err(), "the limit has not passed");
    let error = client.get(&uri).await.unwrap_err();
    assert_eq!((error.kind(), error.remote()), (ErrorKind::TimedOut, Some(at)), "{error}");
    let request = Request::get(&uri).unwrap().non_confirmable();
    assert!(client.request(request).await.unwrap_err().is_timeout());
    let own = Request::get(&uri).unwrap().timeout(4 * limit);
    let ended = tokio::time::timeout(2 * limit, client.request(own)).await;
    assert!(ended.is_err(), "the request's own limit is longer");
}

#[test]
fn a_limit_that_passes_during_the_look_up_names_the_host_and_no_address() {
    // A look-up runs on a thread for blocking work. The only one there is waits here, since a machine
    // without a resolver would answer before any limit.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let holder = runtime.spawn_blocking(move || held.recv());
    let error = runtime.block_on(async {
        let limit = Duration::from_millis(20);
        let client = Client::with_config(ClientConfig::new().request_timeout(limit));
        client.get("coap://name.invalid/x").await.unwrap_err()
    });
    drop(release);
    assert!(runtime.block_on(holder).unwrap().is_err());
    assert!(error.is_timeout(), "{error}");
    assert_eq!(error.kind(), ErrorKind::Resolve);
    assert!(error.to_string().contains("name.invalid"), "{error}");
    assert!(!error.to_string().contains("0.0.0.0"), "{error}");
}
