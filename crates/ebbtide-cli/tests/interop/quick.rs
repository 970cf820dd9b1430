//! Bodies in Non-confirmable blocks (RFC 9177) with libcoap's example programs.

use super::our_server::{digits, serve};
use super::peers::{EBBTIDE, LOSING, Peer, Running, answers_pings, free_address, output};
use super::relay::relay;
use ebbtide::QBlockParameters;
use ebbtide::{Client, Code, Request, Response};
use std::net::SocketAddr;
use std::path::Path;

/// COAP_BLOCK_USE_LIBCOAP and COAP_BLOCK_TRY_Q_BLOCK.
const BLOCKS: &str = "5";
/// The sizes are not multiples of a block's.
const LONG: usize = 100_000;
const LONGER: usize = 1_000_000;

fn found() -> Option<Peer> {
    Peer::find("libcoap-q")
}

/// Lets libcoap's client ask; what it got, and the messages that it showed.
async fn ask(peer: &Peer, args: &[&str], server: SocketAddr, path: &str) -> (Vec<u8>, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("got");
    let uri = format!("coap://{server}{path}");
    let common = ["client", "-N", "-L", BLOCKS, "-b", "1024", "-B", "60", "-v", "7"];
    let to_file = ["-o", file.to_str().unwrap()];
    let output = output(peer.program(), &[&common[..], &to_file, args, &[&uri]].concat()).await;
    let said = [output.stdout, output.stderr].concat();
    (std::fs::read(&file).unwrap_or_default(), String::from_utf8_lossy(&said).into_owned())
}

/// Lets it upload a body to `/echo`.
async fn put(peer: &Peer, length: usize, server: SocketAddr) -> (Vec<u8>, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("body");
    std::fs::write(&file, digits(length)).unwrap();
    ask(peer, &["-m", "put", "-f", file.to_str().unwrap()], server, "/echo").await
}

/// Starts libcoap's server.
async fn served(peer: &Peer) -> (Running, SocketAddr) {
    let at = free_address("127.0.0.1");
    let port = at.port().to_string();
    let args = ["server", "-A", "127.0.0.1", "-d", "10", "-p", &port, "-L", BLOCKS];
    let running = Running::silent(peer.program(), &args);
    let client = Client::new();
    answers_pings(&client, &format!("coap://{at}")).await;
    (running, at)
}

/// Uploads a body and asks for it back.
async fn change(client: &Client, at: SocketAddr, length: usize) -> [Response; 2] {
    let uri = format!("coap://{at}/large");
    let request = |code| Request::new(code, uri.as_str()).unwrap().q_block();
    let put = client.request(request(Code::PUT).payload(digits(length))).await.unwrap();
    [put, client.request(request(Code::GET)).await.unwrap()]
}

#[tokio::test]
async fn its_client_sends_and_gets_bodies_in_sets_of_blocks() {
    let Some(peer) = found() else { return };
    let ours = serve("127.0.0.1");
    for length in [LONG, LONGER] {
        let (got, said) = put(&peer, length, ours.address).await;
        assert!(got == digits(length), "{} of {length} bytes: {said}", got.len());
        assert!(said.contains("Q-Block1:") && said.contains("c:2.31"), "{said}");
    }
    let (got, said) = ask(&peer, &[], ours.address, "/large").await;
    assert!(got == digits(1 << 20), "{} bytes", got.len());
    assert!(said.contains("Q-Block2:"), "{said}");
}

#[tokio::test]
async fn our_client_sends_and_gets_bodies_in_sets_of_blocks() {
    let Some(peer) = found() else { return };
    let (_server, at) = served(&peer).await;
    let client = Client::new();
    for (length, code) in [(LONG, Code::CREATED), (LONGER, Code::CHANGED)] {
        let [put, got] = change(&client, at, length).await;
        assert_eq!(put.code(), code);
        assert!(got.body() == &digits(length), "{} of {length} bytes", got.body().len());
    }
    // A request per block one way, a request per ten blocks the other way.
    let sent = client.snapshot().counters.sent as usize;
    assert!(sent < (LONG + LONGER) / 1024 * 12 / 10 + 20, "{sent} messages");
    assert_eq!(client.snapshot().open_exchanges(), 0);
}

#[tokio::test]
async fn the_command_sends_and_gets_a_file_in_sets_of_blocks() {
    let Some(peer) = found() else { return };
    let (_server, at) = served(&peer).await;
    let dir = tempfile::tempdir().unwrap();
    let (body, got) = (dir.path().join("body"), dir.path().join("got"));
    std::fs::write(&body, digits(LONG)).unwrap();
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    let uri = format!("coap://{at}/large");
    for args in [["put", "-f", &name(&body)], ["get", "-o", &name(&got)]] {
        let output = output(EBBTIDE, &[&args[..], &["--q-block", "-v", &uri]].concat()).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("Q-Block"), "{said}");
    }
    assert!(std::fs::read(&got).unwrap() == digits(LONG));
}

/// What is not answered waits by RFC 9177's own times, 4 s and more; nothing is asserted about how
/// long that takes.
#[tokio::test]
async fn its_client_gets_bodies_through_though_much_is_lost() {
    let Some(peer) = found() else { return };
    let ours = serve("127.0.0.1");
    let at = relay(ours.address, LOSING, 4).await;
    let (got, said) = put(&peer, 25_000, at).await;
    assert!(got == digits(25_000), "{} bytes: {said}", got.len());
}

#[tokio::test]
async fn our_client_gets_bodies_through_though_much_is_lost() {
    let Some(peer) = found() else { return };
    let (_server, at) = served(&peer).await;
    // A silent peer is asked again sooner than a byte a second allows.
    let quick = QBlockParameters { probing_rate: 1_000, ..QBlockParameters::DEFAULT };
    let client = Client::with_config(
        super::our_server::patient().transport(|transport| transport.q_block(quick)),
    );
    let [put, got] = change(&client, relay(at, LOSING, 4).await, 12_500).await;
    assert!(put.is_success(), "{}", put.code());
    assert!(got.body() == &digits(12_500), "{} bytes", got.body().len());
    assert_eq!(client.snapshot().open_exchanges(), 0);
}
