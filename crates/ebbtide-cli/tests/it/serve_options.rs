//! `ebbtide serve`: workers, state across restarts, certificates of clients, and one that is replaced.
#![cfg(target_os = "linux")]

use crate::common::private::write_private;
use crate::common::{Serving, command, ebbtide, refuse};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

/// Writes an authority, and for each name a certificate of it with its key.
fn certificates(folder: &Path, names: &[&str]) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "the authority");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
    for name in names {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, *name);
        let certificate = params.signed_by(&key, &authority).unwrap();
        fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        write_private(&folder.join(format!("{name}.key")), &key.serialize_pem());
    }
}

#[test]
fn clients_without_a_certificate_are_refused_and_a_new_certificate_is_shown_after_a_hangup() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    certificates(folder.path(), &["server", "client"]);
    let (own, secret, ca) = (file("server.pem"), file("server.key"), file("ca.pem"));
    let tls = ["--bind", "coaps+tcp://127.0.0.1:0", "--cert", &own, "--key", &secret];
    let mut server = Serving::start(&[&tls[..], &["--client-ca", &ca]].concat());
    let address = server.after("serving at coaps+tcp://");
    let port = address.rsplit(':').next().unwrap();
    let uri = format!("coaps+tcp://localhost:{port}/test");
    let refused = ebbtide(&["get", &uri, "--ca", &ca]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    let (cert, key) = (file("client.pem"), file("client.key"));
    let known = ["get", &uri, "--ca", &ca, "--cert", &cert, "--key", &key];
    assert_eq!(ebbtide(&known).code, Some(0));

    // Another authority, another certificate: the client trusts only the new one.
    let theirs = folder.path().join("new");
    fs::create_dir(&theirs).unwrap();
    certificates(&theirs, &["server"]);
    for name in ["server.pem", "server.key"] {
        fs::copy(theirs.join(name), folder.path().join(name)).unwrap();
    }
    server.hang_up();
    let ca = theirs.join("ca.pem").to_str().unwrap().to_owned();
    let renewed = ["get", &uri, "--ca", &ca, "--cert", &cert, "--key", &key];
    // The signal takes effect soon.
    assert!((0..100).any(|_| ebbtide(&renewed).code == Some(0)), "the new certificate is shown");
    // A file that is wrong leaves it.
    fs::write(folder.path().join("server.pem"), "nothing").unwrap();
    server.hang_up();
    assert!((0..3).all(|_| ebbtide(&renewed).code == Some(0)));
}

#[test]
fn workers_and_a_stored_state_serve_as_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let server = Serving::start(&["--workers", "2", "--state", state.to_str().unwrap()]);
    for _ in 0..4 {
        let got = ebbtide(&["get", &server.uri("/test")]);
        assert_eq!(got.code, Some(0), "{}", got.err);
    }
    let threads = fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    let names = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("comm")));
    let workers = names.filter(|name| name.as_ref().is_ok_and(|name| name.starts_with("ebbtide-")));
    assert_eq!(workers.count(), 2);
    assert!(fs::read(&state).unwrap().starts_with(b"ebbtide state 2\n"));
}

#[test]
fn a_state_that_cannot_be_used_is_named_with_its_option_and_path() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/state");
    let server = ["serve", "--bind", "127.0.0.1:0", "--state", missing.to_str().unwrap()];
    let answer = ebbtide(&server);
    assert_eq!(answer.code, Some(1));
    assert!(
        answer.err.contains("--state ") && answer.err.contains("missing/state: No such file"),
        "{}",
        answer.err
    );
    let path = folder.path().join("state");
    let _server = Serving::start(&["--state", path.to_str().unwrap()]);
    let second = ebbtide(&["serve", "--bind", "127.0.0.1:0", "--state", path.to_str().unwrap()]);
    assert_eq!(second.code, Some(1));
    assert!(
        second.err.contains("--state ") && second.err.contains("another process uses"),
        "{}",
        second.err
    );
}

#[test]
fn options_come_from_a_file_and_variables_and_are_checked_without_serving() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("serve.toml");
    let config = path.to_str().unwrap();
    fs::write(&path, "bind = [\"127.0.0.1:0\"]\nmetrics = \"127.0.0.1:0\"\nmax-rate = 1000\n")
        .unwrap();
    let mut server = Serving::spawn(&mut command(&["serve", "--config", config]));
    assert_eq!(ebbtide(&["get", &server.uri("/test"), "-B", "20"]).code, Some(0));
    assert!(server.after("metrics at http://").starts_with("127.0.0.1:"));
    let checked = command(&["serve", "--check"]).env("EBBTIDE_CONFIG", config).output().unwrap();
    assert_eq!(checked.status.code(), Some(0));
    assert_eq!(checked.stdout, b"the configuration is valid\n");
    let wrong =
        command(&["serve", "--check", "--config", config]).env("EBBTIDE_WORKERS", "many").output();
    let wrong = wrong.unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        said.contains("EBBTIDE_WORKERS") && said.contains("'many' for '--workers <N>'"),
        "{said}"
    );
    fs::write(&path, "bnd = \"127.0.0.1:0\"\n").unwrap();
    refuse(&["serve", "--config", config], &["serve.toml: 'bnd' is not an option", "bind"]);
}

#[test]
fn an_authority_of_clients_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    certificates(folder.path(), &["server"]);
    let (cert, key, none) = (file("server.pem"), file("server.key"), file("none.pem"));
    let tls = ["serve", "--bind", "coaps+tcp://127.0.0.1:0", "--cert", &cert, "--key", &key];
    let refused = [&tls[..], &["--client-ca", &none]].concat();
    refuse(&refused, &["--client-ca", "none.pem"]);
    refuse(&["serve", "--workers", "0"], &["--workers"]);
}

#[test]
fn a_signal_to_end_lets_requests_that_are_being_processed_be_answered() {
    let mut server = Serving::start(&[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.connect(&server.address).unwrap();
    // A Confirmable GET with the token 7 for /separate, which is acknowledged before it is answered.
    socket.send(&[b"\x41\x01\x00\x01\x07\xb8", &b"separate"[..]].concat()).unwrap();
    let mut received = [0; 100];
    assert_eq!(socket.recv(&mut received).unwrap(), 4, "an empty acknowledgement");
    server.terminate();
    socket.recv(&mut received).unwrap();
    assert_eq!((received[0], received[1], received[4]), (0x41, 0x45, 7), "a response of its own");
    socket.send(&[0x60, 0, received[2], received[3]]).unwrap();
    assert_eq!(server.wait().code(), Some(0));
}
