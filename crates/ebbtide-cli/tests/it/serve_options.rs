//! `ebbtide serve`: workers, state across restarts, certificates of clients, and one that is replaced.
#![cfg(target_os = "linux")]

use crate::common::private::write_private;
use crate::common::{Serving, command, ebbtide, refuse};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
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
fn a_raw_key_that_is_removed_from_the_file_is_refused_after_a_hangup() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["server", "one", "two"] {
        let key = KeyPair::generate().unwrap();
        write_private(&folder.path().join(format!("{name}.raw")), &key.serialize_pem());
        fs::write(folder.path().join(format!("{name}.pub")), key.public_key_pem()).unwrap();
    }
    let clients = file("clients");
    fs::copy(file("one.pub"), &clients).unwrap();
    let own = file("server.raw");
    let options = ["--bind", "coaps://127.0.0.1:0", "--raw-key", &own, "--peer-keys", &clients];
    let mut server = Serving::start(&options);
    let uri = format!("coaps://{}/test", server.after("serving at coaps://"));
    let (trusted, one, two) = (file("server.pub"), file("one.raw"), file("two.raw"));
    let get = |own: &str| ebbtide(&["get", &uri, "--raw-key", own, "--peer-keys", &trusted]).code;
    assert_eq!((get(&one), get(&two)), (Some(0), Some(1)));
    fs::copy(file("two.pub"), &clients).unwrap();
    server.hang_up();
    // The signal takes effect soon.
    assert!((0..100).any(|_| get(&two) == Some(0)));
    assert_eq!(get(&one), Some(1));
    // A file that is wrong changes nothing.
    fs::write(&clients, "nothing").unwrap();
    server.hang_up();
    assert!((0..3).all(|_| get(&two) == Some(0)));
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
    assert!(fs::read(&state).unwrap().starts_with(b"ebbtide state 3\n"));
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
fn authorities_of_clients_are_read_again_and_one_that_is_removed_loses_access() {
    let folder = tempfile::tempdir().unwrap();
    let old = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    certificates(folder.path(), &["server", "client"]);
    let theirs = folder.path().join("new");
    fs::create_dir(&theirs).unwrap();
    certificates(&theirs, &["client"]);
    let new = |name: &str| theirs.join(name).to_str().unwrap().to_owned();
    let accepted = old("accepted.pem");
    fs::copy(old("ca.pem"), &accepted).unwrap();
    for scheme in ["coaps+tcp", "coaps"] {
        fs::copy(old("ca.pem"), &accepted).unwrap();
        let bind = format!("{scheme}://127.0.0.1:0");
        let tls =
            ["--cert", &old("server.pem"), "--key", &old("server.key"), "--client-ca", &accepted];
        let mut server = Serving::start(&[&["--bind", &bind], &tls[..]].concat());
        let address = server.after(&format!("serving at {scheme}://"));
        let uri = format!("{scheme}://localhost:{}/test", address.rsplit(':').next().unwrap());
        let get = |cert: &str, key: &str| {
            let get =
                ["get", &uri, "--ca", &old("ca.pem"), "--cert", cert, "--key", key, "-B", "60"];
            ebbtide(&get).code
        };
        assert_eq!(get(&old("client.pem"), &old("client.key")), Some(0), "{scheme}");
        assert_eq!(get(&new("client.pem"), &new("client.key")), Some(1), "{scheme}");
        fs::copy(new("ca.pem"), &accepted).unwrap();
        server.hang_up();
        // The signal takes effect soon.
        let is_renewed = |_: &i32| get(&new("client.pem"), &new("client.key")) == Some(0);
        assert!((0..100).find(is_renewed).is_some(), "{scheme}");
        assert_eq!(get(&old("client.pem"), &old("client.key")), Some(1), "{scheme}");
    }
}

#[test]
fn a_second_process_at_the_address_of_workers_is_refused() {
    let server = Serving::start(&["--workers", "2"]);
    for workers in ["1", "2"] {
        let second = ebbtide(&["serve", "--bind", &server.address, "--workers", workers]);
        assert_eq!(second.code, Some(1), "{}", second.err);
        assert!(second.err.contains("is in use"), "{}", second.err);
    }
}

#[test]
fn a_key_that_is_removed_ends_its_sessions_and_two_keys_of_an_identity_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys.txt");
    write_private(&keys, "device:new\ndevice:old\nother:key\n");
    let file = keys.to_str().unwrap();
    let serve = ["--bind", "coaps://127.0.0.1:0", "--psk-file", file, "--metrics", "127.0.0.1:0"];
    let mut server = Serving::start(&serve);
    let uri = format!("coaps://{}/time", server.after("serving at coaps://"));
    let metrics = server.after("metrics at http://").trim_end_matches("/metrics").to_owned();
    for key in ["new", "old"] {
        let got = ebbtide(&["get", &uri, "-u", "device", "-k", key, "-B", "60"]);
        assert_eq!(got.code, Some(0), "{key}: {}", got.err);
    }
    let mut observe = command(&["observe", &uri, "-u", "device", "-k", "old", "--for", "600"]);
    let mut observer = observe.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut states = BufReader::new(observer.stdout.take().unwrap()).lines();
    states.next().unwrap().unwrap();
    let observers = || {
        let mut stream = TcpStream::connect(&metrics).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("ebbtide_observers "));
        line.unwrap().to_owned()
    };
    assert_eq!(observers(), "1");
    write_private(&keys, "device:new\nother:key\n");
    server.hang_up();
    // Its next notification finds no session.
    assert!((0..20_000).any(|_| observers() == "0"), "the observer keeps its session");
    observer.kill().unwrap();
    observer.wait().unwrap();
    assert_eq!(ebbtide(&["get", &uri, "-u", "device", "-k", "old", "-B", "60"]).code, Some(1));
    assert_eq!(ebbtide(&["get", &uri, "-u", "device", "-k", "new", "-B", "60"]).code, Some(0));
}

#[test]
fn a_service_manager_hears_of_the_start_of_life_and_of_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let mut command = command(&["serve", "--bind", "127.0.0.1:0"]);
    let mut server =
        Serving::spawn(command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "300000"));
    let heard = || {
        let mut text = [0; 64];
        let length = manager.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    assert_eq!(
        (heard(), heard(), heard()),
        ("READY=1".into(), "WATCHDOG=1".into(), "WATCHDOG=1".into())
    );
    // A signal to read files again does not end a server that has none.
    server.hang_up();
    assert_eq!(ebbtide(&["get", &server.uri("/test"), "-B", "20"]).code, Some(0));
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));
    assert!(std::iter::repeat_with(heard).any(|text| text == "STOPPING=1"));
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
