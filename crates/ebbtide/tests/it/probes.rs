//! A control that sends probes, over real sockets and a relay that loses a fifth of everything, to
//! our own server and to libcoap's.

use crate::common::child_process::ChildProcess;
use ebbtide::server::{Call, Router, Server, get};
use ebbtide::{Client, ClientConfig, Response};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::net::UdpSocket;

/// Starts a relay between one client and `server` that loses a fifth in each direction.
async fn relay(server: SocketAddr) -> SocketAddr {
    let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    back.connect(server).await.unwrap();
    let address = front.local_addr().unwrap();
    tokio::spawn(async move {
        let mut luck = ChaCha8Rng::seed_from_u64(3);
        let (mut there, mut here) = ([0; 2048], [0; 2048]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((len, from)) = front.recv_from(&mut there) => {
                    client = Some(from);
                    if !luck.next_u32().is_multiple_of(5) {
                        let _ = back.send(&there[..len]).await;
                    }
                }
                Ok(len) = back.recv(&mut here) => {
                    if let Some(to) = client && !luck.next_u32().is_multiple_of(5) {
                        let _ = front.send_to(&here[..len], to).await;
                    }
                }
            }
        }
    });
    address
}

/// A hundred requests through the relay by twenty clients in turn, five each: the first of each
/// begins without knowledge of the path.
async fn ask(server: SocketAddr, path: &str) {
    let relay = relay(server).await;
    for _ in 0..20 {
        let mut config =
            ClientConfig::new().control(ebbtide::congestion::ControlConfig::parse("ebb").unwrap());
        // A path of microseconds: what takes minutes elsewhere takes seconds.
        config = config.ack_timeout(Duration::from_millis(60));
        config = config.max_retransmit(8);
        let client = Client::with_config(config);
        for _ in 0..5 {
            let response = client.get(format!("coap://{relay}{path}")).await.unwrap();
            assert!(response.is_success());
        }
        assert_eq!(client.snapshot().open_exchanges(), 0);
    }
}

#[tokio::test]
async fn our_server_answers_every_request_and_every_probe() {
    let router = Router::new().route("/small", get(|_: &Call<'_>| Response::content("small")));
    let server = Server::bind(router, ["127.0.0.1:0"]).unwrap();
    ask(server.local_addrs()[0], "/small").await;
}

#[tokio::test]
async fn so_does_libcoap() {
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("coap-server-notls");
    command.args(["-A", "127.0.0.1", "-p", &port.to_string()]);
    let Ok(child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        // Past the capture of the test harness, which hides what a passing test prints.
        let _ =
            std::io::Write::write_all(&mut std::io::stderr(), b"skipped: no coap-server-notls\n");
        return;
    };
    let _running = ChildProcess(child);
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    let up = Client::new();
    let pinged = async {
        while up.ping(format!("coap://{server}")).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), pinged).await.expect("it serves");
    ask(server, "/time").await;
}
