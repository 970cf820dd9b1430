//! One server follows another at sockets that a service manager keeps open: here this test is the manager.
#![cfg(target_os = "linux")]

use crate::common::private::write_private;
use crate::common::{Serving, command, refuse};
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The command with sockets as descriptors 3 and, if there are two, 4. The process must know its
/// own number, and a shell can tell it.
pub(crate) fn with_sockets(sockets: [Option<OwnedFd>; 2], arguments: &[&str]) -> Command {
    let count = sockets.iter().flatten().count();
    let second = if count > 1 { "4<&2" } else { "" };
    let run =
        format!("LISTEN_PID=$$ LISTEN_FDS={count} exec \"$0\" \"$@\" 3<&0 {second} 2>/dev/null");
    let mut shell = Command::new("sh");
    shell.args(["-c", &run, env!("CARGO_BIN_EXE_ebbtide")]).args(arguments);
    let [first, second] = sockets;
    shell.stdin(first.map_or_else(Stdio::null, Stdio::from));
    shell.stderr(second.map_or_else(Stdio::null, Stdio::from));
    shell
}

fn metric(address: &str, name: &str) -> f64 {
    let scraped = crate::metrics::scrape(address);
    *scraped.get(name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_server_that_follows_another_loses_no_request_no_observer_and_no_session() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (keys, state) = (file("keys"), file("state"));
    write_private(keys.as_ref(), "device:secret\n");
    let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let (plain, secure) = (bind(), bind());
    let (coap, coaps) =
        (plain.local_addr().unwrap().to_string(), secure.local_addr().unwrap().to_string());
    let at = format!("coaps://{coaps}");
    let start = || {
        let sockets =
            [&plain, &secure].map(|socket| Some(OwnedFd::from(socket.try_clone().unwrap())));
        let serve = ["serve", "--bind", &coap, "--bind", &at, "--psk-file", &keys];
        let more = ["--state", &state, "--metrics", "127.0.0.1:0"];
        let mut server = Serving::spawn(&mut with_sockets(sockets, &[&serve[..], &more].concat()));
        assert_eq!(server.after("serving at coaps://"), coaps);
        let metrics = server.after("metrics at http://").trim_end_matches("/metrics").to_owned();
        (server, metrics)
    };
    let (mut server, _) = start();

    // An observer of /time with the token 7 that acknowledges nothing.
    let observer = bind();
    observer.connect(&coap).unwrap();
    observer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    observer.send(b"\x41\x01\x00\x01\x07\x60\x54time").unwrap();
    let next_state = || {
        let mut bytes = [0; 100];
        loop {
            let length = observer.recv(&mut bytes).unwrap();
            if bytes[..length].get(1) == Some(&0x45) {
                observer.send(&[0x60, 0, bytes[2], bytes[3]]).unwrap();
                return bytes[..length].to_vec();
            }
        }
    };
    next_state();
    let uri = format!("{at}/time");
    let mut observe = command(&["observe", &uri, "-u", "device", "-k", "secret", "--for", "600"]);
    let mut secured = observe.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut states = BufReader::new(secured.stdout.take().unwrap()).lines();
    states.next().unwrap().unwrap();
    let load = ["bench", &format!("coap://{coap}/test"), "--rate", "200", "--duration", "4"];
    let load = command(&load).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    for _ in 0..3 {
        server.terminate();
        assert_eq!(server.wait().code(), Some(0));
        let (next, metrics) = start();
        server = next;
        next_state();
        states.next().unwrap().unwrap();
        states.next().unwrap().unwrap();
        assert_eq!(metric(&metrics, "ebbtide_observers"), 2.0);
        assert_eq!(metric(&metrics, "ebbtide_dtls_sessions"), 1.0);
        let handshakes = crate::metrics::scrape(&metrics);
        let handshakes =
            handshakes.iter().filter(|(name, _)| name.starts_with("ebbtide_dtls_handshakes"));
        assert!(
            handshakes.clone().all(|(_, count)| *count == 0.0),
            "{:?}",
            handshakes.collect::<Vec<_>>()
        );
    }
    let load = load.wait_with_output().unwrap();
    assert!(
        load.status.success(),
        "{}",
        String::from_utf8_lossy(&[load.stdout, load.stderr].concat())
    );
    secured.kill().unwrap();
    secured.wait().unwrap();
}

#[test]
fn connections_wait_for_the_next_server_at_a_listening_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let uri = format!("coap+tcp://{address}");
    // Nobody accepts it yet.
    let early = command(&["get", &format!("{uri}/test"), "-B", "60"]).stdout(Stdio::null()).spawn();
    let mut early = early.unwrap();
    for _ in 0..2 {
        let socket = OwnedFd::from(listener.try_clone().unwrap());
        let mut serve = with_sockets([Some(socket), None], &["serve", "--bind", &uri]);
        let mut server = serve.stdout(Stdio::piped()).spawn().unwrap();
        assert!(early.wait().unwrap().success());
        let id = server.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        assert!(server.wait().unwrap().success());
        early = command(&["get", &format!("{uri}/test"), "-B", "60"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
    }
    early.kill().unwrap();
    early.wait().unwrap();
}

#[test]
fn a_socket_that_was_handed_over_and_is_not_asked_for_is_named() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let mut serve = Command::new("sh");
    let run = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" serve --bind 127.0.0.1:0 3<&0";
    serve.args(["-c", run, env!("CARGO_BIN_EXE_ebbtide")]);
    let refused = serve.stdin(OwnedFd::from(socket)).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("LISTEN_FDS") && said.contains(&format!("add --bind {address}")),
        "{said}"
    );
    // Descriptors that are meant for another process are not touched; those that are not there are an error.
    let run = "LISTEN_PID=1 LISTEN_FDS=9 exec \"$0\" serve --check --bind 127.0.0.1:0";
    let checked =
        Command::new("sh").args(["-c", run, env!("CARGO_BIN_EXE_ebbtide")]).output().unwrap();
    assert!(checked.status.success());
    let run = "LISTEN_PID=$$ LISTEN_FDS=999 exec \"$0\" serve --check --bind 127.0.0.1:0";
    let missing =
        Command::new("sh").args(["-c", run, env!("CARGO_BIN_EXE_ebbtide")]).output().unwrap();
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(missing.status.code() == Some(2) && said.contains("is not open"), "{said}");
    refuse(&["serve", "--server-id", "256"], &["--server-id"]);
}
