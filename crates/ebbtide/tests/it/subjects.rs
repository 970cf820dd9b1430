//! How often and in which way observers are told.

use ebbtide::server::{Reliability, Router, Server, Subject, get};
use ebbtide::{Client, Response};
use ebbtide_core::endpoint::Counters;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn sum(server: &Server) -> Counters {
    server.snapshot().counters
}

/// A server of a number that is observed.
fn serve(subject: &Subject) -> (Server, String, Arc<AtomicU32>) {
    let number = Arc::new(AtomicU32::new(0));
    let shown = number.clone();
    let show = move || Response::content(shown.load(Ordering::SeqCst).to_string());
    let router = Router::new().route("/number", get(show).observable(subject));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let uri = format!("coap://{}/number", server.local_addrs()[0]);
    (server, uri, number)
}

#[tokio::test]
async fn a_subject_with_a_span_tells_the_last_state_of_each_span() {
    let span = Duration::from_secs(1);
    let subject = Subject::new().at_most_every(span);
    let (_server, uri, number) = serve(&subject);
    let client = Client::new();
    let mut states = client.observe(&*uri).await.unwrap();
    assert_eq!(states.next().await.unwrap().unwrap().text(), "0");
    // A hundred changes, of which the first is told at once and the last at the end of the span.
    for value in 1..=100 {
        number.store(value, Ordering::SeqCst);
        subject.changed();
        tokio::task::yield_now().await;
    }
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "100") {
        let state = tokio::time::timeout(5 * span, states.next()).await.expect("the last state");
        seen.push(state.unwrap().unwrap().text().into_owned());
    }
    assert!(seen.len() <= 3, "{seen:?}");
    // The span is over, and a change is told at once again.
    tokio::time::sleep(2 * span).await;
    number.store(101, Ordering::SeqCst);
    subject.changed();
    let state = tokio::time::timeout(span / 2, states.next()).await.expect("at once");
    assert_eq!(state.unwrap().unwrap().text(), "101");
}

#[tokio::test]
async fn a_change_says_how_its_notification_is_sent() {
    // What is sent Confirmable is acknowledged, so that the server receives it.
    for (subject, quiet, loud) in [(Subject::new(), 0, 1), (Subject::non_confirmable(), 0, 1)] {
        let (server, uri, number) = serve(&subject);
        let client = Client::new();
        let mut states = client.observe(&*uri).await.unwrap();
        states.next().await.unwrap().unwrap();
        for (reliability, acknowledged) in
            [(Reliability::NonConfirmable, quiet), (Reliability::Confirmable, loud)]
        {
            let before = sum(&server).received;
            number.fetch_add(1, Ordering::SeqCst);
            subject.changed_as(reliability);
            states.next().await.unwrap().unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(sum(&server).received - before, acknowledged, "{reliability:?}");
        }
    }
}

#[tokio::test]
async fn a_span_that_is_set_after_a_subject_was_cloned_applies_to_all_clones() {
    let span = Duration::from_secs(1);
    let subject = Subject::new();
    // The router has a clone.
    let (_server, uri, number) = serve(&subject);
    let subject = subject.at_most_every(span);
    let client = Client::new();
    let mut states = client.observe(&*uri).await.unwrap();
    states.next().await.unwrap().unwrap();
    for value in 1..=20 {
        number.store(value, Ordering::SeqCst);
        subject.changed();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "20") {
        let state = tokio::time::timeout(5 * span, states.next()).await.expect("the last state");
        seen.push(state.unwrap().unwrap().text().into_owned());
    }
    assert!(seen.len() <= 2, "{seen:?}");
}

#[test]
fn a_span_that_began_in_a_runtime_that_has_ended_is_over() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let subject = Subject::new().at_most_every(Duration::from_millis(100));
    runtime().block_on(async { subject.changed() });
    runtime().block_on(async {
        let (server, uri, number) = serve(&subject);
        tokio::spawn(server.run());
        let client = Client::new();
        let mut states = client.observe(&*uri).await.unwrap();
        assert_eq!(states.next().await.unwrap().unwrap().text(), "0");
        number.store(1, Ordering::SeqCst);
        subject.changed();
        let next = tokio::time::timeout(Duration::from_secs(20), states.next()).await;
        assert_eq!(next.unwrap().unwrap().unwrap().text(), "1");
    });
}
