//! Our client, asking a server with the resources of `interop/README.md`.

use super::our_server::{DIGITS, digits, patient};
use super::peers::{LOSING, REPEATING};
use super::relay::relay;
use ebbtide::{Client, Code, OptionNumber, Request, Response};
use std::net::SocketAddr;
use std::time::Duration;

/// What a peer may do otherwise than ours; `studies/peers.md` has the proofs.
pub(crate) struct Manners {
    /// Whether it puts an upload together from blocks, each of which has a token of its own.
    pub(crate) uploads: bool,
    /// What it says to a body of 3 MiB.
    pub(crate) too_large: Option<Code>,
    /// What it says to a critical option that nobody knows.
    pub(crate) bad_option: Code,
    /// Whether it spares those who ask for it a response (RFC 7967).
    pub(crate) spares_responses: bool,
    /// Whether it forgets an observer that resets a notification (RFC 7641 section 3.6).
    pub(crate) forgets_observers: bool,
    /// Which observations its client ends, at the latest by a Reset.
    pub(crate) ends: EndedObservations,
}

/// Observations of which a client does not leave the end to timeouts.
pub(crate) enum EndedObservations {
    All,
    /// Those whose states come in one block.
    OfOneBlock,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            uploads: true,
            too_large: Some(Code::REQUEST_ENTITY_TOO_LARGE),
            bad_option: Code::BAD_OPTION,
            spares_responses: true,
            forgets_observers: true,
            ends: EndedObservations::All,
        }
    }
}

/// A critical option for experiments (RFC 7252 section 12.2).
const UNKNOWN: OptionNumber = OptionNumber(65001);

pub(crate) async fn ask_everything(server: SocketAddr, manners: &Manners) {
    ask_at(&Client::new(), &format!("coap://{server}"), manners).await;
}

/// As [`ask_everything`], by any scheme.
pub(crate) async fn ask_at(client: &Client, base: &str, manners: &Manners) {
    let work = everything(client, base, manners);
    tokio::time::timeout(Duration::from_secs(120), work).await.expect("within two minutes");
}

async fn everything(client: &Client, base: &str, manners: &Manners) {
    assert_eq!(client.get(format!("{base}/test")).await.unwrap().text(), DIGITS);
    for code in [Code::PUT, Code::POST] {
        let request = Request::new(code, format!("{base}/echo")).unwrap().payload("hi");
        let got = client.request(request).await.unwrap();
        assert_eq!((got.code(), got.text().as_ref()), (Code::CHANGED, "hi"));
    }
    let deleted = client.delete(format!("{base}/echo")).await.unwrap();
    assert_eq!(deleted.code(), Code::DELETED);
    let slow = client.get(format!("{base}/separate")).await.unwrap();
    assert_eq!(slow.text(), "that took a while");
    blocks(client, base, manners).await;
    errors(client, base, manners).await;
    options(client, base, manners).await;
    observe(client, &format!("{base}/time"), |state| state.parse::<u64>().is_ok()).await;
    observe(client, &format!("{base}/times"), |state| {
        state.len() == 3000 && state.bytes().all(|byte| byte == state.as_bytes()[0])
    })
    .await;
    if manners.forgets_observers && base.starts_with("coap://") {
        is_forgotten(client, Duration::from_millis(700)).await;
    }
    client.ping(base).await.unwrap();
    // Over a connection an observation ends when the server has confirmed it.
    let over = async {
        while client.snapshot().open_exchanges() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), over).await.expect("nothing stays open");
}

/// The observations that were dropped get no more notifications once the next one, which comes
/// within `change`, was reset.
pub(crate) async fn is_forgotten(client: &Client, change: Duration) {
    let unwanted = || client.snapshot().counters.unknown_answers;
    tokio::time::sleep(change).await;
    let before = unwanted();
    assert!(before > 0, "a notification that nobody waits for");
    tokio::time::sleep(change).await;
    assert_eq!(unwanted(), before);
}

async fn blocks(client: &Client, base: &str, manners: &Manners) {
    let large = digits(1 << 20);
    let got = client.get(format!("{base}/large")).await.unwrap();
    assert!(got.body() == &large, "Block2: {}", brief(&got));
    if !manners.uploads {
        return;
    }
    let got = client.put(format!("{base}/echo"), large.clone()).await.unwrap();
    assert!(got.body() == &large, "Block1 and Block2: {}", brief(&got));
}

async fn errors(client: &Client, base: &str, manners: &Manners) {
    let missing = client.get(format!("{base}/missing")).await.unwrap();
    assert_eq!(missing.code(), Code::NOT_FOUND);
    let deleted = client.delete(format!("{base}/test")).await.unwrap();
    assert_eq!(deleted.code(), Code::METHOD_NOT_ALLOWED);
    if let Some(code) = manners.too_large {
        let got = client.put(format!("{base}/echo"), digits(3 << 20)).await.unwrap();
        assert_eq!(got.code(), code, "{}", brief(&got));
    }
    let unknown = Request::get(format!("{base}/test")).unwrap().option(UNKNOWN, b"x");
    let got = client.request(unknown).await.unwrap();
    assert_eq!(got.code(), manners.bad_option, "{}", brief(&got));
}

async fn options(client: &Client, base: &str, manners: &Manners) {
    let test = || Request::get(format!("{base}/test")).unwrap();
    // RFC 8768 section 3: who is no proxy ignores it.
    let hops = client.request(test().option(OptionNumber::HOP_LIMIT, &[3])).await.unwrap();
    assert_eq!(hops.text(), DIGITS);
    if !base.starts_with("coap://") {
        // A request that is never answered keeps its token for as long as the connection lasts.
        return;
    }
    let silent = test().option(OptionNumber::NO_RESPONSE, &[2]).non_confirmable();
    let got = client.request(silent.timeout(Duration::from_millis(500))).await;
    assert_eq!(got.is_err(), manners.spares_responses, "{got:?}");
}

/// Observes three states.
async fn observe(client: &Client, uri: &str, right: fn(&str) -> bool) {
    let mut observation = client.observe(uri).await.unwrap();
    let mut states = Vec::new();
    while states.len() < 3 {
        let state = observation.next().await.expect("more states").unwrap();
        let text = state.text().into_owned();
        assert!(right(&text), "{uri}: {}", brief(&state));
        states.push(text);
    }
    assert!(states[0] != states[1] || states[1] != states[2], "{uri}: {states:?}");
}

/// Each POST is counted once, however often its datagrams come.
async fn count(client: &Client, base: &str, times: u64) {
    let mut first = 0;
    for n in 0..times {
        let got = client.post(format!("{base}/count"), "").await.unwrap();
        let counted: u64 = got.text().parse().unwrap();
        first = if n == 0 { counted } else { first };
        assert_eq!(counted, first + n);
    }
}

/// Through a relay that repeats everything.
pub(crate) async fn count_repeated(server: SocketAddr) {
    let relay = relay(server, REPEATING, 4).await;
    count(&Client::new(), &format!("coap://{relay}"), 10).await;
}

/// Through a relay that loses a tenth each way.
pub(crate) async fn ask_lossy(server: SocketAddr, manners: &Manners) {
    let base = format!("coap://{}", relay(server, LOSING, 4).await);
    let client = Client::with_config(patient());
    count(&client, &base, 12).await;
    for _ in 0..5 {
        assert_eq!(client.get(format!("{base}/test")).await.unwrap().text(), DIGITS);
    }
    let body = digits(if manners.uploads { 10_000 } else { 1000 });
    let got = client.put(format!("{base}/echo"), body.clone()).await.unwrap();
    assert!(got.body() == &body, "{}", brief(&got));
    let slow = client.get(format!("{base}/separate")).await.unwrap();
    assert_eq!(slow.text(), "that took a while");
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

fn brief(response: &Response) -> String {
    format!("{} with {} bytes", response.code(), response.body().len())
}
