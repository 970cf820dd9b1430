//! What an endpoint keeps, and what it sends, however many strangers and peers there are.

use crate::common::{Pair, address, client, client_config, credentials, server};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_dtls::{
    Config, Credentials, Endpoint, Event, Failure, Limits, Output, Psk, PskLookup, SessionId,
    Timing,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::net::SocketAddr;

/// Where the client of this number is.
fn nth(number: u32) -> SocketAddr {
    SocketAddr::from(((0x0a00_0000 + number).to_be_bytes(), 5684))
}

/// Carries datagrams between a client at `from` and the server until nothing is left to send.
fn carry(now: Instant, from: SocketAddr, client: &mut Endpoint, server: &mut Endpoint) {
    loop {
        let mut moved = false;
        while let Output::Transmit { datagram, .. } = client.poll_output() {
            let mut datagram = datagram.to_vec();
            server.handle_datagram(now, from, &mut datagram, &mut |_, _| {});
            moved = true;
        }
        while let Output::Transmit { datagram, .. } = server.poll_output() {
            let mut datagram = datagram.to_vec();
            client.handle_datagram(
                now,
                address(crate::common::SERVER),
                &mut datagram,
                &mut |_, _| {},
            );
            moved = true;
        }
        if matches!(server.poll_output(), Output::Timeout(Some(at)) if at <= now) {
            // A hello waits for a signature.
            server.handle_timeout(now);
            moved = true;
        }
        if !moved {
            return;
        }
    }
}

/// A session of the client of this number, which has sent something.
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
fn join(now: Instant, number: u32, server: &mut Endpoint) -> (Endpoint, SessionId) {
    let mut endpoint = client(client_config(), number.into());
    let id = endpoint.connect(
        now,
        address(crate::common::SERVER),
        credentials("device", b"secret"),
        Timing::default(),
    );
    carry(now, nth(number), &mut endpoint, server);
    let mut record = Vec::new();
    endpoint.send(now, id, b"hello", &mut record).unwrap();
    server.handle_datagram(now, nth(number), &mut record, &mut |_, _| {});
    while !matches!(server.poll_output(), Output::Timeout(_)) {}
    (endpoint, id)
}

#[test]
fn an_idle_session_with_a_connection_id_takes_less_than_500_bytes() {
    const SESSIONS: u32 = 4096;
    let mut server = server(Config::default(), 1);
    for number in 0..SESSIONS {
        join(Instant::ZERO, number, &mut server);
    }
    assert_eq!(server.sessions(), SESSIONS as usize);
    let before = crate::counting::bytes_in_use();
    drop(server);
    let each = (before - crate::counting::bytes_in_use()) / SESSIONS as isize;
    println!("{each} bytes a session");
    assert!(each < 500, "{each} bytes a session");
}

/// With the state for its resumption; of the client's chain only its own certificate is kept, here of
/// six bytes.
#[cfg(feature = "certificates")]
#[test]
fn an_idle_session_with_a_certificate_takes_less_than_600_bytes_beside_it() {
    use crate::common::certificates::{Known, accept, certified, shows};
    const SESSIONS: u32 = 256;
    let mut server = server(Config::default(), 1);
    let clients = ebbtide_dtls::ClientCertificates::Required(std::sync::Arc::new(Known));
    accept(&mut server, &certified("server"), clients);
    let device = certified("device");
    let carried = |server: &mut Endpoint| {
        for number in 0..SESSIONS {
            let mut endpoint = client(client_config(), number.into());
            let shown = shows(Some(device.clone()));
            let to = address(crate::common::SERVER);
            // Late enough for the budgets of those before to be forgotten.
            let now = Instant::ZERO + Duration::from_secs(number.into());
            let id = endpoint.connect(now, to, shown, Timing::default());
            carry(now, nth(number), &mut endpoint, server);
            let mut record = Vec::new();
            assert!(endpoint.send(now, id, b"hello", &mut record).is_ok());
            server.handle_datagram(now, nth(number), &mut record, &mut |_, _| {});
            while !matches!(server.poll_output(), Output::Timeout(_)) {}
        }
    };
    carried(&mut server);
    assert_eq!(server.sessions(), SESSIONS as usize);
    let before = crate::counting::bytes_in_use();
    drop(server);
    let each = (before - crate::counting::bytes_in_use()) / SESSIONS as isize;
    println!("{each} bytes a session with a certificate of 6 bytes");
    assert!(each < 606, "{each} bytes a session");
}

#[test]
fn a_hundred_thousand_forged_hellos_leave_nothing_and_get_no_more_bytes_than_they_had() {
    let mut pair = Pair::new(client_config(), Config::default());
    pair.connect(credentials("device", b"secret"));
    let Output::Transmit { datagram, .. } = pair.client.poll_output() else { return };
    let hello = datagram.to_vec();
    let mut server = pair.server;
    let mut sent = 0;
    let mut before = isize::MAX;
    for number in 0..100_000_u32 {
        let now = Instant::from_nanos(u64::from(number) * 50_000);
        let mut forged = hello.clone();
        forged[27..31].copy_from_slice(&number.to_be_bytes());
        server.handle_datagram(now, nth(number), &mut forged, &mut |_, _| {});
        while let Output::Transmit { datagram, .. } = server.poll_output() {
            sent += datagram.len();
        }
        if number == 1000 {
            before = crate::counting::bytes_in_use();
        }
    }
    assert!(crate::counting::bytes_in_use() <= before, "nothing stays");
    assert_eq!(server.sessions(), 0);
    assert_eq!(server.counters().hellos_verified, 100_000);
    assert!(sent <= 100_000 * hello.len());
}

#[test]
fn at_the_limit_of_sessions_the_least_recently_used_one_goes_and_that_is_counted() {
    let limits = Limits { sessions: 3, ..Limits::default() };
    let mut server = server(Config { limits, ..Config::default() }, 1);
    let now = Instant::ZERO;
    let mut clients: Vec<_> = (0..3).map(|number| join(now, number, &mut server)).collect();
    // The first one is used again, so that the second one is the idlest.
    let (first, id) = &mut clients[0];
    let mut record = Vec::new();
    first.send(now, *id, b"x", &mut record).unwrap();
    server.handle_datagram(now, nth(0), &mut record, &mut |_, _| {});
    join(now, 3, &mut server);
    assert_eq!((server.sessions(), server.counters().evicted), (3, 1));
    let mut alive = Vec::new();
    for (number, (client, id)) in clients.iter_mut().enumerate() {
        let mut record = Vec::new();
        client.send(now, *id, b"y", &mut record).unwrap();
        let mut seen = false;
        server.handle_datagram(now, nth(number as u32), &mut record, &mut |_, _| seen = true);
        alive.push(seen);
    }
    assert_eq!(alive, [true, false, true]);
}

#[test]
fn at_the_limit_of_handshakes_the_oldest_one_goes() {
    let limits = Limits { handshakes: 2, ..Limits::default() };
    let mut server = server(Config { limits, ..Config::default() }, 1);
    let mut ended = Vec::new();
    for number in 0..5_u32 {
        let now = Instant::ZERO + Duration::from_millis(number.into());
        let mut client = client(client_config(), number.into());
        client.connect(
            now,
            address(crate::common::SERVER),
            credentials("device", b"secret"),
            Timing::default(),
        );
        // The hello, the request for a cookie, the hello with the cookie; then it falls silent.
        for _ in 0..2 {
            let Output::Transmit { datagram, .. } = client.poll_output() else { break };
            let mut datagram = datagram.to_vec();
            server.handle_datagram(now, nth(number), &mut datagram, &mut |_, _| {});
            loop {
                match server.poll_output() {
                    Output::Transmit { to, datagram } if to == nth(number) => {
                        let mut datagram = datagram.to_vec();
                        let from = address(crate::common::SERVER);
                        client.handle_datagram(now, from, &mut datagram, &mut |_, _| {});
                    }
                    Output::Transmit { .. } => {}
                    Output::Event(Event::Ended { remote, reason, .. }) => {
                        ended.push((remote, reason));
                    }
                    Output::Event(_) => {}
                    Output::Timeout(_) => break,
                }
            }
        }
    }
    assert_eq!(server.sessions(), 2);
    let evicted = |number| (nth(number), Failure::Evicted);
    assert_eq!(ended, [evicted(0), evicted(1), evicted(2)]);
}

#[test]
fn a_thousand_sessions_whose_addresses_all_change_go_on_without_a_handshake() {
    let mut server = server(Config::default(), 1);
    let mut clients: Vec<_> =
        (0..1000).map(|number| join(Instant::ZERO, number, &mut server)).collect();
    let now = Instant::ZERO + Duration::from_secs(1000);
    let mut delivered = 0;
    for (number, (client, id)) in clients.iter_mut().enumerate() {
        let mut record = Vec::new();
        client.send(now, *id, b"from elsewhere", &mut record).unwrap();
        let from = nth(10_000 + number as u32);
        server.handle_datagram(now, from, &mut record, &mut |_, _| delivered += 1);
        carry(now, from, client, &mut server);
    }
    assert_eq!(delivered, 1000);
    assert_eq!(server.counters().addresses_changed, 1000);
    assert_eq!(server.counters().established, 1000);
}

#[test]
fn a_record_of_an_unknown_session_is_answered_by_fewer_bytes_and_not_without_a_limit() {
    let now = Instant::ZERO;
    let mut before = server(Config::default(), 1);
    let (mut client, session) = join(now, 1, &mut before);
    while !matches!(client.poll_output(), Output::Timeout(_)) {}
    // The server starts again and knows nothing.
    let mut after = server(Config::default(), 2);
    let answers = |after: &mut Endpoint| {
        let mut answers = Vec::new();
        while let Output::Transmit { to, datagram } = after.poll_output() {
            assert_eq!(to, nth(1));
            answers.push(datagram.to_vec());
        }
        answers
    };
    let mut record = Vec::new();
    client.send(now, session, b"x", &mut record).unwrap();
    for _ in 0..5000 {
        after.handle_datagram(now, nth(1), &mut record.clone(), &mut |_, _| panic!("delivered"));
    }
    let told = answers(&mut after);
    assert_eq!(told.len(), Limits::default().unknown_answered as usize);
    assert!(told[0].len() < record.len(), "{} {}", told[0].len(), record.len());
    // A second later it answers again; it answers no alert.
    let later = now + Duration::from_secs(1);
    after.handle_datagram(later, nth(1), &mut record.clone(), &mut |_, _| {});
    assert_eq!(answers(&mut after).len(), 1);
    after.handle_datagram(later, nth(1), &mut told[0].clone(), &mut |_, _| {});
    let mut encrypted = record.clone();
    encrypted[0] = 21;
    after.handle_datagram(later, nth(1), &mut encrypted, &mut |_, _| {});
    assert!(answers(&mut after).is_empty());
    // Records without data are shorter than an answer, and many in a datagram are one question.
    let empty = &record[..11].iter().copied().chain([0, 0]).collect::<Vec<u8>>();
    let much_later = later + Duration::from_secs(1);
    after.handle_datagram(much_later, nth(1), &mut empty.clone(), &mut |_, _| {});
    assert!(answers(&mut after).is_empty());
    after.handle_datagram(much_later, nth(1), &mut empty.repeat(100), &mut |_, _| {});
    assert_eq!(answers(&mut after).len(), 1);
    // The client has a doubt, and its session.
    let server = address(crate::common::SERVER);
    for told in &told {
        client.handle_datagram(later, server, &mut told.clone(), &mut |_, _| {});
    }
    let mut events = Vec::new();
    while let Output::Event(event) = client.poll_output() {
        events.push(event);
    }
    assert_eq!(events, [Event::Doubted { session }]);
    assert!(client.is_established(session));
    // Another alert that nobody has protected is none.
    let mut other = told[0].clone();
    *other.last_mut().unwrap() = 40;
    client.handle_datagram(later, server, &mut other, &mut |_, _| {});
    assert!(matches!(client.poll_output(), Output::Timeout(_)));
}

/// Two keys of one identity, as while they are replaced.
struct Rotation;

impl PskLookup for Rotation {
    fn key(&mut self, identity: &[u8]) -> Option<Psk> {
        (identity == b"device").then(|| Psk::new(b"new").ok()).flatten()
    }

    fn other_key(&mut self, identity: &[u8]) -> Option<Psk> {
        (identity == b"device").then(|| Psk::new(b"old").ok()).flatten()
    }
}

#[test]
fn either_key_of_an_identity_is_accepted_at_once_and_no_third_one() {
    let now = Instant::ZERO;
    for (key, is_accepted) in [(&b"new"[..], true), (b"old", true), (b"third", false)] {
        let mut server = Endpoint::new(Config::default(), Box::new(ChaCha8Rng::seed_from_u64(1)));
        server.accept(Box::new(Rotation));
        let mut device = client(client_config(), 2);
        let session = device.connect(
            now,
            address(crate::common::SERVER),
            credentials("device", key),
            Timing::default(),
        );
        carry(now, nth(1), &mut device, &mut server);
        assert_eq!(device.is_established(session), is_accepted, "{key:?}");
    }
}

#[test]
fn sessions_of_peers_that_are_not_served_any_more_end_and_are_not_resumed() {
    let now = Instant::ZERO;
    let mut server = server(Config::default(), 1);
    let (mut device, session) = join(now, 1, &mut server);
    while !matches!(device.poll_output(), Output::Timeout(_)) {}
    server.end_sessions(now, |peer| peer.identity == b"device");
    assert_eq!(server.sessions(), 1);
    server.end_sessions(now, |peer| peer.identity != b"device");
    let mut ended = Vec::new();
    loop {
        match server.poll_output() {
            Output::Transmit { datagram, .. } => {
                let at = address(crate::common::SERVER);
                device.handle_datagram(now, at, &mut datagram.to_vec(), &mut |_, _| {});
            }
            Output::Event(Event::Ended { reason, .. }) => ended.push(reason),
            Output::Event(_) => {}
            Output::Timeout(_) => break,
        }
    }
    assert_eq!((server.sessions(), ended), (0, vec![Failure::NotServed]));
    assert!(!device.is_established(session));
}

#[test]
fn a_session_that_was_closed_is_not_resumed_by_a_peer_that_is_not_served_any_more() {
    for is_kept in [true, false] {
        let mut pair = Pair::new(client_config(), Config::default());
        let first = pair.connect(credentials("device", b"secret"));
        pair.run(Duration::from_secs(100));
        let saved = pair.client.saved_session(first);
        pair.client.close(pair.now, first);
        pair.run(Duration::from_secs(100));
        pair.server.end_sessions(pair.now, |_| is_kept);
        let second = pair.connect(Credentials { saved, ..credentials("device", b"secret") });
        pair.run(Duration::from_secs(100));
        assert_eq!(pair.at_client.established(), [(first, false), (second, is_kept)]);
    }
}
