//! OSCORE (RFC 8613) over connections: what UDP has, over TCP, TLS and WebSockets.

use crate::common::errors::source;
use crate::common::eventually::eventually;
use crate::common::stream::Certificates;
use ebbtide::metrics::Meter;
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, Server, Subject, get, post, put};
use ebbtide::stream::{Listen, TlsServer, Trust};
use ebbtide::{Client, ClientConfig, OscoreFailure, Peer, Request, Response, Scheme, ServerConfig};
use ebbtide_core::wire::Code;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const BODY: usize = 200_000;

fn contexts(ours: &[u8], theirs: &[u8]) -> OscoreContexts {
    let context = OscoreContext::new(b"sixteen bytes 16", ours, theirs).name("peer");
    OscoreContexts::new([context]).unwrap()
}

fn who(call: &Call<'_>) -> Response {
    Response::content(call.identity().map_or_else(|| "nobody".into(), <[u8]>::to_vec))
}

struct Serving {
    at: SocketAddr,
    subject: Subject,
    count: Arc<AtomicUsize>,
    meter: Meter,
}

fn serve(config: ServerConfig, listen: impl FnOnce(SocketAddr) -> Listen) -> Serving {
    let (subject, count) = (Subject::default(), Arc::<AtomicUsize>::default());
    let counter = count.clone();
    let posted = move |_: &Call<'_>| {
        Response::new(Code::CHANGED).payload(counter.fetch_add(1, Ordering::SeqCst).to_string())
    };
    let back = async |peer: Peer| -> Result<String, ebbtide::server::HandlerError> {
        Ok(peer.get("/who").await?.text().into_owned())
    };
    let echo =
        |call: &Call<'_>| Response::new(Code::CHANGED).payload(call.payload().len().to_string());
    let router = Router::new()
        .route("/who", get(who))
        .route("/count", post(posted))
        .route("/echo", put(echo))
        .route("/back", get(back))
        .route("/long", get(|_: &Call<'_>| Response::content("x".repeat(BODY))))
        .route("/state", get(|_: &Call<'_>| Response::content("state")).observable(&subject));
    let config = config.oscore(contexts(b"s", b"c")).oscore_required(true);
    let server = Server::with_config(router, config, Vec::<SocketAddr>::new()).unwrap();
    let server = server.listen(listen("127.0.0.1:0".parse().unwrap())).unwrap();
    let (at, meter) = (server.listeners()[0].1, server.meter());
    tokio::spawn(server.run());
    Serving { at, subject, count, meter }
}

#[tokio::test]
async fn requests_bodies_and_observations_are_protected_over_every_connection() {
    let certificates = Certificates::new();
    let tls = || TlsServer::new(certificates.identity());
    for scheme in [Scheme::CoapTcp, Scheme::CoapsTcp, Scheme::CoapWs, Scheme::CoapsWs] {
        let server = serve(ServerConfig::new(), |at| match scheme {
            Scheme::CoapTcp => Listen::Tcp(at),
            Scheme::CoapsTcp => Listen::Tls(at, tls()),
            Scheme::CoapWs => Listen::Ws(at),
            _ => Listen::Wss(at, tls()),
        });
        let trust = Trust::authorities(certificates.authority.as_bytes()).unwrap();
        let config = ClientConfig::new().oscore(contexts(b"c", b"s")).trust(trust);
        let client = Client::serving(Router::new().route("/who", get(who)), config).unwrap();
        let uri = |path: &str| format!("{scheme}://{}{path}", server.at);
        assert_eq!(client.get(uri("/who").as_str()).await.unwrap().text(), "peer");
        assert_eq!(client.get(uri("/long").as_str()).await.unwrap().body().len(), BODY);
        let request = Request::put(uri("/echo").as_str()).unwrap().payload(vec![1; BODY]);
        assert_eq!(client.request(request).await.unwrap().text(), BODY.to_string());
        let back = client.get(uri("/back").as_str()).await.unwrap();
        assert_eq!(back.text(), "peer", "the server's own request is protected as well");
        let mut states = client.observe(uri("/state").as_str()).await.unwrap();
        for _ in 0..3 {
            assert_eq!(states.next().await.unwrap().unwrap().text(), "state");
            server.subject.changed();
        }
        assert_eq!(server.meter.snapshot().observers, 1);
        drop(states);
        eventually(|| server.meter.snapshot().observers == 0).await;
    }
}

#[tokio::test]
async fn nothing_can_be_read_on_the_way_and_a_captured_request_is_refused_over_another_connection()
{
    let server = serve(ServerConfig::new(), Listen::Tcp);
    let relay = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = relay.local_addr().unwrap();
    let captured = tokio::spawn(async move {
        let (mut front, _) = relay.accept().await.unwrap();
        let mut back = TcpStream::connect(server.at).await.unwrap();
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        let (mut one, mut two) = ([0; 4096], [0; 4096]);
        loop {
            tokio::select! {
                read = front.read(&mut one) => match read.unwrap() {
                    0 => return (sent, received),
                    len => {
                        sent.extend_from_slice(&one[..len]);
                        back.write_all(&one[..len]).await.unwrap();
                    }
                },
                read = back.read(&mut two) => {
                    let len = read.unwrap();
                    received.extend_from_slice(&two[..len]);
                    front.write_all(&two[..len]).await.unwrap();
                }
            }
        }
    });
    let client = Client::with_config(ClientConfig::new().oscore(contexts(b"c", b"s")));
    let request = format!("coap+tcp://{at}/count");
    assert_eq!(client.post(request.as_str(), "a readable body").await.unwrap().text(), "0");
    drop(client);
    let (sent, received) = captured.await.unwrap();
    for text in ["count", "readable"] {
        assert!(!sent.windows(text.len()).any(|part| part == text.as_bytes()), "{text}");
    }
    let mut thief = TcpStream::connect(server.at).await.unwrap();
    thief.write_all(&sent).await.unwrap();
    thief.shutdown().await.unwrap();
    let mut answer = Vec::new();
    thief.read_to_end(&mut answer).await.unwrap();
    let says_so = answer.windows(15).any(|part| part == b"Replay detected");
    assert!(says_so && !received.is_empty(), "{answer:?}");
    assert_eq!(server.count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_server_that_was_restarted_asks_for_an_echo_over_a_connection_too() {
    let folder = tempfile::tempdir().unwrap();
    let client = Client::with_config(ClientConfig::new().oscore(contexts(b"c", b"s")));
    let kept = || {
        let context = OscoreContext::new(b"sixteen bytes 16", b"s", b"c");
        OscoreContexts::new([context.state_file(folder.path().join("state"))])
    };
    // It has been used.
    drop(kept().unwrap());
    let count = Arc::<AtomicUsize>::default();
    let counter = count.clone();
    let posted = move |_: &Call<'_>| {
        counter.fetch_add(1, Ordering::SeqCst);
        Code::CHANGED
    };
    let config = ServerConfig::new().oscore(kept().unwrap());
    let router = Router::new().route("/count", post(posted));
    let server = Server::with_config(router, config, Vec::<SocketAddr>::new()).unwrap();
    let server = server.listen(Listen::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let (at, meter) = (server.listeners()[0].1, server.meter());
    tokio::spawn(server.run());
    for _ in 0..3 {
        let counted = client.post(format!("coap+tcp://{at}/count").as_str(), "").await.unwrap();
        assert_eq!(counted.code(), Code::CHANGED);
    }
    assert_eq!(count.load(Ordering::SeqCst), 3, "each one is processed once");
    assert_eq!(meter.snapshot().connections.messages.requests, 4, "one was challenged");
}

#[tokio::test]
async fn a_client_with_another_key_learns_why_it_is_refused() {
    let server = serve(ServerConfig::new(), Listen::Tcp);
    let context = OscoreContext::new(b"another secret..", b"c", b"s");
    let config = ClientConfig::new().oscore(OscoreContexts::new([context]).unwrap());
    let uri = format!("coap+tcp://{}/who", server.at);
    let error = Client::with_config(config).get(uri.as_str()).await.unwrap_err();
    let Some(OscoreFailure::Refused { code, .. }) = source(&error) else { panic!("{error}") };
    assert_eq!(code, Code::BAD_REQUEST);
    let plain = Client::new().get(uri.as_str()).await.unwrap();
    assert_eq!(plain.code(), Code::UNAUTHORIZED);
}
