//! `coaps` with the adapters of Californium (Scandium) and go-coap (pion), both ways: pre-shared keys,
//! connection IDs of several lengths, resumption, another address, and losses.

use super::our_server::{digits, patient, serve_with};
use super::peers::{LOSING, Peer, Running, free_address};
use super::relay::relay;
use super::tap::{Seen, Tap};
use ebbtide::dtls::{Credentials, DtlsBind, DtlsConfig, Psk, SavedSession};
use ebbtide::metrics::DtlsCounts;
use ebbtide::{Client, Server, ServerConfig};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const PEERS: [&str; 2] = ["californium", "go-coap"];
/// The content type of a record with a connection ID (RFC 9146 section 4).
const TLS12_CID: u8 = 25;
/// The lengths of a peer's own connection IDs. `None`: it negotiates none.
const CIDS: [Option<&str>; 3] = [None, Some("0"), Some("5")];

fn psk() -> Option<Psk> {
    Psk::new(b"sesame-of-interop").ok()
}

/// Our server for the adapters' identity.
fn our_server() -> (Server, SocketAddr) {
    let keys = |identity: &[u8]| (identity == b"matrix").then(psk).flatten();
    let dtls = DtlsBind::new(([127, 0, 0, 1], 0), keys);
    let server = serve_with("127.0.0.1", ServerConfig::new().bind_dtls(dtls)).server;
    let address = server.dtls_addrs()[0];
    (server, address)
}

fn counters(server: &Server) -> DtlsCounts {
    server.snapshot().dtls
}

fn adapter(peer: &Peer, cid: Option<&str>, args: &[&str]) -> Command {
    let mut command = Command::new(peer.program());
    command.args(args).env_remove("INTEROP_CID");
    if let Some(cid) = cid {
        command.env("INTEROP_CID", cid);
    }
    command
}

/// An adapter's client, which is asked a line at a time (`interop/README.md`). It is read in a thread of
/// its own, so that our server goes on meanwhile.
struct DtlsClient {
    child: Killed,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl DtlsClient {
    async fn new(peer: &Peer, cid: Option<&str>, server: SocketAddr) -> Self {
        let mut command = adapter(peer, cid, &["ask", &format!("coaps://{server}")]);
        let started = move || {
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert_eq!(lines.next().expect("it starts").unwrap(), "ready");
            Self { child: Killed(child), lines }
        };
        tokio::task::spawn_blocking(started).await.unwrap()
    }

    /// The lines of its answer.
    async fn ask(mut self, request: &'static str) -> (Self, Vec<String>) {
        let asked = move || {
            writeln!(self.child.0.stdin.as_mut().unwrap(), "{request}").unwrap();
            let next = || self.lines.next().expect("it answers").unwrap();
            let answers = std::iter::repeat_with(next).take_while(|line| line != ".").collect();
            (self, answers)
        };
        tokio::task::spawn_blocking(asked).await.unwrap()
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether there are records with connection IDs in one direction.
fn has_cids(seen: &[Seen], sent: bool) -> bool {
    seen.iter().any(|seen| seen.sent == sent && seen.datagram[0] == TLS12_CID)
}

#[tokio::test]
async fn their_clients_get_bodies_and_states_from_us_with_and_without_connection_ids() {
    for peer in PEERS {
        let Some(found) = Peer::find(peer) else { continue };
        for cid in CIDS {
            let (server, address) = our_server();
            let tap = Tap::before(relay(address, LOSING, 4).await).await;
            let client = DtlsClient::new(&found, cid, tap.address).await;
            let (client, got) = client.ask("GET /test wait=60").await;
            let what = format!("{peer}, connection IDs of {cid:?} bytes");
            assert!(got[0].ends_with(&hexadecimal(&digits(60))), "{what}: {got:?}");
            let (client, states) = client.ask("GET /time observe=3 wait=60").await;
            assert!(
                states.iter().filter(|state| state.starts_with("2.05 ")).count() >= 3,
                "{what}: {states:?}"
            );
            let seen = tap.take();
            // We give out connection IDs to those that know the extension.
            assert_eq!(has_cids(&seen, true), cid.is_some(), "{what}: {seen:?}");
            assert_eq!(has_cids(&seen, false), cid.is_some_and(|cid| cid != "0"), "{what}");
            assert!(counters(&server).established() >= 1);
            drop(client);
            // go-coap's client repeats no block but the first one.
            let client = DtlsClient::new(&found, cid, address).await;
            let (_asker, got) = client.ask("PUT /echo digits=10000 wait=30").await;
            assert!(got[0].ends_with(&hexadecimal(&digits(10_000))), "{what}: {:.80}", got[0]);
        }
    }
}

#[tokio::test]
async fn their_clients_keep_their_session_at_another_address() {
    for peer in PEERS {
        let Some(found) = Peer::find(peer) else { continue };
        let (server, address) = our_server();
        let tap = Tap::before(address).await;
        let (client, got) =
            DtlsClient::new(&found, Some("0"), tap.address).await.ask("GET /test").await;
        assert!(got[0].starts_with("2.05 "), "{peer}: {got:?}");
        tap.rebind();
        let (_asker, got) = client.ask("GET /test wait=30").await;
        assert!(got[0].starts_with("2.05 "), "{peer}, elsewhere: {got:?}");
        assert_eq!(counters(&server).established(), 1, "{peer}");
    }
}

#[tokio::test]
async fn californiums_client_resumes_its_session() {
    let Some(found) = Peer::find("californium") else { return };
    let (server, address) = our_server();
    let tap = Tap::before(relay(address, LOSING, 4).await).await;
    let (client, got) =
        DtlsClient::new(&found, Some("0"), tap.address).await.ask("GET /test wait=60").await;
    assert!(got[0].starts_with("2.05 "), "{got:?}");
    let (client, _) = client.ask("RESUME").await;
    let (_asker, got) = client.ask("GET /test wait=60").await;
    assert!(got[0].starts_with("2.05 "), "{got:?}");
    assert!(counters(&server).resumed >= 1, "{:?}", counters(&server));
}

/// Its server, with the adapters' key.
fn its_server(peer: &Peer, cid: Option<&str>) -> (Running, SocketAddr) {
    let address = free_address("127.0.0.1");
    let port = address.port().to_string();
    let args = ["matrix-server", &port, "127.0.0.1", "coaps"];
    (Running::started(adapter(peer, cid, &args)).0, address)
}

fn our_client(cid_length: Option<u8>, saved: Option<SavedSession>) -> Client {
    let mut dtls = DtlsConfig::default();
    dtls.client.cid_length = cid_length;
    let credentials = psk().map(|psk| Credentials::new("matrix", psk));
    let credentials = credentials.map(|credentials| Credentials { saved, ..credentials });
    Client::with_config(patient().dtls(dtls).credentials(credentials))
}

#[tokio::test]
async fn we_get_bodies_and_states_from_their_servers_with_and_without_connection_ids() {
    for peer in PEERS {
        let Some(found) = Peer::find(peer) else { continue };
        for cid in CIDS {
            let (_running, address) = its_server(&found, cid);
            for ours in [None, Some(0), Some(4)] {
                let what = format!("{peer}, connection IDs of {cid:?} bytes, ours of {ours:?}");
                let tap = Tap::before(relay(address, LOSING, 4).await).await;
                let base = format!("coaps://{}", tap.address);
                let client = our_client(ours, None);
                let asked = async {
                    let got = client.get(format!("{base}/medium")).await.unwrap();
                    assert!(*got.body() == digits(10_000), "{what}: {}", got.code());
                    let mut states = client.observe(format!("{base}/time")).await.unwrap();
                    for _ in 0..3 {
                        assert!(states.next().await.unwrap().unwrap().is_success(), "{what}");
                    }
                };
                tokio::time::timeout(Duration::from_secs(60), asked).await.expect(&what);
                let seen = tap.take();
                let both = ours.is_some() && cid.is_some();
                assert_eq!(has_cids(&seen, true), both && cid != Some("0"), "{what}");
                assert_eq!(has_cids(&seen, false), both && ours != Some(0), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn we_resume_a_session_of_californiums_server_and_keep_it_at_another_address() {
    let Some(found) = Peer::find("californium") else { return };
    let (_running, address) = its_server(&found, Some("6"));
    let tap = Tap::before(address).await;
    let uri = format!("coaps://{}/test", tap.address);
    let client = our_client(Some(0), None);
    assert!(client.get(uri.as_str()).await.unwrap().is_success());
    let full = tap.take().len();
    tap.rebind();
    assert!(client.get(uri.as_str()).await.unwrap().is_success());
    // A request and its response: no handshake.
    assert!(tap.take().len() < full / 2);
    let saved = client.dtls_session(tap.address).expect("a session that can be resumed");
    drop(client);
    tap.take();
    assert!(our_client(Some(0), Some(saved)).get(uri.as_str()).await.unwrap().is_success());
    assert!(tap.take().len() < full, "a resumption takes fewer datagrams than a full handshake");
}
