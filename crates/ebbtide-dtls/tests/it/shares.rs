//! Those who replay hellos, or take very many places: they displace themselves first, and their expensive
//! hellos have a budget.

use crate::common::certificates::{accept, certified, shows};
use crate::common::{Pair, address, client, client_config, credentials, server};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_dtls::{
    ClientCertificates, ClientCredentials, Config, Endpoint, Event, Failure, Limits, Output, Timing,
};
use std::net::SocketAddr;

/// The flooder's port of this number.
fn port(number: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], 10_000 + number))
}

/// The hello with a correct cookie of a client at `from`, which can be replayed.
fn hello(
    now: Instant,
    from: SocketAddr,
    shown: impl Into<ClientCredentials>,
    server: &mut Endpoint,
) -> Vec<u8> {
    let mut attacker = client(client_config(), from.port().into());
    attacker.connect(now, address(crate::common::SERVER), shown, Timing::default());
    let Output::Transmit { datagram, .. } = attacker.poll_output() else { return Vec::new() };
    let mut first = datagram.to_vec();
    server.handle_datagram(now, from, &mut first, &mut |_, _| {});
    let Output::Transmit { datagram, .. } = server.poll_output() else { return Vec::new() };
    let mut cookie = datagram.to_vec();
    attacker.handle_datagram(now, address(crate::common::SERVER), &mut cookie, &mut |_, _| {});
    let Output::Transmit { datagram, .. } = attacker.poll_output() else { return Vec::new() };
    datagram.to_vec()
}

/// How long the handshake of a device with a round trip of 10 s takes beside a replay of hellos every 4 ms
/// from one other address. The table has 256 places, a sixteenth of the default, and the flood has a sixteenth
/// of 4,000 a second.
fn slow_handshake(flood: bool) -> Option<Duration> {
    const PORTS: u16 = 600;
    let limits = Limits { handshakes: 256, ..Limits::default() };
    let mut pair = Pair::new(client_config(), Config { limits, ..Config::default() });
    pair.delay = Duration::from_secs(5);
    let began = pair.now;
    let replayed: Vec<_> = (0..PORTS)
        .map(|n| hello(pair.now, port(n), credentials("device", b"secret"), &mut pair.server))
        .collect();
    pair.connect(credentials("device", b"secret"));
    for tick in 0..25_000_usize {
        if flood {
            let n = tick % replayed.len();
            pair.inject(true, port(n as u16), replayed[n].clone());
        }
        pair.run(Duration::from_millis(4));
        if !pair.at_client.established().is_empty() {
            return Some(pair.now - began);
        }
        pair.at_server.sent.clear();
        pair.now = began + Duration::from_millis(4) * (tick as u32 + 1);
    }
    None
}

#[test]
fn a_device_with_a_round_trip_of_10_s_completes_its_handshake_beside_replayed_hellos() {
    let quiet = slow_handshake(false).unwrap();
    let flooded = slow_handshake(true).unwrap();
    println!("{quiet:?} quiet, {flooded:?} beside the flood");
    assert!(flooded <= quiet * 3 / 2, "{flooded:?} instead of {quiet:?}");
}

#[test]
fn a_source_at_its_share_of_handshakes_loses_its_own_oldest_one() {
    let limits = Limits { handshakes: 8, ..Limits::default() };
    let mut server = server(Config { limits, ..Config::default() }, 1);
    let mut ended = Vec::new();
    for n in 0..20_u16 {
        let now = Instant::ZERO + Duration::from_secs(1) + Duration::from_millis(n.into());
        // The third one is of another address.
        let from = if n == 2 { address(crate::common::CLIENT) } else { port(n) };
        let mut hello = hello(now, from, credentials("device", b"secret"), &mut server);
        server.handle_datagram(now, from, &mut hello, &mut |_, _| {});
        loop {
            match server.poll_output() {
                Output::Event(Event::Ended { remote, reason, .. }) => ended.push((remote, reason)),
                Output::Timeout(_) => break,
                _ => {}
            }
        }
    }
    // It has half of the places that the other leaves.
    assert_eq!(server.sessions(), 1 + 4);
    let evicted: Vec<_> =
        (0..16).filter(|n| *n != 2).map(|n| (port(n), Failure::Evicted)).collect();
    assert_eq!(ended, evicted);
}

#[test]
fn at_the_limit_of_sessions_a_source_with_very_many_loses_its_own_and_not_the_idlest() {
    let limits = Limits { sessions: 8, ..Limits::default() };
    let mut server = server(Config { limits, ..Config::default() }, 1);
    let mut ended = Vec::new();
    for n in 0..20_u16 {
        let now = Instant::ZERO + Duration::from_secs(1 + u64::from(n));
        let from = if n == 0 { address(crate::common::CLIENT) } else { port(n) };
        let mut client = client(client_config(), n.into());
        let to = address(crate::common::SERVER);
        client.connect(now, to, credentials("device", b"secret"), Timing::default());
        loop {
            let mut moved = false;
            while let Output::Transmit { datagram, .. } = client.poll_output() {
                let mut datagram = datagram.to_vec();
                server.handle_datagram(now, from, &mut datagram, &mut |_, _| {});
                moved = true;
            }
            loop {
                match server.poll_output() {
                    Output::Transmit { datagram, .. } => {
                        let mut datagram = datagram.to_vec();
                        client.handle_datagram(now, to, &mut datagram, &mut |_, _| {});
                        moved = true;
                    }
                    Output::Event(Event::Ended { remote, established, .. }) => {
                        assert!(established);
                        ended.push(remote);
                    }
                    Output::Event(_) => {}
                    Output::Timeout(_) => break,
                }
            }
            if !moved {
                break;
            }
        }
    }
    assert_eq!(server.sessions(), 8);
    // It has four places, and loses the idlest beyond these.
    assert_eq!(ended, (1..13).map(port).collect::<Vec<_>>());
}

/// A server with a certificate, and 600 hellos of one address with correct cookies.
fn certified_server() -> (Endpoint, Vec<Vec<u8>>) {
    let mut server = server(Config::default(), 1);
    accept(&mut server, &certified("server"), ClientCertificates::None);
    let now = Instant::ZERO + Duration::from_secs(1);
    let hellos = (0..600).map(|n| hello(now, port(n), shows(None), &mut server)).collect();
    (server, hellos)
}

/// Fetches what there is, and returns the peers to which something goes.
fn drain(server: &mut Endpoint) -> (Vec<SocketAddr>, Option<Instant>) {
    let mut to = Vec::new();
    loop {
        match server.poll_output() {
            Output::Transmit { to: peer, .. } => to.push(peer),
            Output::Event(_) => {}
            Output::Timeout(at) => return (to, at),
        }
    }
}

#[test]
fn hellos_replayed_from_one_address_cost_no_more_signatures_than_its_budget() {
    let (mut server, hellos) = certified_server();
    let began = Instant::ZERO + Duration::from_secs(2);
    // 2,000 a second for 3 s, to a driver that does all that may be done at once.
    for n in 0..6000_usize {
        let now = began + Duration::from_micros(500) * n as u32;
        let mut hello = hellos[n % hellos.len()].clone();
        server.handle_datagram(now, port((n % hellos.len()) as u16), &mut hello, &mut |_, _| {});
        while drain(&mut server).1.is_some_and(|due| due <= now) {
            server.handle_timeout(now);
        }
    }
    let limits = Limits::default().signatures;
    let counters = server.counters();
    println!("{} signatures, {} withheld", counters.signatures, counters.hellos_withheld);
    assert!(counters.signatures <= u64::from(limits.at_once + 3 * limits.per_second));
    assert!(counters.signatures >= u64::from(limits.at_once + 2 * limits.per_second));
}

#[test]
fn nothing_is_signed_where_a_datagram_arrives_and_a_newcomer_is_next() {
    let (mut server, hellos) = certified_server();
    let now = Instant::ZERO + Duration::from_secs(2);
    for (n, hello) in hellos.iter().enumerate() {
        server.handle_datagram(now, port(n as u16), &mut hello.clone(), &mut |_, _| {});
    }
    assert_eq!(server.counters().signatures, 0);
    assert_eq!(server.counters().hellos_withheld, 600 - 512, "it has half of the places");
    for signed in 1..=3 {
        server.handle_timeout(now);
        assert_eq!(server.counters().signatures, signed, "one at a time");
    }
    drain(&mut server);
    let newcomer = address(crate::common::CLIENT);
    let mut hello = hello(now, newcomer, shows(None), &mut server);
    server.handle_datagram(now, newcomer, &mut hello, &mut |_, _| {});
    // Its driver has other work for 3 ms.
    let later = now + Duration::from_millis(3);
    server.rest_until(later);
    assert_eq!(drain(&mut server).1, Some(later));
    server.handle_timeout(now);
    assert_eq!(server.counters().signatures, 3);
    server.handle_timeout(later);
    let (to, _) = drain(&mut server);
    assert!(!to.is_empty() && to.iter().all(|to| *to == newcomer), "{to:?}");
}
