//! Observations of a client: in `select!`, through a restart of the server, cancelled, in time.

use crate::common::eventually::eventually;
use ebbtide::client::Observation;
use ebbtide::server::{Call, Router, Server, Subject, fetch, get};
use ebbtide::{Client, ClientConfig, Code, ContentFormat, ErrorKind, Request, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const LONG: usize = 60_000;

/// A server whose state is a number and many bytes, behind `/long`, or the number, behind `/short`.
struct Observed {
    server: Server,
    subject: Subject,
    number: Arc<AtomicU32>,
}

impl Observed {
    fn start(address: SocketAddr) -> Self {
        let (subject, number) = (Subject::new(), Arc::new(AtomicU32::new(0)));
        let state = |length: usize| {
            let number = number.clone();
            move |_: &Call<'_>| {
                let number = number.load(Ordering::SeqCst);
                let mut state = number.to_string().into_bytes();
                state.resize(state.len().max(length), b'.');
                Response::content(state).etag(&number.to_be_bytes()).max_age(1)
            }
        };
        let asked = |call: &Call<'_>| Response::content(call.payload().len().to_string());
        let router = Router::new()
            .route("/long", get(state(LONG)).observable(&subject))
            .route("/short", get(state(0)).observable(&subject))
            .route("/asked", fetch(asked).observable(&subject));
        let server = Server::bind(router, [address.to_string().as_str()]).unwrap();
        Self { server, subject, number }
    }

    fn new() -> Self {
        Self::start(([127, 0, 0, 1], 0).into())
    }

    fn address(&self) -> SocketAddr {
        self.server.local_addrs()[0]
    }

    fn change(&self) {
        self.number.fetch_add(1, Ordering::SeqCst);
        self.subject.changed();
    }
}

#[tokio::test]
async fn a_long_state_arrives_although_waiting_for_it_is_given_up_every_millisecond() {
    let observed = Observed::new();
    let client = Client::new();
    let uri = format!("coap://{}/long", observed.address());
    let mut states = client.observe(uri).await.unwrap();
    let mut tick = tokio::time::interval(Duration::from_millis(1));
    for number in 0..5 {
        let state = loop {
            tokio::select! {
                biased;
                _ = tick.tick() => {}
                state = states.next() => break state.unwrap().unwrap(),
            }
        };
        assert_eq!(state.body().len(), LONG);
        assert!(state.text().starts_with(&format!("{number}.")), "state {number}");
        observed.change();
    }
}

#[tokio::test]
async fn the_server_is_told_that_an_observation_is_cancelled() {
    let observed = Observed::new();
    let client = Client::new();
    let uri = format!("coap://{}/short", observed.address());
    let mut states = client.observe(uri).await.unwrap();
    assert_eq!(states.next().await.unwrap().unwrap().text(), "0");
    assert_eq!(observed.subject.observers(), 1);
    // Renewed after Max-Age and the grace: the same observer, not another one.
    states.cancel().await.unwrap();
    assert_eq!(observed.subject.observers(), 0, "without a change");
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

/// The next state, in time.
async fn text(states: &mut Observation) -> String {
    let next = tokio::time::timeout(Duration::from_secs(20), states.next()).await.unwrap();
    next.unwrap().unwrap().text().into_owned()
}

#[tokio::test]
async fn observers_of_one_resource_share_a_registration_and_end_one_by_one() {
    let observed = Observed::new();
    let client = Client::new();
    let uri = format!("coap://{}/short", observed.address());
    let mut first = client.observe(&*uri).await.unwrap();
    assert_eq!(text(&mut first).await, "0");
    let mut second = client.observe(&*uri).await.unwrap();
    assert_eq!(text(&mut second).await, "0", "the latest state");
    assert_eq!(observed.subject.observers(), 1, "RFC 7641 section 3.1");
    let waiting = tokio::spawn(async move { (text(&mut second).await, second) });
    tokio::task::yield_now().await;
    observed.change();
    assert_eq!(text(&mut first).await, "1");
    let (state, mut second) = waiting.await.unwrap();
    assert_eq!(state, "1");
    first.cancel().await.unwrap();
    assert_eq!(observed.subject.observers(), 1, "the other one stays");
    observed.change();
    assert_eq!(text(&mut second).await, "2");
    let mut third = client.observe(&*uri).await.unwrap();
    drop(second);
    observed.change();
    while text(&mut third).await != "3" {}
    third.cancel().await.unwrap();
    assert_eq!(observed.subject.observers(), 0);
    let mut fourth = client.observe(&*uri).await.unwrap();
    assert_eq!(text(&mut fourth).await, "3", "registered anew");
    assert_eq!(observed.subject.observers(), 1);
}

#[tokio::test]
async fn options_of_the_cache_key_make_another_registration() {
    let observed = Observed::new();
    let client = Client::new();
    let request = Request::get(format!("coap://{}/short", observed.address())).unwrap();
    let mut plain = client.observe_with(request.clone()).await.unwrap();
    let mut json = client.observe_with(request.accept(ContentFormat::JSON)).await.unwrap();
    assert_eq!((text(&mut plain).await, text(&mut json).await), ("0".into(), "0".into()));
    assert_eq!(observed.subject.observers(), 2);
}

#[tokio::test]
async fn a_state_that_is_no_longer_fresh_is_requested_for_an_observer_that_joins() {
    let observed = Observed::new();
    let client = Client::new();
    let uri = format!("coap://{}/short", observed.address());
    let mut first = client.observe(&*uri).await.unwrap();
    assert_eq!(text(&mut first).await, "0");
    // A change that is not told, and the end of Max-Age.
    observed.number.store(7, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let mut second = client.observe(&*uri).await.unwrap();
    let next = tokio::time::timeout(Duration::from_secs(3), second.next()).await.unwrap();
    assert_eq!(next.unwrap().unwrap().text(), "7");
    assert_eq!(text(&mut first).await, "7");
    assert_eq!(observed.subject.observers(), 1);
}

#[tokio::test]
async fn every_observer_gets_the_error_that_ends_the_registration() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    let request = Request::get(uri).unwrap().timeout(Duration::from_millis(300));
    let client = Client::new();
    let mut both = Vec::new();
    for _ in 0..2 {
        both.push(client.observe_with(request.clone()).await.unwrap());
    }
    for states in &mut both {
        let ended = tokio::time::timeout(Duration::from_secs(5), states.next()).await.unwrap();
        assert!(
            matches!(&ended, Some(Err(error)) if error.kind() == ErrorKind::TimedOut),
            "{ended:?}"
        );
        assert!(states.next().await.is_none());
    }
}

#[tokio::test]
async fn an_observation_goes_on_when_the_server_comes_back() {
    let first = Observed::new();
    // A client that expects a short path gives up soon.
    let short = ClientConfig::new().ack_timeout(Duration::from_millis(50)).max_retransmit(2);
    let (address, client) = (first.address(), Client::with_config(short));
    let uri = format!("coap://{address}/short");
    let mut states = client.observe(uri.as_str()).await.unwrap();
    let mut ending = client.observe(uri).await.unwrap().end_at_error();
    for states in [&mut states, &mut ending] {
        assert_eq!(states.next().await.unwrap().unwrap().text(), "0");
    }
    first.server.close();
    first.server.run().await.unwrap();
    // Nobody is there: the network says so of the next message, here of a request.
    assert!(client.get(format!("coap://{address}/short")).await.is_err());
    let lost = ending.next().await;
    assert!(matches!(&lost, Some(Err(error)) if error.kind() == ErrorKind::Network), "{lost:?}");
    assert!(ending.next().await.is_none());
    let again = tokio::spawn(async move { (states.next().await, states) });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let second = Observed::start(address);
    second.change();
    let (state, mut states) = again.await.unwrap();
    assert_eq!(state.unwrap().unwrap().text(), "1");
    eventually(|| second.subject.observers() == 1).await;
    second.change();
    assert_eq!(states.next().await.unwrap().unwrap().text(), "2");
}

#[tokio::test]
async fn the_first_answer_has_the_time_of_the_request() {
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("coap://{}/x", silent.local_addr().unwrap());
    let request = Request::get(uri).unwrap().timeout(Duration::from_millis(300));
    let client = Client::new();
    let mut states = client.observe_with(request).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(5), states.next()).await.unwrap();
    assert!(matches!(&ended, Some(Err(error)) if error.kind() == ErrorKind::TimedOut), "{ended:?}");
    assert!(states.next().await.is_none());
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

#[tokio::test]
async fn a_fetch_with_a_long_body_is_observed() {
    let observed = Observed::new();
    let request = Request::fetch(format!("coap://{}/asked", observed.address())).unwrap();
    let request = request.payload(vec![7; 3000]);
    let mut states = Client::new().observe_with(request).await.unwrap();
    let first = states.next().await.unwrap().unwrap();
    assert_eq!((first.code(), first.text().as_ref()), (Code::CONTENT, "3000"));
}

#[tokio::test]
async fn an_observation_is_a_stream() {
    use futures_util::StreamExt;
    let observed = Observed::new();
    let uri = format!("coap://{}/short", observed.address());
    let states = Client::new().observe(uri).await.unwrap();
    let texts = states.take(1).map(|state| state.unwrap().text().into_owned());
    assert_eq!(texts.collect::<Vec<_>>().await, ["0"]);
}
