//! `coaps`: client and server over DTLS.

use crate::common::errors::source;
use ebbtide::dtls::{Credentials, DtlsBind, DtlsConfig, Failure, KeyLogger, Psk};
use ebbtide::server::{Call, Router, Subject, get, put};
use ebbtide::{Client, ClientConfig, Code, ErrorKind, Response, Server, ServerConfig};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;

fn keys(identity: &[u8]) -> Option<Psk> {
    (identity == b"device").then(|| Psk::new(b"secret").ok()).flatten()
}

fn router(counter: &Subject) -> Router {
    let state = counter.clone();
    Router::new()
        .route("/hello", get(|_: &Call<'_>| Response::content("hello")))
        .route(
            "/who",
            get(|call: &Call<'_>| {
                let identity = call.identity().unwrap_or_default();
                let local = call.remote().ip().is_loopback();
                Response::content(format!("{} {local}", String::from_utf8_lossy(identity)))
            }),
        )
        .route("/long", get(|_: &Call<'_>| Response::content("x".repeat(5000))))
        .route(
            "/echo",
            put(|call: &Call<'_>| Response::new(Code::CHANGED).payload(call.payload().to_vec())),
        )
        .route("/count", get(|_: &Call<'_>| Response::content("state")).observable(&state))
}

fn bind(counter: &Subject, address: SocketAddr) -> Server {
    bind_with(counter, address, true)
}

/// With the return routability check or without.
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
fn bind_with(counter: &Subject, address: SocketAddr, checks: bool) -> Server {
    let none: [&str; 0] = [];
    let mut dtls = DtlsConfig::default();
    dtls.server.return_routability = checks;
    let config = ServerConfig::new().dtls(dtls).bind_dtls(DtlsBind::new(address, keys));
    Server::with_config(router(counter), config, none).unwrap()
}

fn serve(counter: &Subject) -> (tokio::task::JoinHandle<()>, SocketAddr) {
    let server = bind(counter, ([127, 0, 0, 1], 0).into());
    let address = server.dtls_addrs()[0];
    (tokio::spawn(async move { drop(server.run().await) }), address)
}

fn client(identity: &str, key: &[u8]) -> Client {
    let config = ClientConfig::new()
        .credentials(Psk::new(key).ok().map(|psk| Credentials::new(identity, psk)));
    Client::with_config(config)
}

#[tokio::test]
async fn requests_bodies_in_blocks_and_observations_go_over_dtls() {
    let counter = Subject::default();
    let (_server, at) = serve(&counter);
    let client = client("device", b"secret");
    let response = client.get(format!("coaps://{at}/hello").as_str()).await.unwrap();
    assert_eq!((response.code(), response.text().as_ref()), (Code::CONTENT, "hello"));
    let who = client.get(format!("coaps://{at}/who").as_str()).await.unwrap();
    assert_eq!(who.text(), "device true", "identity and true address");
    let long = client.get(format!("coaps://{at}/long").as_str()).await.unwrap();
    assert_eq!(long.text().len(), 5000);
    let body = "y".repeat(4000);
    let echoed = client.put(format!("coaps://{at}/echo").as_str(), body.clone()).await.unwrap();
    assert_eq!(echoed.text(), body);
    assert!(client.ping(format!("coaps://{at}").as_str()).await.unwrap().is_some());
    let mut observation = client.observe(format!("coaps://{at}/count").as_str()).await.unwrap();
    for _ in 0..3 {
        let state = observation.next().await.unwrap().unwrap();
        assert_eq!(state.text(), "state");
        counter.changed();
    }
    drop(observation);
    let many = (0..20).map(|_| client.get(format!("coaps://{at}/hello")));
    for response in futures_util::future::join_all(many).await {
        assert!(response.unwrap().is_success());
    }
}

#[tokio::test]
async fn a_wrong_key_an_unknown_identity_and_none_at_all_are_told_apart_from_silence() {
    let (_server, at) = serve(&Subject::default());
    let uri = format!("coaps://{at}/hello");
    for (identity, key) in [("device", &b"wrong"[..]), ("nobody", b"secret")] {
        let error = client(identity, key).get(uri.as_str()).await.unwrap_err();
        assert!(matches!(source(&error), Some(Failure::Refused(_))), "{error:?}");
        assert_eq!(error.remote(), Some(at));
        assert!(error.to_string().contains("the identity is unknown to it or the key is wrong"));
    }
    let error = Client::new().get(uri.as_str()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoCredentials, "{error}");
}

#[tokio::test]
async fn sessions_of_two_sockets_share_no_body() {
    let secret = |call: &Call<'_>| {
        let initial = call.identity().and_then(|identity| identity.first()).copied();
        Response::content(vec![initial.unwrap_or(b'?'); 3000])
    };
    let keys = |_: &[u8]| Psk::new(b"secret").ok();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = [any, any]
        .into_iter()
        .fold(ServerConfig::new(), |config, at| config.bind_dtls(DtlsBind::new(at, keys)));
    let none: [&str; 0] = [];
    let router = Router::new().route("/secret", get(secret));
    let server = Server::with_config(router, config, none).unwrap();
    let addresses = server.dtls_addrs();
    tokio::spawn(server.run());
    // Each is the first session of its socket.
    for (identity, at) in ["alice", "bob"].into_iter().zip(addresses) {
        let client = client(identity, b"secret");
        let request = ebbtide::Request::get(format!("coaps://{at}/secret")).unwrap();
        // The second block alone: what an earlier request has left here is somebody else's.
        let mut later = client.download_from(request.clone(), 1024).await.unwrap();
        assert_eq!(later.chunk().await.unwrap().unwrap()[0], identity.as_bytes()[0]);
        assert_eq!(client.request(request).await.unwrap().body().len(), 3000);
    }
}

/// A NAT between a client and `server`, which forgets its mapping when the flag is set and makes another.
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
pub(crate) async fn nat(server: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let bind = || UdpSocket::bind("127.0.0.1:0");
    let (front, before, after) =
        (bind().await.unwrap(), bind().await.unwrap(), bind().await.unwrap());
    let address = front.local_addr().unwrap();
    let rebound = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&rebound);
    tokio::spawn(async move {
        let mut client = None;
        let (mut up, mut old, mut new) = ([0; 2048], [0; 2048], [0; 2048]);
        loop {
            let is_rebound = flag.load(Ordering::Relaxed);
            tokio::select! {
                Ok((length, from)) = front.recv_from(&mut up) => {
                    client = Some(from);
                    let back = if is_rebound { &after } else { &before };
                    let _ = back.send_to(&up[..length], server).await;
                }
                Ok(length) = before.recv(&mut old) => {
                    // A mapping that is forgotten lets nothing through.
                    if let Some(client) = client.filter(|_| !flag.load(Ordering::Relaxed)) {
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
async fn an_observation_goes_on_without_a_handshake_when_the_nat_rebinds() {
    // Without the check, the acknowledgement of a notification confirms the address.
    for checks in [true, false] {
        survives_a_rebinding(checks).await;
    }
}

#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
async fn survives_a_rebinding(checks: bool) {
    let counter = Subject::default();
    let server = bind_with(&counter, ([127, 0, 0, 1], 0).into(), checks);
    let (at, rebound) = nat(server.dtls_addrs()[0]).await;
    let client = client("device", b"secret");
    let mut observation = client.observe(format!("coaps://{at}/count").as_str()).await.unwrap();
    assert!(observation.next().await.unwrap().is_ok());
    rebound.store(true, Ordering::Relaxed);
    // The server learns the new address from the next thing that the client sends.
    assert!(client.get(format!("coaps://{at}/hello").as_str()).await.unwrap().is_success());
    for _ in 0..3 {
        counter.changed();
        let state =
            tokio::time::timeout(Duration::from_secs(20), observation.next()).await.unwrap();
        assert_eq!(state.unwrap().unwrap().text(), "state");
    }
    let counted = server.snapshot().dtls;
    assert_eq!((counted.established(), counted.addresses_changed), (1, 1), "{checks}");
}

#[tokio::test]
async fn a_silent_rebinding_is_noticed_within_the_keep_alive() {
    let counter = Subject::default();
    let server = bind(&counter, ([127, 0, 0, 1], 0).into());
    let (at, rebound) = nat(server.dtls_addrs()[0]).await;
    let psk = Psk::new(b"secret").ok();
    let config = ClientConfig::new().credentials(psk.map(|psk| Credentials::new("device", psk)));
    let client = Client::with_config(config.observe_keep_alive(Duration::from_secs(1)));
    let mut observation = client.observe(format!("coaps://{at}/count").as_str()).await.unwrap();
    assert!(observation.next().await.unwrap().is_ok());
    rebound.store(true, Ordering::Relaxed);
    counter.changed();
    let state = tokio::time::timeout(Duration::from_secs(20), observation.next()).await.unwrap();
    assert_eq!(state.unwrap().unwrap().text(), "state");
    let counted = server.snapshot().dtls;
    assert_eq!((counted.established(), counted.addresses_changed), (1, 1));
}

#[tokio::test]
async fn the_chosen_local_address_is_that_of_a_socket_for_dtls() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = server.local_addr().unwrap();
    // A port that is free: the system has just given it.
    let free = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let chosen = free.local_addr().unwrap();
    drop(free);
    let psk = Psk::new(b"secret").ok();
    let config = ClientConfig::new().credentials(psk.map(|psk| Credentials::new("device", psk)));
    let client = Client::with_config(config.local_address(chosen));
    let asked = client.clone();
    let asking = tokio::spawn(async move { asked.get(format!("coaps://{at}/x")).await });
    let mut hello = [0; 2048];
    let hello = server.recv_from(&mut hello);
    let (_, from) = tokio::time::timeout(Duration::from_secs(10), hello).await.unwrap().unwrap();
    assert_eq!(from, chosen);
    // The second socket cannot have the same port.
    let second = client.get(format!("coap://{at}/x")).await;
    assert!(matches!(&second, Err(error) if error.kind() == ErrorKind::Bind), "{second:?}");
    asking.abort();
}

#[tokio::test]
async fn another_client_resumes_the_session_that_was_saved() {
    let server = bind(&Subject::default(), ([127, 0, 0, 1], 0).into());
    let at = server.dtls_addrs()[0];
    let first = client("device", b"secret");
    assert_eq!(first.dtls_session(at).map(|_| ()), None);
    let asked = async {
        let uri = format!("coaps://{at}/hello");
        assert!(first.get(uri.as_str()).await.unwrap().is_success());
        let saved = first.dtls_session(at);
        assert!(saved.is_some());
        let mut config = ClientConfig::new();
        let psk = Psk::new(b"secret").unwrap();
        let credentials = Credentials { saved, ..Credentials::new("device", psk) };
        config = config.credentials(credentials);
        let second = Client::with_config(config);
        assert!(second.get(uri.as_str()).await.unwrap().is_success());
        let counters = server.snapshot().dtls;
        assert_eq!((counters.established(), counters.resumed), (2, 1));
    };
    asked.await;
}

#[tokio::test]
async fn the_secrets_of_a_session_are_logged_for_who_asks() {
    let (_server, at) = serve(&Subject::default());
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&lines);
    let config = ClientConfig::new()
        .credentials(Psk::new(b"secret").ok().map(|psk| Credentials::new("device", psk)))
        .key_log(KeyLogger::new(move |line| log.lock().unwrap().push(line.into())));
    let client = Client::with_config(config);
    assert!(client.get(format!("coaps://{at}/hello")).await.unwrap().is_success());
    let lines = lines.lock().unwrap();
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let [label, random, secret] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    assert_eq!((label, random.len(), secret.len()), ("CLIENT_RANDOM", 64, 96));
}

#[tokio::test]
async fn a_server_with_several_workers_serves_by_all_at_each_address() {
    let config = ServerConfig::new().workers(2).bind_dtls(DtlsBind::new(([127, 0, 0, 1], 0), keys));
    let router = router(&Subject::default());
    let server = Server::with_config(router, config, ["127.0.0.1:0"]).unwrap();
    let (plain, secured) = (server.local_addrs(), server.dtls_addrs());
    assert_eq!((plain.len(), secured.len(), server.snapshot().sockets), (1, 1, 4));
    let handle = server.handle();
    let serving = tokio::spawn(server.run());
    for _ in 0..4 {
        let client = client("device", b"secret");
        for base in [format!("coap://{}", plain[0]), format!("coaps://{}", secured[0])] {
            let response = client.get(format!("{base}/hello")).await.unwrap();
            assert!(response.is_success(), "{base}: {}", response.code());
        }
    }
    assert!(handle.shutdown(Duration::from_secs(5)).await);
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_peer_s_control_and_metrics_apply_to_its_session() {
    for before in [true, false] {
        let (_server, at) = serve(&Subject::default());
        let client = client("device", b"secret");
        let uri = format!("coaps://{at}/hello");
        if !before {
            client.get(uri.as_str()).await.unwrap();
            let metrics = client.metrics(at).expect("metrics of the session");
            assert!(metrics.srtt.is_some(), "the client's control measures: {metrics:?}");
        }
        // RFC 7252's own control measures nothing.
        let control = ebbtide::congestion::ControlConfig::parse("default").unwrap();
        client.set_control(at, control).unwrap();
        client.get(uri.as_str()).await.unwrap();
        let metrics = client.metrics(at).expect("metrics of the session");
        assert!(metrics.srtt.is_none(), "chosen before the session: {before}, {metrics:?}");
        assert_eq!(client.snapshot().sockets, 1, "no socket for coap is opened");
    }
}

/// The handshake is driven by the runtime in which the client was used first.
#[test]
fn a_handshake_that_another_runtime_awaits_ends_with_the_one_that_drives_it() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coaps://{}/hello", silent.local_addr().unwrap());
    let client = client("device", b"secret");
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    };
    let (driving, waiting) = (runtime(), runtime());
    let first = client.clone();
    let of_first = uri.clone();
    driving.spawn(async move { first.get(of_first).await });
    // The ClientHello has been sent, so the driver's runtime is the first one.
    silent.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    silent.recv(&mut [0; 2048]).unwrap();
    let asked = waiting.spawn(async move { client.get(uri).await });
    // Long enough that it waits for the handshake.
    waiting.block_on(async { tokio::time::sleep(Duration::from_millis(200)).await });
    driving.shutdown_timeout(Duration::from_secs(5));
    let answered =
        waiting.block_on(async { tokio::time::timeout(Duration::from_secs(5), asked).await });
    let error = answered.expect("it ends").unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error:?}");
}
