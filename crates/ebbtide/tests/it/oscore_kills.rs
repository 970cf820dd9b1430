//! A sender that is killed at any instant (SIGKILL) and started again never uses a nonce twice (RFC
//! 8613 appendix B.1.1).

use crate::common::child_process::ChildProcess;
use ebbtide::oscore::{OscoreContext, OscoreContexts};
use ebbtide::server::{Call, Router, Server, get};
use ebbtide::{Client, ClientConfig, Response, ServerConfig};
use ebbtide_core::oscore::OscoreOption;
use ebbtide_core::wire::{Message, OptionNumber};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// The server's address, and the state file.
const SERVER: &str = "EBBTIDE_KILLED_SENDER_SERVER";
const STATE: &str = "EBBTIDE_KILLED_SENDER_STATE";
/// Requests that the sender keeps open.
const WINDOW: u16 = 8;

fn context(ours: &[u8], theirs: &[u8]) -> OscoreContext {
    OscoreContext::new(b"sixteen bytes 16", ours, theirs)
}

fn config(context: OscoreContext) -> ClientConfig {
    ClientConfig::new().oscore(OscoreContexts::new([context]).unwrap()).nstart(WINDOW)
}

fn server_config(context: OscoreContext) -> ServerConfig {
    ServerConfig::new().oscore(OscoreContexts::new([context]).unwrap()).nstart(WINDOW)
}

/// The program that the other tests kill. Among the tests it does nothing.
#[tokio::test]
async fn sender() {
    let Ok(server) = std::env::var(SERVER) else { return };
    let state = std::env::var(STATE).unwrap();
    let client = Client::with_config(config(context(b"c", b"s").state_file(state)));
    let uri = format!("coap://{server}/");
    let mut work = JoinSet::new();
    for _ in 0..WINDOW {
        let (client, uri) = (client.clone(), uri.clone());
        work.spawn(async move {
            loop {
                client.get(uri.as_str()).await.unwrap();
            }
        });
    }
    // They go on until the process is killed, or one of them fails.
    if let Some(ended) = work.join_next().await {
        ended.unwrap()
    }
}

/// The sender as a process, which dies with its handle.
fn start(server: SocketAddr, state: &Path) -> ChildProcess {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "oscore_kills::sender", "--nocapture"]);
    command.env(SERVER, server.to_string()).env(STATE, state).stdout(Stdio::null());
    ChildProcess(command.spawn().unwrap())
}

/// A server, behind a socket at which an observer sees all requests.
struct RecordingRelay {
    server: SocketAddr,
    front: UdpSocket,
    back: UdpSocket,
    sender: Option<SocketAddr>,
    /// The ciphertext of each sequence number.
    seen: BTreeMap<u64, Vec<u8>>,
}

impl RecordingRelay {
    async fn new() -> Self {
        let router = Router::new().route("/", get(|_: &Call<'_>| Response::content("on")));
        let server =
            Server::with_config(router, server_config(context(b"s", b"c")), ["127.0.0.1:0"]);
        let running = server.unwrap();
        let server = running.local_addrs()[0];
        tokio::spawn(running.run());
        let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let back = connected(server).await;
        Self { server, front, back, sender: None, seen: BTreeMap::new() }
    }

    /// The next life of the sender has another address, as it has no memory of the message IDs of the one before.
    async fn start(&mut self, state: &Path) -> ChildProcess {
        self.back = connected(self.server).await;
        start(self.front.local_addr().unwrap(), state)
    }

    /// Passes one datagram on.
    async fn pass(&mut self) {
        let (mut request, mut response) = ([0; 2048], [0; 2048]);
        tokio::select! {
            received = self.front.recv_from(&mut request) => {
                // The system reports that a killed sender's port is closed.
                let Ok((len, from)) = received else { return };
                self.sender = Some(from);
                self.record(&request[..len]);
                let _ = self.back.send(&request[..len]).await;
            }
            received = self.back.recv(&mut response) => {
                if let (Ok(len), Some(sender)) = (received, self.sender) {
                    let _ = self.front.send_to(&response[..len], sender).await;
                }
            }
        }
    }

    fn record(&mut self, datagram: &[u8]) {
        let message = Message::parse(datagram).unwrap();
        let Some(option) = message.option(OptionNumber::OSCORE) else { return };
        let number = OscoreOption::decode(option.value).unwrap().partial_iv.unwrap();
        let ciphertext = message.payload().to_vec();
        let first = self.seen.entry(number).or_insert_with(|| ciphertext.clone());
        // A retransmission has the same bytes.
        assert_eq!(*first, ciphertext, "number {number} has protected two messages");
    }
}

async fn connected(server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server).await.unwrap();
    socket
}

#[tokio::test]
async fn a_sender_that_is_killed_at_any_instant_uses_no_nonce_twice() {
    let seen = die(50).await;
    assert!(seen > 1000, "{seen} requests were seen");
}

#[tokio::test]
#[ignore = "takes a minute"]
async fn no_nonce_is_used_twice_in_a_thousand_deaths() {
    let seen = die(1000).await;
    assert!(seen > 50_000, "{seen} requests were seen");
}

/// Kills a sender so often. Returns how many requests it has sent.
async fn die(deaths: u32) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(8613);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut observer = RecordingRelay::new().await;
    // The first number that was not seen, and how many may be lost before the next one.
    let (mut next, mut may_be_lost) = (0, 0);
    for death in 0..deaths {
        let sender = observer.start(&state).await;
        // After some requests; or at a time, also before there is one.
        let (requests, millis) = match rng.next_u32() % 4 {
            0 => (usize::MAX, u64::from(rng.next_u32() % 50)),
            _ => (observer.seen.len() + (rng.next_u32() % 300) as usize, 20_000),
        };
        let load = async {
            while observer.seen.len() < requests {
                observer.pass().await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(millis), load).await;
        drop(sender);
        // What it has sent before its end.
        while let Ok(()) = tokio::time::timeout(Duration::from_millis(2), observer.pass()).await {}
        // A life reserves at most 64 numbers more than it has used, of which the last ones may not have left.
        may_be_lost += 64 + 2 * u64::from(WINDOW);
        let mut of_this_life = observer.seen.range(next..).map(|(number, _)| *number);
        let Some(first) = of_this_life.next() else { continue };
        let last = of_this_life.next_back().unwrap_or(first);
        assert!(first - next <= may_be_lost, "death {death}: {first} follows {next}");
        (next, may_be_lost) = (last + 1, last + 1 - first);
    }
    observer.seen.len()
}
