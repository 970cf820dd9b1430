//! The CoAP plugtests of ETSI: the steps of the test descriptions TD_COAP_CORE, TD_COAP_BLOCK,
//! TD_COAP_LINK and TD_COAP_OBS, by our client against Californium's server and ours, and by
//! Californium's client against ours; with and without losses. [`oscore_steps`] has those of OSCORE.

mod core_steps;
mod link_steps;
mod observe_steps;
#[path = "../../../../ebbtide/examples/plugtest/oscore.rs"]
mod oscore;
mod oscore_steps;
#[path = "../../../../ebbtide/examples/plugtest/resources.rs"]
mod resources;

use super::our_server::patient;
use super::peers::{Peer, Running, free_address};
use super::relay::{Trouble, relay};
use super::tap::Tap;
use ebbtide::{Client, ClientConfig, Code, Request, Response, ServerConfig};
use ebbtide_core::wire::{Message, MessageId, Token, Type};
use resources::Plugtest;
use std::net::SocketAddr;
use std::time::Duration;

/// How often the observable resources change.
const PERIOD: Duration = Duration::from_millis(400);
/// How long a request may take. At 15 % each way more than a quarter of the exchanges needs a second
/// message, and a body of 80 blocks waits for each.
const PATIENCE: Duration = Duration::from_secs(150);
/// Losses in percent, each way.
const LOSSES: &[u32] = &[0, 5, 15];
fn losing(lost: u32) -> Trouble {
    Trouble { lost, ..Trouble::default() }
}

/// A message that passed.
#[derive(Clone, Debug)]
struct Seen {
    sent: bool,
    kind: Type,
    code: Code,
    id: MessageId,
    token: Token,
    datagram: Vec<u8>,
}

impl Seen {
    fn message(&self) -> Message<'_> {
        Message::parse(&self.datagram).unwrap()
    }

    fn len(&self) -> usize {
        self.datagram.len()
    }
}

/// A client and the path to a server.
struct Tester {
    client: Client,
    base: String,
    tap: Tap,
    lossy: bool,
}

impl Tester {
    async fn new(server: SocketAddr, lost: u32) -> Self {
        Self::with_config(server, lost, patient()).await
    }

    async fn with_config(server: SocketAddr, lost: u32, config: ClientConfig) -> Self {
        let server = if lost == 0 { server } else { relay(server, losing(lost), 13).await };
        let tap = Tap::before(server).await;
        let base = format!("coap://{}", tap.address);
        Self { client: Client::with_config(config), base, tap, lossy: lost > 0 }
    }

    fn uri(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn request(&self, method: Code, path: &str) -> Request {
        Request::new(method, self.uri(path)).unwrap()
    }

    /// What passed since this was last asked.
    fn seen(&self) -> Vec<Seen> {
        let parsed = |seen: super::tap::Seen| {
            let message = Message::parse(&seen.datagram).unwrap();
            let (kind, code) = (message.kind(), message.code());
            let (id, token) = (message.message_id(), message.token().unwrap());
            Seen { sent: seen.sent, kind, code, id, token, datagram: seen.datagram }
        };
        self.tap.take().into_iter().map(parsed).collect()
    }

    /// The response, and what passed on the way to it.
    async fn ask(&self, request: Request) -> (Response, Vec<Seen>) {
        self.seen();
        let what = format!("{request:?}");
        let response = self.client.request(request.timeout(PATIENCE)).await;
        let seen = self.seen();
        (response.unwrap_or_else(|error| panic!("{error}: {what}; {seen:?}")), seen)
    }

    async fn get(&self, path: &str) -> (Response, Vec<Seen>) {
        self.ask(self.request(Code::GET, path)).await
    }
}

/// A Confirmable request was sent, and its response came in the acknowledgement, with its message
/// ID and token.
fn piggybacked(seen: &[Seen], method: Code, response: Code) {
    let answer = seen.iter().rfind(|seen| !seen.sent).expect("something was received");
    assert_eq!((answer.kind, answer.code), (Type::Acknowledgement, response), "{seen:?}");
    // A copy has the message ID of the first and may have another token.
    let asked = |seen: &&Seen| seen.sent && (seen.id, seen.token) == (answer.id, answer.token);
    let asked = seen.iter().find(asked).expect("the request with this message ID and token");
    assert_eq!((asked.kind, asked.code), (Type::Confirmable, method), "{seen:?}");
    assert!(!asked.token.is_empty(), "{seen:?}");
}

/// Runs all steps against a server.
async fn all_steps(server: SocketAddr, lost: u32) {
    let steps = async {
        let tester = Tester::new(server, lost).await;
        core_steps::all(&tester).await;
        core_steps::blocks(&tester).await;
        link_steps::all(&tester).await;
        observe_steps::all(&tester).await;
        assert_eq!(tester.client.snapshot().open_exchanges(), 0);
    };
    tokio::time::timeout(2 * PATIENCE, steps).await.expect("all steps in time");
}

/// Our plugtest server, for as long as the runtime lives.
fn our_server() -> SocketAddr {
    let address = free_address("127.0.0.1");
    let plugtest = Plugtest::new(PERIOD);
    let config = ServerConfig::new().max_retransmit(8);
    tokio::spawn(async move { plugtest.serve(&config, address).await.unwrap() });
    address
}

/// Californium's, built from `interop/californium`.
fn its_server(peer: &Peer) -> (Running, SocketAddr) {
    let address = free_address("127.0.0.1");
    let (port, period) = (address.port().to_string(), PERIOD.as_millis().to_string());
    let args = ["plugtest-server", &port, "127.0.0.1", &period];
    (Running::ready(peer.program(), &args).0, address)
}

/// With each loss at the same time: most of it is waiting.
async fn with_losses<F: Future<Output = ()> + Send + 'static>(
    losses: &[u32],
    run: impl Fn(u32) -> F,
) {
    let running: Vec<_> = losses.iter().map(|&lost| tokio::spawn(run(lost))).collect();
    for (lost, running) in losses.iter().zip(running) {
        assert!(running.await.is_ok(), "with {lost} % loss");
    }
}

#[tokio::test]
async fn our_client_passes_every_step_against_our_server() {
    with_losses(LOSSES, |lost| all_steps(our_server(), lost)).await;
}

#[tokio::test]
async fn our_client_passes_every_step_against_californiums_server() {
    if Peer::find("californium").is_none() {
        return;
    }
    with_losses(LOSSES, |lost| async move {
        let (_running, address) = its_server(&Peer::find("californium").unwrap());
        all_steps(address, lost).await;
    })
    .await;
}

#[tokio::test]
async fn californiums_client_passes_every_step_against_our_server() {
    if Peer::find("californium").is_none() {
        return;
    }
    with_losses(LOSSES, |lost| async move {
        let address = our_server();
        let address = if lost == 0 { address } else { relay(address, losing(lost), 13).await };
        let what = if lost == 0 { "plugtest" } else { "plugtest-lossy" };
        Peer::find("californium").unwrap().ask(address, what).await;
    })
    .await;
}

/// Any other plugtest server, such as Californium's own: `PLUGTEST_SERVER=127.0.0.1:5683`.
#[tokio::test]
async fn our_client_passes_every_step_against_the_server_that_is_named() {
    let Ok(server) = std::env::var("PLUGTEST_SERVER") else { return };
    for &lost in LOSSES {
        all_steps(server.parse().unwrap(), lost).await;
    }
}
