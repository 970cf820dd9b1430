//! One session with both roles: a device opens it, and its server then asks the device.

use crate::common::dtls as certificates;
use crate::common::eventually::eventually;
use crate::common::stream::{self, Certificates};
use ebbtide::dtls::{Credentials, DtlsBind, DtlsConfig, Psk};
use ebbtide::server::{
    Call, HandlerError, Remote, Router, State, Subject, TestServer, get, post, put,
};
use ebbtide::stream::{Listen, TlsServer, Trust};
use ebbtide::{
    Client, ClientConfig, Code, Error, ErrorKind, Peer, Request, Response, Scheme, Server,
    ServerConfig,
};
use futures_util::future::join_all;
use rcgen::KeyPair;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A device that registered, and the identity that its registration had.
type Registered = (Peer, String);

pub(crate) fn name(call: &Call<'_>) -> String {
    String::from_utf8_lossy(call.identity().unwrap_or(b"nobody")).into_owned()
}

/// A server's resources, and the devices that register.
fn registry() -> (Router, UnboundedReceiver<Registered>) {
    let (devices, registered) = unbounded_channel();
    let register = async |peer: Peer,
                          call: Call<'static>,
                          State(devices): State<UnboundedSender<Registered>>| {
        devices.send((peer, name(&call))).unwrap();
        Code::CREATED
    };
    let router = Router::new()
        .route("/rd", post(register))
        .route("/hello", get(|| "hello"))
        .with_state(devices);
    (router, registered)
}

/// A device's resources.
fn device_router(counter: &Subject) -> Router {
    let ask_back = async |peer: Peer| -> Result<String, HandlerError> {
        Ok(peer.get("/hello").await?.text().into_owned())
    };
    Router::new()
        .route("/who", get(|call: &Call<'_>| Response::content(name(call))))
        .route("/image", put(|call: &Call<'_>| Response::content(call.payload().len().to_string())))
        .route("/count", get(|| "state").observable(counter))
        .route("/back", get(ask_back))
        .route("/never", get(async || std::future::pending::<Code>().await))
}

fn psk_config(identity: &str) -> ClientConfig {
    let psk = Psk::new(b"secret").ok();
    ClientConfig::new().credentials(psk.map(|psk| Credentials::new(identity, psk)))
}

fn psk_server(router: Router, limits: impl FnOnce(&mut DtlsConfig)) -> (Server, SocketAddr) {
    let keys = |identity: &[u8]| {
        identity.starts_with(b"device").then(|| Psk::new(b"secret").ok()).flatten()
    };
    let mut dtls = DtlsConfig::default();
    limits(&mut dtls);
    let config =
        ServerConfig::new().dtls(dtls).bind_dtls(DtlsBind::new(certificates::local(), keys));
    let none: [&str; 0] = [];
    let server = Server::with_config(router, config, none).unwrap();
    let at = server.dtls_addrs()[0];
    (server, at)
}

/// Registers a device; the handle that its server has to it.
async fn register(
    device: &Client,
    base: &str,
    devices: &mut UnboundedReceiver<Registered>,
) -> Registered {
    let created = device.post(format!("{base}/rd"), "").await.unwrap();
    assert_eq!(created.code(), Code::CREATED, "{base}");
    devices.recv().await.unwrap()
}

/// All that both ends can ask over the session that the device opens, which knows the server as `server`.
async fn both_roles(
    base: &str,
    device: (ClientConfig, &str),
    server: &str,
    devices: &mut UnboundedReceiver<Registered>,
) {
    let counter = Subject::new();
    let client = Client::serving(device_router(&counter), device.0).unwrap();
    let (peer, identity) = register(&client, base, devices).await;
    assert_eq!(identity, device.1, "{base}");
    assert_eq!(peer.get("/who").await.unwrap().text(), server, "{base}");
    let image = peer.put("/image", vec![7; 60_000]).await.unwrap();
    assert_eq!(image.text(), "60000", "{base}");
    assert_eq!(peer.get("/back").await.unwrap().text(), "hello", "{base}");
    assert_eq!(peer.get("/missing").await.unwrap().code(), Code::NOT_FOUND, "{base}");
    let mut states = peer.observe("/count").unwrap();
    for _ in 0..3 {
        assert_eq!(states.next().await.unwrap().unwrap().text(), "state", "{base}");
        counter.changed();
    }
    states.cancel().await.unwrap();
    eventually(|| counter.observers() == 0).await;
    peer.ping().await.unwrap();
    let asks = join_all((0..20).map(|_| client.get(format!("{base}/hello"))));
    let (asks, answers) = tokio::join!(asks, join_all((0..20).map(|_| peer.get("/who"))));
    assert!(asks.into_iter().chain(answers).all(|answer| answer.unwrap().is_success()), "{base}");
    assert_eq!(client.snapshot().open_exchanges(), 0, "{base}");
    assert!(peer.remote().is_some_and(|at| at.ip().is_loopback()), "{base}");
}

#[tokio::test]
async fn over_udp_the_server_asks_by_its_own_socket() {
    let (router, mut devices) = registry();
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let base = format!("coap://{}", server.local_addrs()[0]);
    tokio::spawn(server.run());
    both_roles(&base, (ClientConfig::new(), "nobody"), "nobody", &mut devices).await;
}

#[tokio::test]
async fn a_servers_client_asks_by_the_servers_own_sockets_and_ends_with_them() {
    let router = || Router::new().route("/from", get(|Remote(from): Remote| from.to_string()));
    let servers = [0, 1].map(|_| Server::bind(router(), ["127.0.0.1:0", "[::1]:0"]).unwrap());
    let addresses = servers.each_ref().map(Server::local_addrs);
    let clients = servers.each_ref().map(|server| server.client().unwrap());
    let handle = servers[0].handle();
    for server in servers {
        tokio::spawn(server.run());
    }
    // Both ask each other at once, over both families, and each is asked where it asks from.
    for family in 0..2 {
        let [first, second] = addresses.each_ref().map(|addresses| addresses[family]);
        let ask = |client: Client, at: SocketAddr| async move {
            client.get(format!("coap://{at}/from")).await.unwrap().text().into_owned()
        };
        for _ in 0..3 {
            let asked =
                tokio::join!(ask(clients[0].clone(), second), ask(clients[1].clone(), first),);
            assert_eq!(asked, (first.to_string(), second.to_string()));
        }
    }
    assert_eq!(clients[0].snapshot().sockets, 0, "none of its own");
    // A client that is dropped closes no socket of the server.
    let [first, second] = clients;
    drop(second);
    let uri = format!("coap://{}/from", addresses[1][0]);
    assert!(first.get(&*uri).await.unwrap().is_success());
    assert!(handle.shutdown(Duration::from_secs(5)).await);
    assert_eq!(first.get(&*uri).await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_server_with_several_workers_has_no_client_on_its_sockets() {
    let config = ServerConfig::new().workers(2);
    let server = Server::with_config(Router::new(), config, ["127.0.0.1:0"]).unwrap();
    let error = server.client().unwrap_err();
    assert!(error.to_string().contains("use one worker"), "{error}");
}

#[tokio::test]
async fn over_dtls_with_keys_each_end_knows_the_other() {
    let (router, mut devices) = registry();
    let (server, at) = psk_server(router, |_| ());
    tokio::spawn(server.run());
    let device = (psk_config("device-7"), "device-7");
    both_roles(&format!("coaps://{at}"), device, "device-7", &mut devices).await;
}

#[tokio::test]
async fn over_dtls_with_certificates_each_end_knows_the_other() {
    let authority = certificates::authority_with("ours", KeyPair::generate().unwrap());
    let tls = TlsServer::new(certificates::of_server(&authority));
    let tls = tls.require_client_certificates(&certificates::trust(&authority)).unwrap();
    let (router, mut devices) = registry();
    let bind = DtlsBind::with_certificates(certificates::local(), &tls).unwrap();
    let none: [&str; 0] = [];
    let server = Server::with_config(router, ServerConfig::new().bind_dtls(bind), none).unwrap();
    let base = format!("coaps://{}", server.dtls_addrs()[0]);
    tokio::spawn(server.run());
    let own = certificates::issue(&authority, &certificates::params(&["device-8.example"]));
    let config = certificates::config(&certificates::trust(&authority), Some(&own));
    both_roles(&base, (config, "device-8.example"), "localhost", &mut devices).await;
}

#[tokio::test]
async fn over_connections_both_ends_ask() {
    let shown = Certificates::new();
    let (router, mut devices) = registry();
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let identity = shown.identity();
    let listen = [
        Listen::Tcp(certificates::local()),
        Listen::Tls(certificates::local(), identity.clone().into()),
        Listen::Ws(certificates::local()),
        Listen::Wss(certificates::local(), identity.into()),
    ];
    let server = listen.into_iter().fold(server, |server, at| server.listen(at).unwrap());
    let bases = [Scheme::CoapTcp, Scheme::CoapsTcp, Scheme::CoapWs, Scheme::CoapsWs]
        .map(|scheme| (scheme.is_secure(), stream::base(&server, scheme)));
    tokio::spawn(server.run());
    for (is_secure, base) in bases {
        let trust = Trust::authorities(shown.authority.as_bytes()).unwrap();
        let known = if is_secure { "localhost" } else { "nobody" };
        both_roles(&base, (ClientConfig::new().trust(trust), "nobody"), known, &mut devices).await;
    }
}

#[tokio::test]
async fn the_handle_follows_a_session_to_its_new_address() {
    let (router, mut devices) = registry();
    let (server, at) = psk_server(router, |_| ());
    let (nat, rebound) = super::dtls::nat(at).await;
    let device = Client::serving(device_router(&Subject::new()), psk_config("device")).unwrap();
    let base = format!("coaps://{nat}");
    let (peer, _) = register(&device, &base, &mut devices).await;
    let before = peer.remote().unwrap();
    rebound.store(true, std::sync::atomic::Ordering::Relaxed);
    // What the device sends next moves the session.
    assert!(device.get(format!("{base}/hello")).await.unwrap().is_success());
    assert_eq!(peer.put("/image", vec![7; 5000]).await.unwrap().text(), "5000");
    assert_ne!(peer.remote().unwrap(), before);
    assert_eq!(server.snapshot().dtls.established(), 1);
}

fn is_gone<T>(result: &Result<T, Error>) -> bool {
    matches!(&result, Err(error) if error.kind() == ErrorKind::Gone)
}

#[tokio::test]
async fn a_dtls_session_that_ends_fails_what_is_under_way_and_all_that_follows_at_once() {
    let (router, mut devices) = registry();
    let (server, at) = psk_server(router, |dtls| dtls.server.limits.sessions = 1);
    tokio::spawn(server.run());
    let (base, counter) = (format!("coaps://{at}"), Subject::new());
    let device = Client::serving(device_router(&counter), psk_config("device-1")).unwrap();
    let (peer, _) = register(&device, &base, &mut devices).await;
    let mut states = peer.observe("/count").unwrap();
    assert!(states.next().await.unwrap().is_ok());
    let under_way = tokio::spawn({
        let peer = peer.clone();
        async move { peer.get("/never").await }
    });
    // There is room for one session: another device takes its place.
    let other = Client::serving(device_router(&counter), psk_config("device-2")).unwrap();
    let (next, _) = register(&other, &base, &mut devices).await;
    assert!(is_gone(&under_way.await.unwrap()));
    let last = states.next().await.unwrap();
    assert!(is_gone(&last), "{last:?}");
    assert!(states.next().await.is_none());
    assert!(is_gone(&peer.get("/who").await) && is_gone(&peer.ping().await));
    assert!(is_gone(&peer.observe("/count")));
    assert_eq!((peer.remote(), peer.identity()), (None, None));
    // Nothing of it reaches the session that took its place, and vice versa.
    assert_eq!(next.get("/who").await.unwrap().text(), "device-2");
}

#[tokio::test]
async fn a_session_that_the_device_begins_anew_has_a_handle_of_its_own() {
    let (router, mut devices) = registry();
    // A session without a connection ID is known by its address.
    let (server, at) = psk_server(router, |dtls| dtls.server.cid_length = None);
    tokio::spawn(server.run());
    let base = format!("coaps://{at}");
    let port = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let start = || {
        let config = psk_config("device").local_address(port);
        Client::serving(device_router(&Subject::new()), config).unwrap()
    };
    let device = start();
    let (before, _) = register(&device, &base, &mut devices).await;
    drop(device);
    // Restarted at the same address, without a word of farewell.
    let (device, after) = loop {
        let device = start();
        match device.post(format!("{base}/rd"), "").await {
            Ok(_) => break (device, devices.recv().await.unwrap().0),
            // Its socket is closed a moment later.
            Err(error) if error.kind() == ErrorKind::Bind => {
                tokio::time::sleep(Duration::from_millis(5)).await
            }
            Err(error) => panic!("{error}"),
        }
    };
    let gone = before.get("/who").await;
    assert!(is_gone(&gone), "{gone:?}");
    assert_eq!(after.get("/who").await.unwrap().text(), "device");
    assert_eq!(device.snapshot().open_exchanges(), 0);
}

#[tokio::test]
async fn a_connection_that_ends_ends_its_handle() {
    let (router, mut devices) = registry();
    let (server, at) = stream::serve_tcp_with(router, ServerConfig::new());
    tokio::spawn(server.run());
    let base = format!("coap+tcp://{at}");
    let device = Client::serving(device_router(&Subject::new()), ClientConfig::new()).unwrap();
    let (peer, _) = register(&device, &base, &mut devices).await;
    let mut states = peer.observe("/count").unwrap();
    assert!(states.next().await.unwrap().is_ok());
    drop(device);
    let last = tokio::time::timeout(Duration::from_secs(60), states.next()).await.unwrap();
    assert!(matches!(last, Some(Err(_))), "{last:?}");
    assert!(states.next().await.is_none());
    assert!(is_gone(&peer.get("/who").await));
    assert_eq!(peer.remote(), None);
}

#[tokio::test]
async fn the_handle_holds_no_socket_and_fails_once_the_server_is_closed() {
    let (router, mut devices) = registry();
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let (at, handle) = (server.local_addrs()[0], server.handle());
    let running = tokio::spawn(server.run());
    let device = Client::serving(device_router(&Subject::new()), ClientConfig::new()).unwrap();
    let (peer, _) = register(&device, &format!("coap://{at}"), &mut devices).await;
    assert!(handle.shutdown(Duration::from_secs(10)).await);
    running.await.unwrap().unwrap();
    assert_eq!(peer.get("/who").await.unwrap_err().kind(), ErrorKind::Closed);
    // The address is free.
    Server::bind(Router::new(), [at]).unwrap();
}

#[tokio::test]
async fn a_request_and_a_response_with_the_same_numbers_are_told_apart() {
    let (router, mut devices) = registry();
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    let at = server.local_addrs()[0];
    tokio::spawn(server.run());
    let device = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    device.connect(at).await.unwrap();
    // Confirmable POST /rd.
    device.send(&[0x40, 0x02, 0, 1, 0xb2, b'r', b'd']).await.unwrap();
    let mut buf = [0; 64];
    device.recv(&mut buf).await.unwrap();
    let (peer, _) = devices.recv().await.unwrap();
    let asked = tokio::spawn(async move { peer.get("/x").await });
    let length = device.recv(&mut buf).await.unwrap();
    let request = buf[..length].to_vec();
    let token = usize::from(request[0] & 0x0f);
    assert_eq!((request[0] & 0xf0, request[1]), (0x40, 0x01), "a Confirmable GET");
    // A GET /hello with the message ID and the token of the server's own request.
    let mut crossing = request[..4 + token].to_vec();
    crossing.extend(b"\xb5hello");
    device.send(&crossing).await.unwrap();
    let length = device.recv(&mut buf).await.unwrap();
    assert_eq!((buf[0] & 0xf0, buf[1]), (0x60, 0x45), "the acknowledgement with its content");
    assert_eq!(&buf[2..4 + token], &request[2..4 + token]);
    assert!(buf[..length].ends_with(b"hello"));
    assert!(!asked.is_finished());
    let mut answer = vec![0x60 | token as u8, 0x45];
    answer.extend(&request[2..4 + token]);
    answer.extend(b"\xffmine");
    device.send(&answer).await.unwrap();
    assert_eq!(asked.await.unwrap().unwrap().text(), "mine");
}

#[tokio::test]
async fn without_a_network_a_peer_cannot_be_reached() {
    let ask = async |peer: Peer| -> Result<Code, HandlerError> {
        peer.get("/x").await?;
        Ok(Code::CONTENT)
    };
    let server = TestServer::new(Router::new().route("/ask", get(ask)));
    let response = server.request(Request::get("coap://test/ask").unwrap()).await;
    assert_eq!(response.code(), Code::INTERNAL_SERVER_ERROR);
}
