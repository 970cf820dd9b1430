//! A link that is down for a while ends no observation (RFC 7641 section 4.5): neither where the
//! server's system reports it, nor where datagrams are lost silently.

use ebbtide::server::{Call, Router, Server, Subject, get};
use ebbtide::{Client, Response};
use ebbtide_testnet::{Conditions, TestNetwork, play};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OBSERVERS: usize = 30;
const SECOND: Duration = Duration::from_secs(1);

#[derive(Copy, Clone, Debug)]
enum Outage {
    /// The link of the server is down, and it knows.
    Reported,
    /// Somewhere on the way.
    Silent,
}

/// How long after its end the last of the observers of a changing state has the latest one.
fn after(seconds: u32, outage: Outage, subject: fn() -> Subject) -> Duration {
    let took = std::cell::Cell::new(Duration::MAX);
    play(seconds.into(), Conditions::new(), async |network| {
        took.set(last_state(&network, seconds * SECOND, outage, subject()).await);
    });
    took.get()
}

async fn last_state(
    network: &TestNetwork,
    down: Duration,
    outage: Outage,
    changes: Subject,
) -> Duration {
    let state = Arc::new(AtomicU32::new(0));
    let shown = state.clone();
    let read = move |_: &Call<'_>| {
        Response::content(shown.load(Ordering::SeqCst).to_string()).max_age(86_400)
    };
    let set = |value| {
        state.store(value, Ordering::SeqCst);
        changes.changed();
    };
    let router = Router::new().route("/x", get(read).observable(&changes));
    let server = Server::with_config(router, network.server_config(), ["10.0.0.1:5683"]).unwrap();
    tokio::spawn(server.run());
    let (mut told, mut observers) = (JoinSet::new(), JoinSet::new());
    for number in 0..OBSERVERS as u8 {
        let device = Ipv4Addr::new(10, 0, 1, number);
        let client = Client::with_config(network.client_config().local_address((device, 0).into()));
        let mut states = client.observe("coap://10.0.0.1/x").await.unwrap();
        observers.spawn(async move {
            while states.next().await.unwrap().unwrap().text() != "1" {}
            states
        });
    }
    sleep(SECOND).await;
    // Once an observer has acknowledged a notification, its address is not forged, and it is tried as often as others.
    set(1);
    while let Some(states) = observers.join_next().await {
        let mut states = states.unwrap();
        told.spawn(async move { while states.next().await.unwrap().unwrap().text() != "3" {} });
    }
    sleep(SECOND).await;
    match outage {
        Outage::Reported => network.unplug(SERVER),
        Outage::Silent => (0..OBSERVERS as u8)
            .for_each(|number| network.cut(SERVER, Ipv4Addr::new(10, 0, 1, number))),
    }
    set(2);
    sleep(down / 2).await;
    set(3);
    sleep(down / 2).await;
    assert_eq!(changes.observers(), OBSERVERS, "{outage:?}, {down:?}");
    network.restore();
    let up = network.elapsed();
    while let Ok(Some(one)) = tokio::time::timeout(120 * SECOND, told.join_next()).await {
        one.unwrap();
    }
    match told.is_empty() {
        true => network.elapsed() - up,
        false => Duration::MAX,
    }
}

#[test]
fn every_observer_has_the_last_state_soon_after_the_server_s_link_was_down() {
    for subject in [Subject::new, Subject::non_confirmable] {
        for seconds in [1, 3, 10, 30, 60, 120] {
            let took = after(seconds, Outage::Reported, subject);
            // The pause after a transmission that has not left is 2.8 s at most.
            assert!(took < 3 * SECOND, "{seconds} s: {took:?}");
        }
    }
}

#[test]
fn an_outage_that_nobody_reports_is_outlasted_by_the_copies_of_confirmable_notifications() {
    // Copies leave at most 6, 29 and 93 s after the first, the last of them no sooner than after 62 s.
    for (seconds, latest) in [(1, 6), (3, 6), (10, 29), (30, 93), (60, 93)] {
        let took = after(seconds, Outage::Silent, Subject::new);
        assert!(took < (latest - seconds) * SECOND, "{seconds} s: {took:?}");
    }
}
