//! Observations that know when they are deaf: freshness, a new registration on demand, and the keep-alive.

use ebbtide::client::Observed;
use ebbtide::server::{Router, Server, Subject, get};
use ebbtide::{Client, ClientConfig, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(30);

/// A server of one resource whose state is a number, with this Max-Age.
fn serve(value: &Arc<AtomicU32>, subject: &Subject, max_age: u32) -> Server {
    let value = value.clone();
    let read = get(move || {
        let value = value.clone();
        async move { Response::content(value.load(Ordering::SeqCst).to_string()).max_age(max_age) }
    });
    let router = Router::new().route("/x", read.observable(subject));
    Server::bind(router, ["127.0.0.1:0"]).unwrap()
}

#[tokio::test]
async fn a_state_that_outlives_its_max_age_is_reported_once_and_refreshed_on_demand() {
    let (value, subject) = (Arc::new(AtomicU32::new(0)), Subject::new());
    let server = serve(&value, &subject, 1);
    let uri = format!("coap://{}/x", server.local_addrs()[0]);
    let mut observation = Client::new().observe(uri.as_str()).await.unwrap();
    assert!(!observation.is_fresh(), "there is no state yet");
    let mut next =
        async || timeout(LONG, observation.next_or_stale()).await.unwrap().unwrap().unwrap();
    let Observed::State(first) = next().await else { panic!("no state") };
    assert_eq!(first.text(), "0");
    assert!(matches!(next().await, Observed::Stale));
    // The server does not tell of this change.
    value.store(1, Ordering::SeqCst);
    assert!(!observation.is_fresh());
    observation.refresh();
    // Well before the client would register again by itself, 5 to 15 s after Max-Age.
    let next = timeout(Duration::from_secs(4), observation.next_or_stale()).await;
    let Some(Ok(Observed::State(second))) = next.expect("not refreshed") else {
        panic!("no state")
    };
    assert_eq!(second.text(), "1");
    assert!(observation.is_fresh());
    assert_eq!(subject.observers(), 1);
}

/// An address translator between a client and `server`, which forgets its mapping when the flag is set.
async fn nat(server: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let bind = || UdpSocket::bind("127.0.0.1:0");
    let (front, before, after) =
        (bind().await.unwrap(), bind().await.unwrap(), bind().await.unwrap());
    let address = front.local_addr().unwrap();
    let rebound = Arc::new(AtomicBool::new(false));
    let flag = rebound.clone();
    tokio::spawn(async move {
        let mut client = None;
        let (mut up, mut old, mut new) = ([0; 2048], [0; 2048], [0; 2048]);
        loop {
            tokio::select! {
                Ok((length, from)) = front.recv_from(&mut up) => {
                    client = Some(from);
                    let back = if flag.load(Ordering::SeqCst) { &after } else { &before };
                    let _ = back.send_to(&up[..length], server).await;
                }
                Ok(length) = before.recv(&mut old) => {
                    if let Some(client) = client.filter(|_| !flag.load(Ordering::SeqCst)) {
                        let _ = front.send_to(&old[..length], client).await;
                    }
                }
                Ok(length) = after.recv(&mut new) => {
                    if let Some(client) = client {
                        let _ = front.send_to(&new[..length], client).await;
                    }
                }
            }
        }
    });
    (address, rebound)
}

#[tokio::test]
async fn after_a_silent_rebinding_the_state_arrives_within_the_keep_alive() {
    let (value, subject) = (Arc::new(AtomicU32::new(0)), Subject::new());
    let server = serve(&value, &subject, 60);
    let (at, rebound) = nat(server.local_addrs()[0]).await;
    let client =
        Client::with_config(ClientConfig::new().observe_keep_alive(Duration::from_secs(1)));
    let mut observation = client.observe(format!("coap://{at}/x")).await.unwrap();
    assert_eq!(observation.next().await.unwrap().unwrap().text(), "0");
    rebound.store(true, Ordering::SeqCst);
    value.store(1, Ordering::SeqCst);
    subject.changed();
    // Two keep-alives, and four retransmission timeouts of a path that is measured in milliseconds.
    let newest = async { while observation.next().await.unwrap().unwrap().text() != "1" {} };
    timeout(Duration::from_secs(10), newest).await.expect("deaf");
    // It goes on at the new address.
    value.store(2, Ordering::SeqCst);
    subject.changed();
    let newest = async { while observation.next().await.unwrap().unwrap().text() != "2" {} };
    timeout(Duration::from_secs(10), newest).await.expect("deaf");
}

#[tokio::test]
async fn without_a_keep_alive_an_observer_of_a_quiet_resource_sends_nothing() {
    let (value, subject) = (Arc::new(AtomicU32::new(0)), Subject::new());
    let server = serve(&value, &subject, 60);
    let meter = server.meter();
    let uri = format!("coap://{}/x", server.local_addrs()[0]);
    let mut observation = Client::new().observe(uri.as_str()).await.unwrap();
    assert!(observation.next().await.unwrap().is_ok());
    let before = meter.snapshot().counters.received;
    assert!(timeout(Duration::from_secs(3), observation.next()).await.is_err());
    assert_eq!(meter.snapshot().counters.received, before);
}
