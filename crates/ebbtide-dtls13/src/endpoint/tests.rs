//! Clients and a server of DTLS 1.3 without sockets.

mod costs;
#[path = "../../../ebbtide/tests/it/common/counting.rs"]
mod counting;
mod retry;

use super::*;
use crate::ServedCertificate;
use ebbtide_dtls::{CertificateError, CertificateVerifier, Verified};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

struct Anyone;

impl CertificateVerifier for Anyone {
    fn verify(&self, _: &[&[u8]], _: Option<&str>) -> Result<Verified, CertificateError> {
        Ok(Verified { public_key: Vec::new(), identity: b"peer".to_vec() })
    }
}

fn own() -> Certificate {
    own_for(1)
}

/// A certificate for so many names.
fn own_for(names: usize) -> Certificate {
    let names: Vec<String> = (0..names).map(|n| format!("device-{n:08}.example")).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    Certificate::new(made.cert.der().to_vec(), made.signing_key.serialize_der()).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the standard library has no other instant")]
fn epoch() -> std::time::Instant {
    std::time::Instant::now()
}

fn server(handshakes: usize) -> Dtls13Endpoint {
    server_with(handshakes, own(), None)
}

fn server_with(
    handshakes: usize,
    own: Certificate,
    clients: Option<Arc<dyn CertificateVerifier>>,
) -> Dtls13Endpoint {
    let limits = Dtls13Config { handshakes, ..Dtls13Config::default() };
    let served = ServedCertificate::new(move || Some(own.clone()));
    Dtls13Endpoint::server(epoch(), limits, served, clients, [3; 32], 1232).unwrap()
}

fn client() -> Dtls13Endpoint {
    Dtls13Endpoint::client(epoch(), Dtls13Config::default(), None)
}

const AT_SERVER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5684);

fn address(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

fn other_address(host: u8) -> SocketAddr {
    ([198, 51, 100, host], 40_000).into()
}

fn connect(client: &mut Dtls13Endpoint, now: Instant) -> SessionId {
    let verifier = Arc::new(Anyone);
    let credentials =
        CertificateCredentials { verifier, server_name: None, own: None, saved: None };
    client.connect(now, AT_SERVER, credentials, Timing::default())
}

#[derive(Default)]
struct Outputs {
    datagrams: Vec<Vec<u8>>,
    established: Option<SessionId>,
    ended: Vec<Failure>,
    round_trips: usize,
}

fn outputs(endpoint: &mut Dtls13Endpoint) -> Outputs {
    let mut outputs = Outputs::default();
    while let Some(output) = endpoint.poll_output() {
        match output {
            Output::Transmit { datagram, .. } => outputs.datagrams.push(datagram.to_vec()),
            Output::Event(Event::Established { session, .. }) => {
                outputs.established = Some(session)
            }
            Output::Event(Event::Ended { reason, .. }) => outputs.ended.push(reason),
            Output::Event(Event::RoundTrip { .. }) => outputs.round_trips += 1,
            _ => {}
        }
    }
    outputs
}

/// A datagram arrives. As a driver does, what is due at once is done at once.
fn arrive(to: &mut Dtls13Endpoint, now: Instant, from: SocketAddr, datagram: &[u8]) -> bool {
    let taken = to.handle_datagram(now, from, datagram, &mut |_, _| ());
    to.handle_timeout(now);
    taken
}

/// Runs a handshake over a network that loses the datagrams with these numbers. Returns the sessions of
/// client and server, and the round trips that the client measured.
fn shake_hands(
    (client, from): (&mut Dtls13Endpoint, SocketAddr),
    server: &mut Dtls13Endpoint,
    now: &mut Instant,
    lost: impl Fn(usize) -> bool,
) -> (SessionId, SessionId, usize) {
    let (mut at_client, mut at_server, mut round_trips, mut count) = (None, None, 0, 0);
    connect(client, *now);
    for _ in 0..100 {
        let sent = outputs(client);
        assert!(sent.ended.is_empty(), "{:?}", sent.ended);
        at_client = at_client.or(sent.established);
        round_trips += sent.round_trips;
        let mut answers = Vec::new();
        for datagram in &sent.datagrams {
            count += 1;
            if !lost(count - 1) {
                assert!(arrive(server, *now, from, datagram));
            }
            let answered = outputs(server);
            at_server = at_server.or(answered.established);
            answers.extend(answered.datagrams);
        }
        let quiet = sent.datagrams.is_empty() && answers.is_empty();
        for datagram in answers {
            count += 1;
            if !lost(count - 1) {
                assert!(arrive(client, *now, AT_SERVER, &datagram));
            }
        }
        if quiet {
            if let (Some(at_client), Some(at_server)) = (at_client, at_server) {
                return (at_client, at_server, round_trips);
            }
            *now = client.next_timeout().into_iter().chain(server.next_timeout()).min().unwrap();
            client.handle_timeout(*now);
            server.handle_timeout(*now);
        }
    }
    panic!("no handshake after 100 rounds");
}

fn passes(
    from: (&mut Dtls13Endpoint, SessionId, SocketAddr),
    to: &mut Dtls13Endpoint,
    now: Instant,
) -> bool {
    let (sender, session, at) = from;
    let mut record = Vec::new();
    sender.send(now, session, b"data", &mut record).unwrap();
    let mut heard = Vec::new();
    to.handle_datagram(now, at, &record, &mut |_, data| heard.extend_from_slice(data));
    heard == b"data"
}

#[test]
fn a_handshake_survives_the_loss_of_any_datagram() {
    for lost in 0..8 {
        let (mut client, mut server, mut now) = (client(), server(16), Instant::ZERO);
        let (from, lossy) = (address(1), |number| number == lost);
        let (at_client, at_server, round_trips) =
            shake_hands((&mut client, from), &mut server, &mut now, lossy);
        assert_eq!(round_trips, 2, "one for the cookie, one for the certificate; {lost} lost");
        assert!(passes((&mut client, at_client, from), &mut server, now));
        assert!(passes((&mut server, at_server, AT_SERVER), &mut client, now));
        assert_eq!(client.identity(at_client).as_deref(), Some(&b"peer"[..]));
    }
}

/// The first and the second ClientHello of a new client, which both leave from `from`.
fn hellos(server: &mut Dtls13Endpoint, from: SocketAddr, now: Instant) -> [Vec<u8>; 2] {
    let mut client = client();
    connect(&mut client, now);
    let first = outputs(&mut client).datagrams.remove(0);
    arrive(server, now, from, &first);
    let retry = outputs(server).datagrams.remove(0);
    assert!(retry.len() < first.len());
    arrive(&mut client, now, AT_SERVER, &retry);
    [first, outputs(&mut client).datagrams.remove(0)]
}

#[test]
fn forged_hellos_leave_nothing_behind() {
    let (mut server, now) = (server(16), Instant::ZERO);
    let [first, _] = hellos(&mut server, address(1), now);
    for port in 2..2000 {
        arrive(&mut server, now, address(port), &first);
        let answers = outputs(&mut server).datagrams;
        assert!(answers.iter().map(Vec::len).sum::<usize>() <= 3 * first.len());
        assert_eq!(answers.len(), 1);
    }
    assert_eq!((server.sessions(), server.next_timeout()), (0, None));
    assert_eq!(server.counters().hellos_verified, 1999);
}

#[test]
fn a_cookie_is_valid_for_one_address_one_hello_and_two_minutes() {
    let (mut server, now) = (server(16), Instant::ZERO);
    let [_, second] = hellos(&mut server, address(1), now);
    let accepted = |server: &mut Dtls13Endpoint, at: u64, port: u16, datagram: &[u8]| {
        let before = server.sessions();
        let now = now + Duration::from_secs(at);
        arrive(server, now, address(port), datagram);
        outputs(server);
        server.sessions() > before
    };
    assert!(!accepted(&mut server, 0, 2, &second), "another address");
    let extension = [0, 44, 0, 34, 0, 32];
    let cookie = second.windows(6).position(|bytes| bytes == extension).unwrap() + 6;
    // The random number, a cipher suite, and the cookie: the length of the padding, and the tag.
    for place in [13 + 12 + 2, 13 + 12 + 2 + 32 + 4, cookie + 1, cookie + 2] {
        let mut other = second.clone();
        other[place] ^= 1;
        assert!(!accepted(&mut server, 0, 1, &other), "byte {place} changed");
    }
    assert!(!accepted(&mut server, 121, 1, &second), "two minutes later");
    assert!(accepted(&mut server, 119, 1, &second));
    assert!(!accepted(&mut server, 119, 1, &second), "repeated");
    assert_eq!(server.sessions(), 1);
}

#[test]
fn at_the_limit_the_oldest_handshake_goes_and_sessions_stay() {
    let (mut client, mut server, mut now) = (client(), server(3), Instant::ZERO);
    let from = address(1);
    let (at_client, at_server, _) =
        shake_hands((&mut client, from), &mut server, &mut now, |_| false);
    for host in 10..20 {
        let [_, second] = hellos(&mut server, other_address(host), now);
        arrive(&mut server, now, other_address(host), &second);
        let ended = outputs(&mut server).ended;
        assert_eq!(ended, if host < 13 { vec![] } else { vec![Failure::Evicted] });
    }
    assert_eq!((server.sessions(), server.counters().evicted), (1 + 3, 7));
    assert!(passes((&mut client, at_client, from), &mut server, now));
    // Those that do not go on are given up.
    now = now + Duration::from_secs(61);
    server.handle_timeout(now);
    assert_eq!(outputs(&mut server).ended, [Failure::NoAnswer; 3]);
    assert_eq!(server.sessions(), 1);
    assert!(passes((&mut server, at_server, AT_SERVER), &mut client, now));
}

#[test]
fn forged_datagrams_do_not_end_a_session() {
    let (mut client, mut server, mut now) = (client(), server(16), Instant::ZERO);
    let from = address(1);
    let (at_client, at_server, _) =
        shake_hands((&mut client, from), &mut server, &mut now, |_| false);
    let mut record = Vec::new();
    client.send(now, at_client, b"data", &mut record).unwrap();
    let [first, second] = hellos(&mut server, address(2), now);
    let alert = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40];
    let mut random = ChaCha8Rng::seed_from_u64(16);
    for round in 0..2000 {
        let mut forged = [&record[..], &first, &second, &alert][round % 4].to_vec();
        if round >= 4 {
            let place = random.next_u32() as usize % forged.len();
            forged[place] ^= 1 << (random.next_u32() % 8);
            forged.truncate(forged.len().min(1 + random.next_u32() as usize % 1200));
        }
        if round % 4 != 0 || round >= 4 {
            arrive(&mut server, now, from, &forged);
            arrive(&mut client, now, AT_SERVER, &forged);
        }
        outputs(&mut server);
        outputs(&mut client);
    }
    assert!(passes((&mut client, at_client, from), &mut server, now));
    assert!(passes((&mut server, at_server, AT_SERVER), &mut client, now));
}

#[test]
fn a_client_with_a_session_may_return_with_dtls_1_2_from_the_same_address() {
    let (mut client, mut server, mut now) = (client(), server(16), Instant::ZERO);
    let from = address(1);
    let (at_client, ..) = shake_hands((&mut client, from), &mut server, &mut now, |_| false);
    let [mut older, _] = hellos(&mut server, address(2), now);
    let versions = older.windows(5).position(|bytes| bytes == [0, 43, 0, 3, 2]).unwrap() + 5;
    older[versions..versions + 2].copy_from_slice(&[0xfe, 0xfd]);
    assert!(!arrive(&mut server, now, from, &older), "it is not ours");
    assert!(passes((&mut client, at_client, from), &mut server, now));
}

#[test]
fn a_certificate_may_be_long() {
    // Of the server about 6 KB, of the client about 3 KB.
    let mut server = server_with(16, own_for(200), Some(Arc::new(Anyone)));
    let mut client = Dtls13Endpoint::client(epoch(), Dtls13Config::default(), Some(own_for(100)));
    let (from, mut now) = (address(1), Instant::ZERO);
    let (at_client, at_server, _) =
        shake_hands((&mut client, from), &mut server, &mut now, |_| false);
    assert!(client.certificate(at_client).unwrap().len() > 5000);
    assert!(server.certificate(at_server).unwrap().len() > 2500);
    assert!(passes((&mut client, at_client, from), &mut server, now));
}

#[test]
fn a_handshake_takes_no_datagram_that_is_longer_than_those_of_handshakes() {
    let (mut server, now, from) = (server(16), Instant::ZERO, address(1));
    let [_, second] = hellos(&mut server, from, now);
    arrive(&mut server, now, from, &second);
    outputs(&mut server);
    // Records of epoch 2 that come before their turn wait for it.
    for sequence in 0..25 {
        let mut long = vec![0x2e, 0, sequence];
        long.resize(60_000, 0);
        let before = server.counters().records_malformed;
        arrive(&mut server, now, from, &long);
        assert_eq!(server.counters().records_malformed, before + 1);
    }
    assert_eq!(server.sessions(), 1);
}

#[test]
fn a_late_copy_of_a_handshake_disturbs_nobody() {
    let (mut client, mut server, now) = (client(), server(16), Instant::ZERO);
    let from = address(1);
    connect(&mut client, now);
    let (mut sent, mut at_client, mut at_server) = (Vec::new(), None, None);
    for _ in 0..4 {
        let outputs_of_client = outputs(&mut client);
        at_client = at_client.or(outputs_of_client.established);
        for datagram in outputs_of_client.datagrams {
            arrive(&mut server, now, from, &datagram);
            sent.push(datagram);
        }
        let answers = outputs(&mut server);
        at_server = at_server.or(answers.established);
        for datagram in answers.datagrams {
            arrive(&mut client, now, AT_SERVER, &datagram);
        }
    }
    let (at_client, at_server) = (at_client.unwrap(), at_server.unwrap());
    for copy in sent.iter().chain(&sent) {
        arrive(&mut server, now, from, copy);
        for datagram in outputs(&mut server).datagrams {
            arrive(&mut client, now, AT_SERVER, &datagram);
        }
        assert!(passes((&mut client, at_client, from), &mut server, now));
        assert!(passes((&mut server, at_server, AT_SERVER), &mut client, now));
    }
    assert!(server.sessions() <= 2, "the session and one handshake");
}

#[test]
fn damaged_handshakes_end_or_go_on_and_leave_nothing_behind() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut server = server_with(16, own(), Some(Arc::new(Anyone)));
    let (mut now, own) = (Instant::ZERO, own());
    for port in 1..60 {
        let mut client =
            Dtls13Endpoint::client(epoch(), Dtls13Config::default(), Some(own.clone()));
        let from = address(port);
        connect(&mut client, now);
        for _ in 0..12 {
            let mut damage = |datagram: &mut Vec<u8>| {
                let length = datagram.len();
                match random.next_u32() % 16 {
                    0 => datagram.truncate(random.next_u32() as usize % length),
                    1 => random.fill_bytes(&mut datagram[..length.min(25)]),
                    2 | 3 => datagram[random.next_u32() as usize % length] ^= 1,
                    _ => {}
                }
            };
            for mut datagram in outputs(&mut client).datagrams {
                damage(&mut datagram);
                arrive(&mut server, now, from, &datagram);
            }
            for mut datagram in outputs(&mut server).datagrams {
                damage(&mut datagram);
                arrive(&mut client, now, AT_SERVER, &datagram);
            }
            now = now + Duration::from_secs(3);
            client.handle_timeout(now);
            server.handle_timeout(now);
        }
        assert!(client.sessions() <= 1);
    }
    let handshakes = server.sessions() - server.established.len();
    assert!(handshakes <= 16, "{handshakes}");
    now = now + Duration::from_secs(61);
    server.handle_timeout(now);
    assert_eq!(server.sessions(), server.established.len());
    assert_eq!(server.session_shares.len(), server.established.len());
    assert!(server.established.len() > 5, "some were not damaged");
}

#[test]
fn data_is_sent_however_many_datagrams_wait() {
    let (mut client, mut server, mut now) = (client(), server(16), Instant::ZERO);
    let from = address(1);
    let (_, at_server, _) = shake_hands((&mut client, from), &mut server, &mut now, |_| false);
    let [hello, _] = hellos(&mut server, address(2), now);
    for port in 3..5000 {
        arrive(&mut server, now, address(port), &hello);
    }
    assert!(passes((&mut server, at_server, AT_SERVER), &mut client, now));
    assert!(outputs(&mut server).datagrams.len() <= MAX_WAITING);
}

#[test]
fn hellos_replayed_from_one_address_cost_no_more_signatures_than_its_budget() {
    let (mut server, mut now) = (server(16), Instant::ZERO + Duration::from_secs(1000));
    let replayed: Vec<_> =
        (0..150).map(|port| hellos(&mut server, address(port), now)).map(|[_, two]| two).collect();
    let (mut client, from, mut established) = (client(), other_address(1), 0);
    connect(&mut client, now);
    for round in 0..2000 {
        now = now + Duration::from_micros(500);
        let port = round % replayed.len();
        arrive(&mut server, now, address(port as u16), &replayed[port]);
        // In a round trip of 100 ms an honest client says what it has to say.
        if round % 200 == 0 {
            for datagram in outputs(&mut client).datagrams {
                arrive(&mut server, now, from, &datagram);
            }
        }
        while let Some(output) = server.poll_output() {
            match output {
                Output::Transmit { to, datagram } if to == from => {
                    arrive(&mut client, now, AT_SERVER, datagram);
                }
                Output::Event(Event::Established { .. }) => established += 1,
                _ => {}
            }
        }
    }
    let (signatures, withheld) = (server.counters().signatures, server.counters().hellos_withheld);
    assert!((128..=128 + 64 + 2).contains(&signatures), "{signatures}");
    assert!(withheld == 0, "150 ports have their places");
    assert_eq!(established, 1, "the handshake of another address beside them");
}

#[test]
fn a_source_with_very_many_sessions_loses_its_own() {
    let limits = Dtls13Config { sessions: 4, ..Dtls13Config::default() };
    let mut server = Dtls13Endpoint { limits, ..server(16) };
    let (mut first, from, mut now) = (client(), other_address(1), Instant::ZERO);
    let (at_client, ..) = shake_hands((&mut first, from), &mut server, &mut now, |_| false);
    for port in 1..8 {
        shake_hands((&mut client(), address(port)), &mut server, &mut now, |_| false);
    }
    assert_eq!(server.sessions(), 4);
    assert!(
        passes((&mut first, at_client, from), &mut server, now),
        "it is not the oldest of most"
    );
}
