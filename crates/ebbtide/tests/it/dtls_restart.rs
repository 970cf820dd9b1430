//! A server over DTLS that ends without a word and starts again: its clients notice.

use crate::common::eventually::eventually;
use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Call, Router, StateFile, Subject, get};
use ebbtide::{Client, ClientConfig, Response, Server, ServerConfig};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// Much longer than anything here takes on a busy machine, and much shorter than the hour after which a state is not
/// fresh.
const PATIENCE: Duration = Duration::from_secs(120);

fn serve(state: Option<&Path>, address: SocketAddr, value: &Arc<AtomicU32>) -> Server {
    let value = value.clone();
    let show = move |_: &Call<'_>| {
        Response::content(value.load(Ordering::SeqCst).to_string()).max_age(3600)
    };
    let router = Router::new().route("/value", get(show).observable(&Subject::new()));
    let keys = |_: &[u8]| Psk::new(b"secret").ok();
    let config = ServerConfig::new().bind_dtls(DtlsBind::new(address, keys));
    let config = match state {
        Some(path) => config.state(StateFile::new(path)),
        None => config,
    };
    let none: [&str; 0] = [];
    Server::with_config(router, config, none).unwrap()
}

fn client() -> Client {
    let credentials = Credentials::new("device", Psk::new(b"secret").unwrap());
    Client::with_config(ClientConfig::new().credentials(credentials))
}

#[tokio::test]
async fn observers_have_the_next_state_after_a_restart_long_before_the_last_one_is_stale() {
    const OBSERVERS: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let value = Arc::new(AtomicU32::new(0));
    let server = serve(Some(&state), ([127, 0, 0, 1], 0).into(), &value);
    let address = server.dtls_addrs()[0];
    let mut observers = Vec::new();
    for _ in 0..OBSERVERS {
        let mut states = client().observe(format!("coaps://{address}/value")).await.unwrap();
        assert_eq!(states.next().await.unwrap().unwrap().text(), "0");
        observers.push(states);
    }
    // Their requests and their sessions are.
    let is_stored = || {
        let stored = std::fs::read(&state).unwrap();
        let count = |part: &[u8]| stored.windows(part.len()).filter(|bytes| *bytes == part).count();
        count(b"\x55value") >= OBSERVERS && count(b"\x00\x06device") >= OBSERVERS
    };
    eventually(is_stored).await;
    // It closes its socket and says nothing to anybody.
    server.close();
    server.run().await.unwrap();
    value.store(1, Ordering::SeqCst);
    let server = serve(Some(&state), address, &value);
    let mut told = JoinSet::new();
    for mut states in observers {
        told.spawn(async move {
            let next = tokio::time::timeout(PATIENCE, states.next()).await;
            next.expect("it waits for the stale state").unwrap().unwrap().text().into_owned()
        });
    }
    while let Some(text) = told.join_next().await {
        assert_eq!(text.unwrap(), "1");
    }
    assert_eq!(server.snapshot().dtls.established(), 0, "nobody needs another session");
    drop(server);
}

#[tokio::test]
async fn a_request_over_a_session_that_the_server_has_forgotten_is_answered_over_another_one() {
    let value = Arc::new(AtomicU32::new(0));
    let server = serve(None, ([127, 0, 0, 1], 0).into(), &value);
    let address = server.dtls_addrs()[0];
    let (client, uri) = (client(), format!("coaps://{address}/value"));
    assert_eq!(client.get(&*uri).await.unwrap().text(), "0");
    server.close();
    server.run().await.unwrap();
    value.store(1, Ordering::SeqCst);
    let server = serve(None, address, &value);
    assert_eq!(client.get(&*uri).await.unwrap().text(), "1");
    // Without the hint the client gives up its session only with the exchange, after all retransmissions.
    let snapshot = client.snapshot();
    assert_eq!(snapshot.controls.iter().map(|(_, counters)| counters.gave_up).sum::<u64>(), 0);
    drop(server);
}
