//! Observations through a gateway.

use super::{Through, config, serve};
use crate::Gateway;
use ebbtide::server::{Call, Router, Subject, get};
use ebbtide::{Client, Code, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn all_clients_share_one_observation_and_see_each_state() {
    let (subject, count) = (Subject::new(), Arc::new(AtomicUsize::new(0)));
    let state = count.clone();
    let read = move |_: &Call<'_>| format!("state {}", state.load(Ordering::SeqCst));
    let server = serve(Router::new().route("/o", get(read).observable(&subject)));
    let through = Through::gateway(config());
    let uri = format!("coap://{server}/o");
    let clients = [Client::new(), Client::new(), Client::new()];
    let mut observations = Vec::new();
    for client in &clients {
        observations.push(client.observe_with(through.get(&uri)).await.unwrap());
    }
    for n in 0..3 {
        let wanted = format!("state {n}");
        for observation in &mut observations {
            assert_eq!(observation.next().await.unwrap().unwrap().text(), wanted);
        }
        assert_eq!(subject.observers(), 1);
        count.fetch_add(1, Ordering::SeqCst);
        subject.changed();
    }
}

#[tokio::test]
async fn a_resource_that_cannot_be_observed_is_answered_once() {
    let server = serve(Router::new().route("/r", get(|_: &Call<'_>| Response::content("once"))));
    let through = Through::gateway(config());
    let observed = through.get(&format!("coap://{server}/r"));
    let mut observation = through.client.observe_with(observed).await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), "once");
    assert!(observation.next().await.is_none());
    let missing = through.get(&format!("coap://{server}/none"));
    let mut observation = through.client.observe_with(missing).await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().code(), Code::NOT_FOUND);
}

#[tokio::test]
async fn nothing_is_observed_for_a_client_that_is_refused() {
    let gateway = Gateway::new(config().only_for("192.0.2.0/24".parse().unwrap()));
    let through = Through { client: Client::new(), proxy: serve(gateway.router()) };
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let observed = through.get(&format!("coap://{}/o", silent.local_addr().unwrap()));
    let mut refused = through.client.observe_with(observed).await.unwrap();
    assert_eq!(refused.next().await.unwrap().unwrap().code(), Code::FORBIDDEN);
    assert_eq!(gateway.inner.observations.count(), 0);
}
