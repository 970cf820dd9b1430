//! Handshakes with libcoap's programs, as Debian packages them, over OpenSSL and GnuTLS. Without the
//! programs these tests say so and pass.
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test against real programs in real time, where a panic is how it fails"
)]

use crate::common::{credentials, psk};
use ebbtide_core::time::Instant;
use ebbtide_dtls::{
    CipherSuite, Config, Credentials, Endpoint, Event, Failure, Output, SessionId, Timing,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Output as Said, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An endpoint on a socket.
struct Node {
    socket: UdpSocket,
    endpoint: Endpoint,
    began: std::time::Instant,
    events: Vec<Event>,
    data: Vec<(SessionId, Vec<u8>)>,
}

impl Node {
    fn new(config: Config) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let endpoint = Endpoint::new(config, Box::new(ChaCha8Rng::seed_from_u64(7)));
        let began = std::time::Instant::now();
        Self { socket, endpoint, began, events: Vec::new(), data: Vec::new() }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.began.elapsed()
    }

    fn send(&mut self, session: SessionId, data: &[u8]) {
        let mut record = Vec::new();
        let to = self.endpoint.send(self.now(), session, data, &mut record).unwrap();
        self.socket.send_to(&record, to).unwrap();
    }

    /// Sends what is to be sent, and waits for a datagram a little.
    fn turn(&mut self) {
        loop {
            match self.endpoint.poll_output() {
                Output::Transmit { to, datagram } => {
                    self.socket.send_to(datagram, to).unwrap();
                }
                Output::Event(event) => self.events.push(event),
                Output::Timeout(_) => break,
            }
        }
        let mut buffer = [0; 2048];
        match self.socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                let now = self.now();
                let data = &mut self.data;
                self.endpoint.handle_datagram(
                    now,
                    from,
                    &mut buffer[..length],
                    &mut |id, bytes| {
                        data.push((id, bytes.to_vec()));
                    },
                );
            }
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused
                ),
                "{error}"
            ),
        }
        self.endpoint.handle_timeout(self.now());
    }

    fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        let began = std::time::Instant::now();
        while !done(self) {
            assert!(began.elapsed() < Duration::from_secs(20), "{what}: {:?}", self.events);
            self.turn();
        }
    }

    fn established(&self) -> Vec<bool> {
        let of = |event: &Event| match event {
            Event::Established { resumed, .. } => Some(*resumed),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }
}

fn found(program: &str) -> bool {
    let mut command = Command::new(program);
    let run = command.arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if run.is_err() {
        println!("{program} is not installed: nothing was tested");
    }
    run.is_ok()
}

/// A server that answers each request with `hello from ebbtide`, while `program` runs.
fn serve(config: Config, program: &str, args: &[&str]) -> (Node, Said) {
    let mut node = Node::new(config);
    let lookup = |identity: &[u8]| (identity == b"device").then(|| psk(b"secret"));
    node.endpoint.accept(Box::new(lookup));
    let uri = format!("coaps://{}/x", node.socket.local_addr().unwrap());
    let mut command = Command::new(program);
    command.args(args).arg(uri).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let waiter = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let said = child.wait_with_output().unwrap();
            over.store(true, Ordering::Relaxed);
            said
        }
    });
    node.until(program, |node| !node.data.is_empty() || over.load(Ordering::Relaxed));
    while !over.load(Ordering::Relaxed) {
        for (session, request) in std::mem::take(&mut node.data) {
            node.send(session, &answer(&request));
        }
        node.turn();
    }
    // Its close_notify may have come after its end.
    node.turn();
    node.turn();
    (node, waiter.join().unwrap())
}

/// A piggybacked 2.05 with the request's message ID and token.
fn answer(request: &[u8]) -> Vec<u8> {
    let token = usize::from(request[0] & 15);
    let mut response = vec![0x60 | request[0] & 15, 0x45, request[2], request[3]];
    response.extend_from_slice(&request[4..4 + token]);
    response.extend_from_slice(b"\xffhello from ebbtide");
    response
}

#[test]
fn its_client_gets_an_answer_from_us_over_openssl_and_gnutls() {
    for program in ["coap-client-openssl", "coap-client-gnutls"] {
        if !found(program) {
            continue;
        }
        let args = ["-B", "10", "-u", "device", "-k", "secret", "-m", "get"];
        let (node, said) = serve(Config::default(), program, &args);
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(text.contains("hello from ebbtide"), "{program}: {said:?} {:?}", node.events);
        assert_eq!(node.established(), [false], "{program}");
        let closed = |event: &Event| matches!(event, Event::Ended { reason: Failure::ClosedByPeer, identity, .. } if &**identity == b"device");
        assert!(node.events.iter().any(closed), "{program}: {:?}", node.events);
    }
}

#[test]
fn its_client_with_a_wrong_key_is_refused_and_the_server_knows_why() {
    for program in ["coap-client-openssl", "coap-client-gnutls"] {
        if !found(program) {
            continue;
        }
        for (identity, key, reason) in
            [("device", "wrong", Failure::WrongKey), ("nobody", "secret", Failure::UnknownIdentity)]
        {
            let args = ["-B", "5", "-u", identity, "-k", key, "-m", "get"];
            let (node, said) = serve(Config::default(), program, &args);
            let text = String::from_utf8_lossy(&said.stdout);
            assert!(!text.contains("hello from ebbtide"), "{program}: {said:?}");
            let refused = |event: &Event| matches!(event, Event::Ended { reason: found, .. } if *found == reason);
            assert!(node.events.iter().any(refused), "{program}: {:?} {said:?}", node.events);
        }
    }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts its server; the address is that of its DTLS port.
fn its_server(program: &str) -> (Running, SocketAddr) {
    // The DTLS port is the next one.
    let port = (20_000..60_000)
        .step_by(2)
        .skip(std::process::id() as usize % 1000 + program.len())
        .find(|port| (0..2).all(|next| UdpSocket::bind(("127.0.0.1", port + next)).is_ok()))
        .unwrap();
    let mut command = Command::new(program);
    command.args(["-A", "127.0.0.1", "-p", &port.to_string(), "-k", "secret"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(command.spawn().unwrap());
    (running, SocketAddr::from(([127, 0, 0, 1], port + 1)))
}

#[test]
fn we_get_an_answer_from_its_server_over_openssl_and_gnutls_and_resume_the_session() {
    for program in ["coap-server-openssl", "coap-server-gnutls"] {
        if !found(program) {
            continue;
        }
        let (_running, server) = its_server(program);
        for suite in CipherSuite::PSK {
            let config = Config { suites: vec![suite], cid_length: Some(0), ..Config::default() };
            let mut node = Node::new(config);
            let session = node.endpoint.connect(
                node.now(),
                server,
                credentials("device", b"secret"),
                Timing::default(),
            );
            node.until(program, |node| !node.established().is_empty());
            // GET /time
            node.send(session, b"\x41\x01\x12\x34\x77\xb4time");
            node.until(program, |node| !node.data.is_empty());
            let (_, response) = &node.data[0];
            assert_eq!(response[..5], *b"\x61\x45\x12\x34\x77", "{program} {suite:?}");
            let saved = node.endpoint.saved_session(session);
            node.endpoint.close(node.now(), session);
            node.turn();
            if saved.is_none() {
                println!("{program} does not let sessions be resumed");
                continue;
            }
            let again = Credentials { saved, ..credentials("device", b"secret") };
            node.endpoint.connect(node.now(), server, again, Timing::default());
            node.until(program, |node| node.established().len() == 2);
            // GnuTLS asks its application to keep sessions by ID, and libcoap does not.
            let resumes = program == "coap-server-openssl";
            assert_eq!(node.established(), [false, resumes], "{program} {suite:?}");
        }
    }
}
