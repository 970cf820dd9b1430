//! Peers whose address changes, and those who only seem to (RFC 9146 section 6, RFC 9853).

use crate::common::{Pair, SERVER, address, client_config, credentials};
use ebbtide_core::time::Duration;
use ebbtide_dtls::{Config, Event, SessionId};
use std::net::SocketAddr;

const LONG: Duration = Duration::from_secs(100);
const NEW: &str = "198.51.100.7:1024";

fn connected(server: Config) -> (Pair, SessionId, SessionId) {
    let mut pair = Pair::new(client_config(), server);
    let client = pair.connect(credentials("device", b"secret"));
    pair.run(LONG);
    let (at_server, _) = pair.at_server.established()[0];
    pair.at_server.sent.clear();
    (pair, client, at_server)
}

fn changes(pair: &Pair) -> Vec<(SocketAddr, SocketAddr)> {
    let of = |event: &Event| match event {
        Event::AddressChanged { from, to, .. } => Some((*from, *to)),
        _ => None,
    };
    pair.at_server.events.iter().filter_map(of).collect()
}

#[test]
fn a_session_goes_on_from_a_new_address_that_answers_the_challenge() {
    let (mut pair, client, session) = connected(Config::default());
    let old = pair.client_address;
    pair.client_address = address(NEW);
    pair.send_from_client(client, b"here I am");
    pair.run(LONG);
    assert_eq!(pair.at_server.data, [(session, b"here I am".to_vec())]);
    assert_eq!(pair.server.remote(session), Some(address(NEW)));
    assert_eq!(changes(&pair), [(old, address(NEW))]);
    let challenged: Vec<SocketAddr> = pair.at_server.sent.iter().map(|(to, _)| *to).collect();
    assert_eq!(challenged, [address(NEW), old], "both are challenged, each once");
    assert_eq!(pair.server.counters().established, 1, "without a new handshake");
    // Not limited any more.
    let mut record = Vec::new();
    for _ in 0..100 {
        assert_eq!(pair.server.send(pair.now, session, &[0; 1000], &mut record), Ok(address(NEW)));
    }
}

#[test]
fn a_copied_record_from_another_address_gets_three_times_its_bytes_and_no_session() {
    let (mut pair, client, session) = connected(Config::default());
    let mut record = Vec::new();
    pair.client.send(pair.now, client, b"a request", &mut record).unwrap();
    let length = record.len();
    // The attacker's copy is faster than the original.
    pair.inject(true, address(NEW), record.clone());
    pair.run(Duration::from_millis(1));
    let from = pair.client_address;
    pair.inject(true, from, record);
    let (mut to_attacker, mut sent) = (0, 0);
    let mut answer = Vec::new();
    while pair.server.send(pair.now, session, &[0; 10], &mut answer) == Ok(address(NEW)) {
        to_attacker += answer.len();
        sent += 1;
        answer.clear();
    }
    // What the attacker may get no more of goes where the peer was confirmed; all before did so as well.
    assert_eq!(pair.server.send(pair.now, session, &[0; 10], &mut answer), Ok(from));
    pair.run(LONG);
    let copies = pair
        .at_server
        .sent
        .iter()
        .filter(|(to, datagram)| *to == from && datagram.len() == answer.len() / 2);
    assert!(sent > 0 && copies.count() == sent, "{sent} went to the attacker");
    to_attacker += pair
        .at_server
        .sent
        .iter()
        .filter(|(to, _)| *to == address(NEW))
        .map(|(_, datagram)| datagram.len())
        .sum::<usize>();
    assert!(to_attacker <= 3 * length, "{to_attacker} bytes for {length}");
    assert_eq!(pair.server.remote(session), Some(from), "the true peer answered where it was");
    assert_eq!(changes(&pair), []);
    assert_eq!(pair.server.counters().addresses_refused, 1);
    assert_eq!(pair.at_server.data.len(), 1, "the copy counted, the original was a replay");
    assert_eq!(pair.server.send(pair.now, session, &[0; 1000], &mut answer), Ok(from));
}

#[test]
fn a_stranger_whose_copies_always_arrive_first_keeps_no_answer_from_the_peer() {
    let (mut pair, client, session) = connected(Config::default());
    let from = pair.client_address;
    for number in 0..20_u8 {
        let (mut record, mut answer) = (Vec::new(), Vec::new());
        pair.client.send(pair.now, client, &[number; 10], &mut record).unwrap();
        pair.inject(true, address(NEW), record.clone());
        pair.inject(true, from, record);
        pair.run_with(Duration::from_millis(100), &mut |_| Vec::new());
        assert_eq!(pair.at_server.data.last(), Some(&(session, vec![number; 10])));
        let to = pair.server.send(pair.now, session, &[number; 30], &mut answer).unwrap();
        if to == from {
            pair.inject(false, address(SERVER), answer);
        }
        pair.run(Duration::from_millis(100));
        assert_eq!(pair.at_client.data.last(), Some(&(client, vec![number; 30])));
    }
    assert_eq!(pair.server.counters().established, 1);
}

#[test]
fn an_address_that_never_answers_is_left_after_three_challenges() {
    let (mut pair, client, session) = connected(Config::default());
    let old = pair.client_address;
    let mut record = Vec::new();
    pair.client.send(pair.now, client, &[0; 100], &mut record).unwrap();
    pair.inject(true, address(NEW), record);
    pair.run_with(LONG, &mut |_| Vec::new());
    assert_eq!(pair.server.remote(session), Some(old));
    assert_eq!(changes(&pair), []);
    assert_eq!(pair.at_server.sent.len(), 6);
}

#[test]
fn a_session_moves_over_a_network_whose_round_trip_takes_half_a_minute() {
    let (mut pair, client, session) = connected(Config::default());
    let old = pair.client_address;
    pair.delay = Duration::from_secs(15);
    pair.client_address = address(NEW);
    pair.send_from_client(client, &[0; 100]);
    pair.run(Duration::from_secs(10_000));
    assert_eq!(pair.server.remote(session), Some(address(NEW)));
    assert_eq!(changes(&pair), [(old, address(NEW))]);
}

#[test]
fn answers_to_challenges_that_come_too_late_begin_no_further_check() {
    let (mut pair, client, session) = connected(Config::default());
    let old = pair.client_address;
    // A round trip is longer than all the time that the challenges have.
    pair.delay = Duration::from_secs(20);
    pair.client_address = address(NEW);
    pair.send_from_client(client, &[0; 100]);
    pair.run(Duration::from_secs(10_000));
    assert_eq!(pair.at_server.sent.len(), 6, "three challenges to each address");
    assert_eq!(pair.server.remote(session), Some(old));
    assert_eq!(changes(&pair), []);
}

#[test]
fn without_the_check_a_new_address_gets_three_times_its_bytes_until_it_is_confirmed() {
    let config = Config { return_routability: false, ..Config::default() };
    let (mut pair, client, session) = connected(config);
    let old = pair.client_address;
    pair.client_address = address(NEW);
    pair.send_from_client(client, b"0123456789");
    let moved = pair.now;
    pair.run(LONG);
    assert_eq!(pair.at_server.sent, []);
    let mut record = Vec::new();
    assert_eq!(pair.server.send(pair.now, session, &[0; 20], &mut record), Ok(address(NEW)));
    let large = [0; 500];
    let withheld = pair.server.send(pair.now, session, &large, &mut record);
    assert_eq!(withheld, Ok(old), "where it was confirmed");
    assert_eq!(pair.server.counters().unverified_withheld, 1);
    pair.server.confirm_address(session, moved);
    let withheld = pair.server.send(pair.now, session, &large, &mut record);
    assert_eq!(withheld, Ok(old), "an answer to what was sent elsewhere");
    pair.server.confirm_address(session, moved + Duration::from_millis(1));
    assert_eq!(changes(&pair), []);
    assert_eq!(pair.server.send(pair.now, session, &large, &mut record), Ok(address(NEW)));
}

#[test]
fn an_old_record_from_another_address_changes_nothing() {
    let (mut pair, client, session) = connected(Config::default());
    let old = pair.client_address;
    let mut first = Vec::new();
    pair.client.send(pair.now, client, b"first", &mut first).unwrap();
    pair.send_from_client(client, b"second");
    pair.run(LONG);
    pair.inject(true, address(NEW), first);
    pair.run(LONG);
    assert_eq!(pair.at_server.data.len(), 2, "late, but new");
    assert_eq!(pair.server.remote(session), Some(old));
    assert_eq!(pair.at_server.sent, []);
}

#[test]
fn without_a_connection_id_a_record_from_another_address_is_of_no_session() {
    let (mut pair, client, session) = connected(Config { cid_length: None, ..Config::default() });
    let old = pair.client_address;
    let mut record = Vec::new();
    pair.client.send(pair.now, client, b"x", &mut record).unwrap();
    pair.inject(true, address(NEW), record);
    pair.run(LONG);
    assert!(pair.at_server.data.is_empty());
    assert_eq!(pair.server.remote(session), Some(old));
}
