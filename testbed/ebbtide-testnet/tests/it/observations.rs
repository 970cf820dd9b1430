//! Observations that know when they are deaf: freshness, a new registration on demand, and the keep-alive.

use ebbtide::client::Observed;
use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Router, Server, Subject, get};
use ebbtide::{Client, ClientConfig, Response};
use ebbtide_testnet::{Conditions, TestNetwork, play};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const DEVICE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 40_000);

/// A resource whose state is a number.
#[derive(Clone, Default)]
struct Number {
    value: Arc<AtomicU32>,
    changes: Subject,
}

impl Number {
    /// Serves it with this Max-Age, by coap and by coaps.
    fn serve(&self, network: &TestNetwork, max_age: u32) {
        let value = self.value.clone();
        let read = get(move || {
            let value = value.clone();
            async move { Response::content(value.load(Ordering::SeqCst).to_string()).max_age(max_age) }
        });
        let router = Router::new().route("/x", read.observable(&self.changes));
        let keys = |_: &[u8]| Psk::new(b"key").ok();
        let config = network.server_config().bind_dtls(DtlsBind::new(([10, 0, 0, 1], 5684), keys));
        let server = Server::with_config(router, config, ["10.0.0.1:5683"]).unwrap();
        tokio::spawn(server.run());
    }

    fn set(&self, value: u32) {
        self.value.store(value, Ordering::SeqCst);
        self.changes.changed();
    }
}

#[test]
fn a_state_that_outlives_its_max_age_is_reported_once_and_refreshed_on_demand() {
    play(1, Conditions::new(), async |network| {
        let number = Number::default();
        number.serve(&network, 60);
        let client = Client::with_config(network.client_config());
        let mut observation = client.observe("coap://10.0.0.1/x").await.unwrap();
        assert!(!observation.is_fresh(), "there is no state yet");
        let first = observation.next_or_stale().await.unwrap().unwrap();
        assert!(matches!(first, Observed::State(state) if state.text() == "0"));
        let arrived = network.elapsed();
        let stale = observation.next_or_stale().await.unwrap().unwrap();
        assert!(matches!(stale, Observed::Stale) && !observation.is_fresh());
        assert!((60 * SECOND..61 * SECOND).contains(&(network.elapsed() - arrived)));
        // The server does not tell of this change.
        number.value.store(1, Ordering::SeqCst);
        observation.refresh();
        // Before the client would register again by itself, 5 to 15 s after Max-Age.
        let second = timeout(4 * SECOND, observation.next_or_stale()).await.expect("not refreshed");
        assert!(matches!(second, Some(Ok(Observed::State(state))) if state.text() == "1"));
        assert!(observation.is_fresh());
        assert_eq!(number.changes.observers(), 1);
    });
}

/// Observes, changes the state after the translator has forgotten the device, and returns how long the state took.
fn deaf_for(uri: &str, config: impl Fn(ClientConfig) -> ClientConfig) -> Duration {
    let took = std::cell::Cell::new(Duration::MAX);
    play(2, Conditions::new(), async |network| {
        let number = Number::default();
        number.serve(&network, 3600);
        let credentials = Credentials::new("device", Psk::new(b"key").unwrap());
        let settings = network.client_config().local_address(DEVICE).credentials(credentials);
        let mut observation = Client::with_config(config(settings)).observe(uri).await.unwrap();
        assert_eq!(observation.next().await.unwrap().unwrap().text(), "0");
        sleep(3 * SECOND).await;
        network.rebind(DEVICE).unwrap();
        number.set(1);
        let changed = network.elapsed();
        if timeout(600 * SECOND, observation.next()).await.is_ok() {
            took.set(network.elapsed() - changed);
            // It goes on at the new address.
            number.set(2);
            assert_eq!(
                timeout(SECOND, observation.next()).await.unwrap().unwrap().unwrap().text(),
                "2"
            );
        }
    });
    took.get()
}

#[test]
fn after_a_silent_rebinding_the_state_arrives_within_the_keep_alive() {
    let keeps_alive = |config: ClientConfig| config.observe_keep_alive(10 * SECOND);
    let plain = deaf_for("coap://10.0.0.1/x", keeps_alive);
    assert!(plain <= 10 * SECOND, "{plain:?}");
    // The ping moves the session, and the notification follows with its next transmission.
    let secured = deaf_for("coaps://10.0.0.1/x", keeps_alive);
    assert!(secured <= 10 * SECOND, "{secured:?}");
}

#[test]
fn without_a_keep_alive_an_observer_is_deaf_until_max_age_is_over() {
    assert_eq!(deaf_for("coap://10.0.0.1/x", |config| config), Duration::MAX);
}

#[test]
fn without_a_keep_alive_an_observer_of_a_quiet_resource_sends_nothing() {
    play(3, Conditions::new(), async |network| {
        let number = Number::default();
        number.serve(&network, 3600);
        let client = Client::with_config(network.client_config());
        let mut observation = client.observe("coap://10.0.0.1/x").await.unwrap();
        assert!(observation.next().await.unwrap().is_ok());
        let before = network.trace().packets().len();
        assert!(timeout(3500 * SECOND, observation.next()).await.is_err());
        assert_eq!(network.trace().packets().len(), before);
    });
}
