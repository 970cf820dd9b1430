//! Sessions of DTLS are known by addresses that nobody has. A datagram that claims to come from one of them, which a
//! namespace of its own makes possible, is dropped: it must not pass for a peer whose key is known.
#![cfg(target_os = "linux")]

use ebbtide::server::{Router, Server, get};
use std::net::{Ipv6Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;
use tokio::net::UdpSocket;

const INSIDE: &str = "EBBTIDE_TEST_INSIDE";

/// The first session of a socket for IPv4.
const STAND_IN: Ipv6Addr = Ipv6Addr::new(0x01eb, 4, 0, 0, 0, 0, 0, 0);

/// Whether a GET from this address is answered.
async fn is_answered(from: Ipv6Addr, server: SocketAddr) -> bool {
    let socket = UdpSocket::bind((from, 5684)).await.unwrap();
    // A Confirmable GET of /x.
    socket.send_to(&[0x40, 1, 0, 1, 0xb1, b'x'], server).await.unwrap();
    let mut answer = [0; 64];
    tokio::time::timeout(Duration::from_millis(500), socket.recv(&mut answer)).await.is_ok()
}

#[tokio::test]
async fn inside_the_namespace() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    for arguments in
        [&["link", "set", "lo", "up"][..], &["address", "add", "1eb:4::/128", "dev", "lo", "nodad"]]
    {
        assert!(Command::new("ip").args(arguments).status().unwrap().success());
    }
    let router = Router::new().route("/x", get(|| "x"));
    let server = Server::bind(router, ["[::1]:0"]).unwrap();
    let (meter, address) = (server.meter(), server.local_addrs()[0]);
    assert!(is_answered(Ipv6Addr::LOCALHOST, address).await);
    assert!(!is_answered(STAND_IN, address).await);
    assert_eq!(meter.snapshot().counters.received, 1);
}

#[test]
fn a_datagram_from_the_address_of_a_session_is_dropped() {
    let itself = std::env::current_exe().unwrap();
    let inside = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", program]).env(INSIDE, "1");
        command
    };
    let possible = inside("true").status().is_ok_and(|status| status.success());
    let has_ip = Command::new("ip").arg("-Version").status().is_ok_and(|status| status.success());
    if !possible || !has_ip {
        assert!(std::env::var_os("CI").is_none(), "no namespaces, or no ip");
        println!("skipped: no namespaces, or no ip");
        return;
    }
    let itself = itself.to_str().unwrap();
    let ran = inside(itself)
        .args(["--exact", "forged_stand_ins::inside_the_namespace"])
        .status()
        .unwrap();
    assert!(ran.success());
}
