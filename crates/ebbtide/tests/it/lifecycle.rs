//! A server ends in good order, and observers of one path are told of its changes only.

use crate::common::eventually::eventually;
use ebbtide::server::{Call, Router, Server, Subject, get, put};
use ebbtide::{Client, Code, Request};
use ebbtide_core::wire::OptionNumber;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

const GRACE: Duration = Duration::from_secs(20);

fn uri(server: &Server, path: &str) -> String {
    format!("coap://{}{path}", server.local_addrs()[0])
}

#[tokio::test]
async fn an_acknowledged_request_is_answered_before_the_server_ends() {
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    let store = move |call: Call<'static>| {
        let (begun, gate) = (begun.clone(), gate.clone());
        async move {
            begun.send(()).unwrap();
            let _ = gate.acquire().await;
            (Code::CHANGED, call.body())
        }
    };
    let router = Router::new().route("/store", put(store)).route("/hello", get(|| "hello"));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let (store, hello) = (uri(&server, "/store"), uri(&server, "/hello"));
    let address = server.local_addrs()[0];
    let handle = server.handle();
    let running = tokio::spawn(server.run());
    let client = Client::new();
    let stored = tokio::spawn({
        let client = client.clone();
        async move { client.request(Request::put(store).unwrap().payload("safe")).await }
    });
    has_begun.recv().await.unwrap();
    let ended = tokio::spawn(async move { handle.shutdown(GRACE).await });
    // From now on whatever is new is sent away.
    let refused = loop {
        let response = client.get(hello.clone()).await.unwrap();
        if response.code() != Code::CONTENT {
            break response;
        }
    };
    assert_eq!(refused.code(), Code::SERVICE_UNAVAILABLE);
    assert_eq!(refused.options().get_uint(OptionNumber::MAX_AGE), Some(20));
    assert!(!ended.is_finished(), "the handler is still at work");
    opened.add_permits(1);
    let stored = stored.await.unwrap().unwrap();
    assert_eq!((stored.code(), &*stored.text()), (Code::CHANGED, "safe"));
    assert!(ended.await.unwrap(), "nothing was left");
    running.await.unwrap().unwrap();
    // The address is free at once.
    Server::bind(Router::new(), [address]).unwrap();
}

#[tokio::test]
async fn a_handler_that_takes_longer_than_the_grace_time_is_abandoned() {
    let never = get(|| async {
        std::future::pending::<()>().await;
        "never"
    });
    let server = Server::bind(Router::new().route("/never", never), ["127.0.0.1:0"]).unwrap();
    let (asked, handle) = (uri(&server, "/never"), server.handle());
    let running = tokio::spawn(server.run());
    let client = Client::new();
    let waiting = tokio::spawn(async move { client.get(asked).await });
    let meter_ready = handle.clone();
    eventually(|| format!("{meter_ready:?}").contains("sockets")).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!handle.shutdown(Duration::from_millis(50)).await);
    running.await.unwrap().unwrap();
    waiting.abort();
}

#[tokio::test]
async fn observers_are_told_that_the_server_ends() {
    let state = Subject::new();
    let router = Router::new().route("/state", get(|| "state").observable(&state));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let observed = uri(&server, "/state");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run_until(
        async {
            let _ = stopped.await;
        },
        GRACE,
    ));
    let client = Client::new();
    let mut states = client.observe(observed).await.unwrap().end_at_error();
    assert_eq!(states.next().await.unwrap().unwrap().text(), "state");
    stop.send(()).unwrap();
    let ended = loop {
        match states.next().await {
            Some(Ok(response)) if response.is_success() => {}
            other => break other,
        }
    };
    if let Some(Ok(response)) = ended {
        assert_eq!(response.code(), Code::SERVICE_UNAVAILABLE);
    }
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn only_observers_of_the_path_that_changed_are_told() {
    let rooms = Subject::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let show = move |call: Call<'static>| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move { format!("{} {number}", call.param("room").unwrap_or_default()) }
    };
    let router = Router::new().route("/rooms/{room}", get(show).observable(&rooms));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let client = Client::new();
    let mut kitchen = client.observe(uri(&server, "/rooms/kitchen")).await.unwrap();
    assert_eq!(kitchen.next().await.unwrap().unwrap().text(), "kitchen 0");
    let mut hall = client.observe(uri(&server, "/rooms/hall")).await.unwrap();
    assert_eq!(hall.next().await.unwrap().unwrap().text(), "hall 1");
    rooms.changed_at("/rooms/hall");
    assert_eq!(hall.next().await.unwrap().unwrap().text(), "hall 2");
    rooms.changed_at("/rooms/kitchen");
    assert_eq!(kitchen.next().await.unwrap().unwrap().text(), "kitchen 3");
    assert_eq!(calls.load(Ordering::SeqCst), 4, "each was told once");
    rooms.clear(Code::NOT_FOUND);
    eventually(|| rooms.observers() == 0).await;
}

#[tokio::test]
async fn a_server_without_an_address_says_so_when_it_is_run() {
    let none: [&str; 0] = [];
    let error = Server::bind(Router::new(), none).unwrap().run().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("has no address"), "{error}");
}
