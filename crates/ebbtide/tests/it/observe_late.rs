//! Observing a resource whose handler takes its time (RFC 7641 section 4.1).

use ebbtide::server::{Router, Server, Subject, get};
use ebbtide::{Client, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_resource_with_an_asynchronous_handler_is_observed() {
    let (state, subject) = (Arc::new(AtomicU32::new(0)), Subject::new());
    let value = state.clone();
    let resource = get(move || {
        let value = value.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Response::content(value.load(Ordering::SeqCst).to_string())
        }
    });
    let router = Router::new().route("/x", resource.observable(&subject));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let uri = format!("coap://{}/x", server.local_addrs()[0]);
    let mut observation = Client::new().observe(uri.as_str()).await.unwrap();
    for wanted in 0..4 {
        let response = timeout(LONG, observation.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(response.text(), wanted.to_string());
        assert_eq!(subject.observers(), 1);
        state.store(wanted + 1, Ordering::SeqCst);
        subject.changed();
    }
}

#[tokio::test]
async fn a_change_while_the_first_state_is_made_is_told() {
    let (state, subject) = (Arc::new(AtomicU32::new(0)), Subject::new());
    let (value, read, go_on) = (state.clone(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (has_read, may_go_on) = (read.clone(), go_on.clone());
    let resource = get(move || {
        let (value, read, go_on) = (value.clone(), has_read.clone(), may_go_on.clone());
        async move {
            let state = value.load(Ordering::SeqCst);
            if state == 0 {
                read.notify_one();
                go_on.notified().await;
            }
            Response::content(state.to_string())
        }
    });
    let router = Router::new().route("/x", resource.observable(&subject));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let uri = format!("coap://{}/x", server.local_addrs()[0]);
    let mut observation = Client::new().observe(uri.as_str()).await.unwrap();
    let first = tokio::spawn(async move { (observation.next().await, observation) });
    timeout(LONG, read.notified()).await.unwrap();
    state.store(1, Ordering::SeqCst);
    subject.changed();
    go_on.notify_one();
    let (response, mut observation) = timeout(LONG, first).await.unwrap().unwrap();
    assert_eq!(response.unwrap().unwrap().text(), "0");
    let response = timeout(LONG, observation.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(response.text(), "1");
}
