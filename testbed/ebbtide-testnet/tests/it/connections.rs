//! Connections over the network: TCP, TLS and WebSockets.

use ebbtide::network::{ByteStream, DatagramNetwork};
use ebbtide::server::{Call, Router, Server, Subject, get, put};
use ebbtide::stream::{Identity, Listen, TlsServer, Trust};
use ebbtide::{Client, ErrorKind, Response};
use ebbtide_testnet::{Conditions, PacketFate, SegmentKind, TestNetwork, play};
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DEVICE: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 1);
const SECOND: Duration = Duration::from_secs(1);

fn at(port: u16) -> SocketAddr {
    (SERVER, port).into()
}

fn rough() -> Conditions {
    let delay = Duration::from_millis(5)..=Duration::from_millis(200);
    Conditions::new().delay(delay).loss(0.2).duplicates(0.1)
}

fn client(network: &TestNetwork) -> Client {
    Client::with_config(network.client_config().local_address((DEVICE, 0).into()))
}

/// Both ends of a connection.
async fn pair(network: &TestNetwork) -> (Box<dyn ByteStream>, Box<dyn ByteStream>) {
    let streams = network.streams().unwrap();
    let listener = streams.listen(at(0)).unwrap();
    let opened = tokio::spawn(streams.connect(Some(DEVICE.into()), listener.local_addr()));
    let (server, from) = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
    assert_eq!(from.ip(), DEVICE);
    (opened.await.unwrap().unwrap(), server)
}

fn echo(call: &Call<'_>) -> Response {
    Response::content(call.payload().to_vec())
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * at / 251) as u8).collect()
}

#[test]
fn bytes_arrive_in_order_whatever_the_links_do() {
    let trace = play(1, rough(), async |network| {
        let (mut device, mut server) = pair(&network).await;
        let sent = tokio::spawn(async move {
            device.write_all(&bytes(300_000)).await.unwrap();
            device.shutdown().await.unwrap();
            let mut answer = Vec::new();
            device.read_to_end(&mut answer).await.unwrap();
            answer
        });
        let mut read = Vec::new();
        server.read_to_end(&mut read).await.unwrap();
        assert!(read == bytes(300_000), "{} bytes", read.len());
        server.write_all(b"all").await.unwrap();
        drop(server);
        assert_eq!(sent.await.unwrap(), b"all");
    });
    let lost = |kind| {
        let mut of_kind = trace.packets().iter().filter(move |one| one.segment == Some(kind));
        of_kind.any(|packet| packet.fate == PacketFate::Lost)
    };
    assert!(lost(SegmentKind::Data) && lost(SegmentKind::Acknowledgement), "{trace}");
}

#[test]
fn what_nobody_reads_stays_with_its_sender() {
    play(2, Conditions::new(), async |network| {
        let (mut device, mut server) = pair(&network).await;
        let all = bytes(200_000);
        let mut written = 0;
        while let Ok(length) = timeout(60 * SECOND, device.write(&all[written..])).await {
            written += length.unwrap();
        }
        assert_eq!(written, 65_535);
        let mut part = vec![0; 1000];
        server.read_exact(&mut part).await.unwrap();
        assert_eq!(device.write(&all[written..]).await.unwrap(), 1000);
    });
}

#[test]
fn an_end_that_has_not_read_everything_resets_the_connection() {
    play(3, Conditions::new(), async |network| {
        let (mut device, server) = pair(&network).await;
        device.write_all(b"unread").await.unwrap();
        sleep(SECOND).await;
        drop(server);
        let error = device.read(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn nobody_who_listens_is_a_refusal_and_a_host_that_is_cut_off_a_timeout() {
    play(4, Conditions::new(), async |network| {
        let streams = network.streams().unwrap();
        let kind = async |network: &TestNetwork| {
            let began = network.elapsed();
            let error = streams.connect(Some(DEVICE.into()), at(9)).await.unwrap_err();
            (error.kind(), network.elapsed() - began)
        };
        // A round trip, in tokio's milliseconds.
        let (refused, took) = kind(&network).await;
        assert_eq!(refused, io::ErrorKind::ConnectionRefused);
        assert!((20..25).contains(&took.as_millis()), "{took:?}");
        network.cut(DEVICE, SERVER);
        // 1 + 2 + 4 + 8 + 16 + 32 + 64 s.
        let (silent, took) = kind(&network).await;
        assert_eq!((silent, took.as_secs()), (io::ErrorKind::TimedOut, 127));
        network.restore();
        network.unplug(DEVICE);
        assert_eq!(kind(&network).await.0, io::ErrorKind::NetworkUnreachable);
        let taken = streams.listen(at(7)).unwrap();
        let again = streams.listen(taken.local_addr()).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        drop(taken);
        assert!(streams.listen(at(7)).is_ok());
    });
}

/// A server of a value that is put, over TCP; aborting it is `kill -9`.
fn serve(network: &TestNetwork, changes: &Subject) -> JoinHandle<io::Result<()>> {
    let puts = Arc::new(AtomicU32::new(0));
    let (count, subject) = (puts.clone(), changes.clone());
    let read = move |_: &Call<'_>| Response::content(puts.load(Ordering::SeqCst).to_string());
    let store = move |_: &Call<'_>| {
        let response = Response::content((count.fetch_add(1, Ordering::SeqCst) + 1).to_string());
        subject.changed();
        response
    };
    let router = Router::new()
        .route("/value", get(read).put(store).observable(changes))
        .route("/echo", put(echo));
    let server = Server::without_plain_sockets(router, network.server_config()).unwrap();
    tokio::spawn(server.listen(Listen::Tcp(at(5683))).unwrap().run())
}

async fn an_hour(network: TestNetwork) {
    let serving = serve(&network, &Subject::new());
    let client = client(&network);
    for length in [0, 1000, 100_000] {
        let body = bytes(length);
        let echoed = client.put("coap+tcp://10.0.0.1/echo", body.clone()).await.unwrap();
        assert!(echoed.body() == &body[..]);
        sleep(1200 * SECOND).await;
    }
    assert!(!serving.is_finished());
}

#[test]
fn an_hour_over_tcp_with_losses_is_the_same_each_time() {
    let played = || play(5, rough(), an_hour);
    let trace = played();
    assert!(trace.packets().iter().all(|packet| packet.segment.is_some()), "{trace}");
    assert!(trace == played(), "{trace}");
}

#[test]
fn an_outage_costs_a_transfer_nothing_but_time() {
    play(6, Conditions::new().rate(1_000_000, 100_000), async |network| {
        let _serving = serve(&network, &Subject::new());
        let client = client(&network);
        let body = bytes(1_000_000);
        let asked = tokio::spawn({
            let (client, body) = (client.clone(), body.clone());
            async move { client.put("coap+tcp://10.0.0.1/echo", body).await }
        });
        sleep(SECOND).await;
        network.cut(DEVICE, SERVER);
        sleep(20 * SECOND).await;
        assert!(!asked.is_finished());
        network.restore();
        assert!(asked.await.unwrap().unwrap().body() == &body[..]);
        assert_eq!(client.snapshot().connections.connections, 1);
    });
}

#[test]
fn a_transfer_whose_connection_is_reset_begins_again_over_another() {
    play(7, Conditions::new().rate(1_000_000, 100_000), async |network| {
        let _serving = serve(&network, &Subject::new());
        let client = client(&network);
        let body = bytes(500_000);
        let asked = tokio::spawn({
            let (client, body) = (client.clone(), body.clone());
            async move { client.put("coap+tcp://10.0.0.1/echo", body).await }
        });
        sleep(SECOND).await;
        network.reset_connections(SERVER, DEVICE);
        assert!(asked.await.unwrap().unwrap().body() == &body[..]);
        assert_eq!(client.snapshot().connections.connections, 2);
    });
}

/// How long after this misfortune an observer has the state that it has missed.
fn deaf(seed: u64, misfortune: fn(&TestNetwork)) -> Duration {
    let took = std::cell::Cell::new(Duration::MAX);
    play(seed, Conditions::new(), async |network| {
        let (changes, other) = (Subject::new(), Client::with_config(network.client_config()));
        let _serving = serve(&network, &changes);
        let mut states = client(&network).observe("coap+tcp://10.0.0.1/value").await.unwrap();
        assert_eq!(states.next().await.unwrap().unwrap().text(), "0");
        misfortune(&network);
        let began = network.elapsed();
        other.put("coap+tcp://10.0.0.1/value", "").await.unwrap();
        while states.next().await.unwrap().unwrap().text() != "1" {}
        took.set(network.elapsed() - began);
    });
    took.get()
}

#[test]
fn an_observer_whose_connection_has_ended_registers_again() {
    assert!(deaf(8, |network| network.reset_connections(SERVER, DEVICE)) < 5 * SECOND);
    // Only the Ping after 240 s of silence, unanswered for 20 s, finds that a translator has forgotten it.
    let silent = deaf(9, |network| network.silence_connections(DEVICE, SERVER));
    assert!(silent > 200 * SECOND && silent < 300 * SECOND, "{silent:?}");
}

#[test]
fn a_server_that_is_killed_is_found_again_when_it_is_back() {
    play(10, Conditions::new(), async |network| {
        let changes = Subject::new();
        let first = serve(&network, &changes);
        let client = client(&network);
        let ask = async || client.get("coap+tcp://10.0.0.1/value").await;
        assert_eq!(ask().await.unwrap().text(), "0");
        network.reset_connections(SERVER, DEVICE);
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        sleep(SECOND).await;
        assert_eq!(ask().await.unwrap_err().kind(), ErrorKind::Network);
        let _second = serve(&network, &changes);
        assert_eq!(ask().await.unwrap().text(), "0");
    });
}

#[test]
fn tls_and_websockets_go_over_the_network_as_well() {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["10.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let identity =
        Identity::from_pem(certificate.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let trust = Trust::authorities(certificate.as_bytes()).unwrap();
    let router = Router::new().route("/echo", put(echo));
    play(11, rough(), async |network| {
        let server = Server::without_plain_sockets(router.clone(), network.server_config());
        let tls = TlsServer::new(identity.clone());
        let server = server.unwrap().listen(Listen::Tls(at(5684), tls.clone())).unwrap();
        let server = server.listen(Listen::Ws(at(80))).unwrap();
        tokio::spawn(server.listen(Listen::Wss(at(443), tls)).unwrap().run());
        let config = network.client_config().local_address((DEVICE, 0).into());
        let client = Client::with_config(config.trust(trust.clone()));
        let body = bytes(20_000);
        for scheme in ["coaps+tcp", "coap+ws", "coaps+ws"] {
            let uri = format!("{scheme}://10.0.0.1/echo");
            let echoed = client.put(&*uri, body.clone()).await.unwrap();
            assert!(echoed.body() == &body[..], "{scheme}");
        }
    });
}
