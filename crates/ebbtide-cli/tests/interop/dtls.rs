//! `coaps` with libcoap's programs over OpenSSL and GnuTLS, both ways.

use super::our_server::DIGITS;
use super::peers::{EBBTIDE, LOSING, Running, ebbtide, free_address, output, present};
use super::private::write_private;
use super::relay::relay;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

const LIBRARIES: [&str; 2] = ["openssl", "gnutls"];

fn found(program: &str) -> bool {
    let mut command = Command::new(program);
    let run = command.arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status();
    present("libcoap", run.is_ok())
}

/// `ebbtide serve` with one key, the file of which stays as long as the folder.
fn our_server(folder: &tempfile::TempDir) -> (Running, SocketAddr, u32) {
    let keys = folder.path().join("keys");
    write_private(&keys, "# one device\ndevice:0x736563726574\n");
    let address = free_address("127.0.0.1");
    let mut command = Command::new(EBBTIDE);
    command.args(["serve", "--bind", &format!("coaps://{address}"), "--psk-file"]).arg(keys);
    let (running, first) = Running::started(command);
    assert_eq!(first, format!("serving at coaps://{address}"));
    let id = running.id();
    (running, address, id)
}

/// What its client says to a request.
async fn ask(library: &str, args: &[&str], server: SocketAddr, path: &str) -> String {
    let uri = format!("coaps://{server}{path}");
    let output = output(format!("coap-client-{library}"), &[args, &[uri.as_str()]].concat()).await;
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned()
}

#[tokio::test]
async fn its_clients_get_bodies_and_states_from_us_with_the_right_key_only() {
    for library in LIBRARIES {
        if !found(&format!("coap-client-{library}")) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let (_running, at, _) = our_server(&folder);
        let right = ["-B", "20", "-u", "device", "-k", "secret"];
        assert_eq!(ask(library, &right, at, "/test").await, DIGITS, "{library}");
        let large = ask(library, &right, at, "/large").await;
        assert!(large.len() > 1024, "{library}: {large}");
        let observed = ask(library, &[&right[..], &["-w", "-s", "3"]].concat(), at, "/time").await;
        assert!(observed.lines().count() >= 3, "{library}: {observed}");
        for wrong in [["-u", "device", "-k", "wrong"], ["-u", "nobody", "-k", "secret"]] {
            let said = ask(library, &[&["-B", "5"], &wrong[..]].concat(), at, "/test").await;
            assert!(!said.contains(DIGITS), "{library}: {said}");
        }
        let at = relay(at, LOSING, 4).await;
        let patient = ["-B", "60", "-u", "device", "-k", "secret"];
        assert_eq!(ask(library, &patient, at, "/test").await, DIGITS, "{library}, with losses");
    }
}

/// Starts its server; the address is that of its DTLS port, which is the next one.
fn its_server(library: &str) -> (Running, SocketAddr) {
    let free = |address: SocketAddr| std::net::UdpSocket::bind(address).is_ok();
    let next = |at: SocketAddr| SocketAddr::new(at.ip(), at.port().saturating_add(1));
    let plain = std::iter::repeat_with(|| free_address("127.0.0.1"));
    let plain = plain.take(100).find(|address| free(next(*address))).unwrap();
    let port = plain.port().to_string();
    let args = ["-A", "127.0.0.1", "-p", &port, "-k", "secret", "-d", "10"];
    (Running::silent(&format!("coap-server-{library}"), &args), next(plain))
}

#[tokio::test]
async fn we_get_bodies_from_its_servers_and_an_error_with_the_wrong_key() {
    for library in LIBRARIES {
        if !found(&format!("coap-server-{library}")) {
            continue;
        }
        let (_running, at) = its_server(library);
        tokio::time::sleep(Duration::from_millis(300)).await;
        let uri = |path: &str| format!("coaps://{at}{path}");
        let key = ["-u", "device", "-k", "secret", "-B", "20"];
        let time = ebbtide(&[&["get"], &key[..], &[&uri("/time")]].concat()).await;
        assert!(time.contains(':'), "{library}: {time}");
        let body = "b".repeat(3000);
        let put = ["put", "-e", &body];
        ebbtide(&[&put[..], &key[..], &[&uri("/example_data")]].concat()).await;
        let got = ebbtide(&[&["get"], &key[..], &[&uri("/example_data")]].concat()).await;
        assert_eq!(got.trim_end(), body, "{library}");
        let wrong = ["get", "-u", "device", "-k", "wrong", "-B", "10", &uri("/time")];
        let refused = output(EBBTIDE, &wrong).await;
        assert!(!refused.status.success() && refused.stdout.is_empty(), "{library}");
        let losing = relay(at, LOSING, 4).await;
        let uri = format!("coaps://{losing}/time");
        let patient = ["get", "-u", "device", "-k", "secret", "-B", "60", &uri];
        assert!(ebbtide(&patient).await.contains(':'), "{library}, with losses");
    }
}

#[tokio::test]
async fn keys_are_read_again_at_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let (_running, at, id) = our_server(&folder);
    let uri = format!("coaps://{at}/test");
    let new = ["get", "-u", "second", "-k", "other", "-B", "10", &uri];
    assert!(!output(EBBTIDE, &new).await.status.success());
    write_private(&folder.path().join("keys"), "second:other\n");
    let hangup = Command::new("kill").args(["-HUP", &id.to_string()]).status().unwrap();
    assert!(hangup.success());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(ebbtide(&new).await.trim_end(), DIGITS);
    let old = ["get", "-u", "device", "-k", "secret", "-B", "10", &uri];
    assert!(!output(EBBTIDE, &old).await.status.success());
}
