//! Three servers behind one address, in a network of their own, with the rules that are shipped.
#![cfg(target_os = "linux")]

use crate::common::namespaces::{in_namespaces, is_inside, run, skip};
use crate::common::private::write_private;
use crate::common::{Serving, command};
use crate::metrics::scrape;
use ebbtide::dtls::{Credentials, Psk};
use ebbtide::{Client, ClientConfig};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/balance.nft");
/// The address of the rules, and those of the servers.
const SHARED: &str = "192.0.2.10";
const SERVERS: [&str; 3] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
const CLIENTS: u32 = 12;

#[test]
fn a_session_is_found_by_its_server_whichever_of_them_its_new_address_leads_to() {
    if run("nft", &["--version"]) {
        in_namespaces("balance::the_machine_with_the_address");
    } else {
        skip("no nft");
    }
}

/// Forwards the datagrams of one client: those after the handshake and the first request from another port.
fn nat() -> SocketAddr {
    /// Records with a connection ID before that: Finished and the request.
    const FIRST: usize = 2;
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = front.local_addr().unwrap();
    let backs = [(); 2].map(|()| UdpSocket::bind("0.0.0.0:0").unwrap());
    let client = Arc::new(OnceLock::new());
    for back in &backs {
        let (back, front) = (back.try_clone().unwrap(), front.try_clone().unwrap());
        let client = client.clone();
        thread::spawn(move || {
            let mut bytes = [0; 2048];
            while let Ok(length) = back.recv(&mut bytes) {
                let client: &SocketAddr = client.get().unwrap();
                front.send_to(&bytes[..length], client).unwrap();
            }
        });
    }
    thread::spawn(move || {
        let (mut bytes, mut records) = ([0; 2048], 0);
        while let Ok((length, from)) = front.recv_from(&mut bytes) {
            client.get_or_init(|| from);
            let back = &backs[usize::from(records >= FIRST)];
            records += bytes[..length].windows(3).filter(|head| *head == [25, 0xfe, 0xfd]).count();
            back.send_to(&bytes[..length], (SHARED, 5684)).unwrap();
        }
    });
    address
}

/// Without the namespaces it is no test.
#[test]
fn the_machine_with_the_address() {
    if !is_inside() {
        return;
    }
    assert!(run("ip", &["link", "set", "lo", "up"]));
    for address in SERVERS.iter().chain([&SHARED]) {
        assert!(run("ip", &["address", "add", &format!("{address}/32"), "dev", "lo"]));
    }
    assert!(run("nft", &["-f", RULES]));
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    write_private(&keys, "device:secret\n");
    let start = |(id, address): (usize, &&str)| {
        let (plain, secure) = (format!("{address}:0"), format!("coaps://{address}:5684"));
        let (id, keys) = (id.to_string(), keys.to_str().unwrap());
        let serve = ["serve", "--bind", &plain, "--bind", &secure, "--psk-file", keys];
        let more = ["--server-id", &id, "--metrics", "127.0.0.1:0"];
        let mut server = Serving::spawn(&mut command(&[&serve[..], &more].concat()));
        server.after("serving at coaps://");
        let metrics = server.after("metrics at http://").trim_end_matches("/metrics").to_owned();
        (server, metrics)
    };
    let servers: Vec<_> = (1..).zip(&SERVERS).map(start).collect();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let credentials = Credentials::new("device", Psk::new(b"secret").unwrap());
            let client = Client::with_config(ClientConfig::new().credentials(credentials));
            let uri = format!("coaps://{}/test", nat());
            for _ in 0..4 {
                assert!(client.get(&*uri).await.unwrap().is_success());
            }
            // It still has to answer the challenge to its new address.
            clients.push(client);
        }
        let sum =
            |name: &str| servers.iter().map(|(_, metrics)| scrape(metrics)[name]).sum::<f64>();
        let all = f64::from(CLIENTS);
        let has_moved = || sum("ebbtide_dtls_addresses_total{outcome=\"changed\"}") == all;
        for _ in 0..2000 {
            if has_moved() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(has_moved(), "not all are found by their connection IDs");
        assert_eq!(sum("ebbtide_dtls_handshakes_total{outcome=\"full\"}"), all);
        let has_some =
            |(_, metrics): &&(Serving, String)| scrape(metrics)["ebbtide_dtls_sessions"] > 0.0;
        assert!(servers.iter().filter(has_some).count() > 1, "the handshakes are divided");
    });
}
