//! An hour of a device and its server: registration, readings, an observation of the device's state, over DTLS.

use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Call, Router, Server, Subject, get, post};
use ebbtide::{Client, Code, Request, Response};
use ebbtide_testnet::{Conditions, PacketTrace, play};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const MINUTES: u32 = 60;

/// The server counts readings, and its configuration changes every ten minutes.
fn application(readings: &Arc<AtomicU32>, setting: &Arc<AtomicU32>, changes: &Subject) -> Router {
    let (readings, setting) = (readings.clone(), setting.clone());
    let count = move |_: &Call<'_>| {
        readings.fetch_add(1, Ordering::SeqCst);
        Response::new(Code::CHANGED)
    };
    let read = move |_: &Call<'_>| {
        Response::content(setting.load(Ordering::SeqCst).to_string()).max_age(3600)
    };
    Router::new().route("/readings", post(count)).route("/setting", get(read).observable(changes))
}

fn hour(seed: u64) -> PacketTrace {
    let range = Duration::from_millis(20)..=Duration::from_millis(300);
    let conditions = Conditions::new().delay(range).loss(0.1).duplicates(0.02);
    play(seed, conditions, async |network| {
        let (readings, setting, changes) = (Arc::default(), Arc::default(), Subject::new());
        let router = application(&readings, &setting, &changes);
        let key = Psk::new(b"a key that nobody knows").unwrap();
        let known = key.clone();
        let dtls = DtlsBind::new(([10, 0, 0, 1], 5684), move |_| Some(known.clone()));
        let config = network.server_config().bind_dtls(dtls);
        let server = Server::with_config(router, config, [""; 0]).unwrap();
        tokio::spawn(server.run());
        let client = Client::with_config(
            network.client_config().credentials(Credentials::new("device", key)),
        );
        let mut settings = client.observe("coaps://10.0.0.1/setting").await.unwrap();
        let seen = tokio::spawn(async move {
            let mut last = String::new();
            while last != "5" {
                last = settings.next().await.unwrap().unwrap().text().into_owned();
            }
            settings.cancel().await.unwrap();
        });
        for minute in 1..=MINUTES {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let reading = Request::post("coaps://10.0.0.1/readings").unwrap().payload("21.5");
            assert!(client.request(reading).await.unwrap().is_success());
            if minute % 10 == 0 && minute < MINUTES {
                setting.fetch_add(1, Ordering::SeqCst);
                changes.changed();
            }
        }
        seen.await.unwrap();
        assert_eq!(readings.load(Ordering::SeqCst), MINUTES);
        assert!(network.elapsed() >= Duration::from_secs(3600));
    })
}

#[test]
fn an_hour_of_a_device_and_its_server_with_losses_is_the_same_twice() {
    let (first, second) = (hour(1), hour(1));
    assert!(first.packets().len() > 100, "{}", first.packets().len());
    assert!(first == second, "{first}\n{second}");
    assert!(hour(2) != first);
}
