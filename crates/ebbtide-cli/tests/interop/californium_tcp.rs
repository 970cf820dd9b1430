//! Californium's TCP exchanges no CSM and so is not RFC 8323's (section 5.3): whoever tries it with
//! us learns that at the first message.

use super::peers::{EBBTIDE, Peer, Running, output};
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

const NO_CSM: &str =
    "the connection was aborted: the first message must be a CSM (RFC 8323 section 5.3), it was";

#[tokio::test]
async fn our_client_says_that_its_server_sends_no_csm() {
    let Some(peer) = Peer::find("californium") else { return };
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let port = free.port().to_string();
    let (_server, _) = Running::ready(peer.program(), &["server", &port, "127.0.0.1", "tcp"]);
    let uri = |path: &str| format!("coap+tcp://{free}{path}");
    for (args, response) in [
        (&["get", &uri("/test")][..], "2.05"),
        (&["get", &uri("/missing")], "4.04"),
        (&["put", "-e", "hi", &uri("/echo")], "2.04"),
    ] {
        let ran = output(EBBTIDE, args).await;
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && ran.stdout.is_empty(), "{args:?}: {said}");
        for part in [&format!("{free}: {NO_CSM} {response};"), "as Californium", "by coap://"] {
            assert!(said.contains(part), "{args:?}: no '{part}' in {said}");
        }
    }
    // It passes over a Ping, so that nothing at all comes.
    let said = output(EBBTIDE, &["ping", &uri("/")]).await.stderr;
    let said = String::from_utf8_lossy(&said);
    for part in ["no CSM in time (RFC 8323 section 5.3)", "as Californium", "by coap://"] {
        assert!(said.contains(part), "ping: no '{part}' in {said}");
    }
}

#[tokio::test]
async fn our_server_says_that_its_client_sends_no_csm() {
    let Some(peer) = Peer::find("californium") else { return };
    let said = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(EBBTIDE);
    command.args(["serve", "-v", "--bind", "coap+tcp://127.0.0.1:0"]);
    command.stderr(said.reopen().unwrap());
    let (_server, serving) = Running::started(command);
    let base = serving.strip_prefix("serving at ").unwrap();
    // It sends its GET, and goes on waiting when the connection is aborted.
    let _client = Running::silent(peer.program(), &["client", base]);
    let wanted = format!("{NO_CSM} 0.01");
    let says = async {
        while !std::fs::read_to_string(said.path()).unwrap().contains(&wanted) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(20), says).await;
    assert!(in_time.is_ok(), "{}", std::fs::read_to_string(said.path()).unwrap());
}
