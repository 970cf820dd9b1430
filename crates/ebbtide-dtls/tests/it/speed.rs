//! What handshakes and records cost. `cargo test --release -p ebbtide-dtls speed -- --ignored
//! --nocapture` prints it.

use crate::common::{Pair, SERVER, address, client, client_config, credentials, server};
use ebbtide_core::time::Instant;
use ebbtide_dtls::{CipherSuite, ClientCredentials, Config, Endpoint, Output, Timing};
use std::time::Duration;

/// The time that `work` takes, of which this thread had the processor or not.
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn time(work: impl FnOnce()) -> Duration {
    let began = std::time::Instant::now();
    work();
    began.elapsed()
}

/// The time that this thread has had a processor, which is precise on a busy machine; zero where the system
/// does not tell.
fn on_processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// The time that a server works on a handshake.
fn handshake_at_the_server(
    server: &mut Endpoint,
    credentials: impl Fn() -> ClientCredentials,
) -> Duration {
    const HANDSHAKES: u32 = 2000;
    let mut at_server = Duration::ZERO;
    for number in 0..HANDSHAKES {
        let from = std::net::SocketAddr::from((number.to_be_bytes(), 5684));
        let mut client = client(client_config(), number.into());
        client.connect(Instant::ZERO, address(SERVER), credentials(), Timing::default());
        loop {
            let mut out = Vec::new();
            while let Output::Transmit { datagram, .. } = client.poll_output() {
                out.push(datagram.to_vec());
            }
            if out.is_empty() {
                break;
            }
            let before = on_processor();
            for datagram in &mut out {
                server.handle_datagram(Instant::ZERO, from, datagram, &mut |_, _| {});
            }
            at_server += on_processor() - before;
            loop {
                match server.poll_output() {
                    Output::Transmit { datagram, .. } => {
                        let mut datagram = datagram.to_vec();
                        let from = address(SERVER);
                        client.handle_datagram(Instant::ZERO, from, &mut datagram, &mut |_, _| {});
                    }
                    Output::Event(_) => {}
                    Output::Timeout(_) => break,
                }
            }
        }
    }
    assert_eq!(server.counters().established, u64::from(HANDSHAKES));
    at_server / HANDSHAKES
}

#[test]
#[ignore = "a measurement, for release builds"]
fn a_handshake_takes_the_server_little_time() {
    let mut server = server(Config::default(), 1);
    let took = handshake_at_the_server(&mut server, || credentials("device", b"secret").into());
    println!("a handshake at the server: {took:?}");
}

/// Without path validation, which is the application's.
#[cfg(feature = "certificates")]
#[test]
#[ignore = "a measurement, for release builds"]
fn a_handshake_with_certificates_takes_the_server_little_time() {
    use crate::common::certificates::{Known, accept, certified, shows};
    use ebbtide_dtls::ClientCertificates;
    for own in [None, Some(certified("device"))] {
        let mut server = server(Config::default(), 1);
        let clients = match own {
            Some(_) => ClientCertificates::Required(std::sync::Arc::new(Known)),
            None => ClientCertificates::None,
        };
        accept(&mut server, &certified("server"), clients);
        let took = handshake_at_the_server(&mut server, || shows(own.clone()).into());
        println!("a handshake with certificates at the server: {took:?}, both: {}", own.is_some());
    }
}

#[test]
#[ignore = "a measurement, for release builds"]
fn a_record_takes_little_time() {
    const RECORDS: u32 = 100_000;
    for suite in CipherSuite::PSK {
        let config = |cid_length| Config { suites: vec![suite], cid_length, ..Config::default() };
        let mut pair = Pair::new(config(Some(0)), config(Some(6)));
        let session = pair.connect(credentials("device", b"secret"));
        pair.run(Duration::from_secs(1));
        let mut records: Vec<Vec<u8>> = vec![Vec::with_capacity(200); RECORDS as usize];
        let sealing = time(|| {
            for record in &mut records {
                assert!(pair.client.send(pair.now, session, &[7; 80], record).is_ok());
            }
        });
        let from = pair.client_address;
        let mut count = 0;
        let opening = time(|| {
            for record in &mut records {
                pair.server.handle_datagram(pair.now, from, record, &mut |_, _| count += 1);
            }
        });
        assert_eq!(count, RECORDS);
        println!("{}: seal {:?}, open {:?}", suite.name(), sealing / RECORDS, opening / RECORDS);
    }
}

#[test]
#[ignore = "a measurement, for release builds"]
fn a_forged_hello_takes_little_time() {
    let mut pair = Pair::new(client_config(), Config::default());
    pair.connect(credentials("device", b"secret"));
    let Output::Transmit { datagram, .. } = pair.client.poll_output() else { return };
    let hello = datagram.to_vec();
    let from = pair.client_address;
    const HELLOS: u32 = 100_000;
    let spent = time(|| {
        for number in 0..HELLOS {
            let mut forged = hello.clone();
            forged[27..31].copy_from_slice(&number.to_be_bytes());
            pair.server.handle_datagram(pair.now, from, &mut forged, &mut |_, _| {});
            while matches!(pair.server.poll_output(), Output::Transmit { .. }) {}
        }
    });
    println!("a forged ClientHello: {:?}", spent / HELLOS);
}
