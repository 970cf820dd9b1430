//! A server that starts again goes on with its sessions, and takes nothing old for new.

use crate::common::{Pair, address, client_config, credentials, psk, server};
use ebbtide_core::time::Duration;
use ebbtide_dtls::{Config, Endpoint, SessionId, reserve};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;

const LONG: Duration = Duration::from_secs(100);
const ELSEWHERE: &str = "198.51.100.7:1024";

/// A session whose server notes changes, after one message of the client; and the record of that message.
fn connected(config: Config) -> (Pair, SessionId, SessionId, Vec<u8>) {
    let mut pair = Pair::new(client_config(), config);
    pair.server.note_changes();
    let client = pair.connect(credentials("device", b"secret"));
    pair.run(LONG);
    let (session, _) = pair.at_server.established()[0];
    let mut old = Vec::new();
    pair.client.send(pair.now, client, b"old", &mut old).unwrap();
    let from = pair.client_address;
    pair.inject(true, from, old.clone());
    pair.run(LONG);
    assert_eq!(pair.at_server.data, [(session, b"old".to_vec())]);
    pair.at_server.data.clear();
    pair.at_server.sent.clear();
    (pair, client, session, old)
}

/// The server is gone, and another one begins with what was stored.
fn restart(pair: &mut Pair, session: SessionId, stored: &[u8]) {
    pair.server = server(Config::default(), 3);
    pair.server.note_changes();
    assert!(pair.server.restore(pair.now, session, stored));
}

fn stored_while_running(pair: &mut Pair, session: SessionId) -> Vec<u8> {
    let changed = pair.server.take_changed();
    let [(of, Some(stored))] = &changed[..] else { panic!("{} sessions", changed.len()) };
    assert_eq!(*of, session);
    stored.to_vec()
}

#[test]
fn after_a_crash_a_peer_shows_that_it_is_there_before_its_records_count() {
    for config in [Config::default(), Config { cid_length: None, ..Config::default() }] {
        let (mut pair, client, session, old) = connected(config);
        let stored = stored_while_running(&mut pair, session);
        restart(&mut pair, session, &stored);
        let from = pair.client_address;
        // What was received before is not received again, and where it comes from gets no more than
        // three times as much.
        let spoofed = if pair.server.connection_ids(session) == Some((true, false)) {
            address(ELSEWHERE)
        } else {
            from
        };
        pair.inject(true, spoofed, old.clone());
        pair.run(Duration::from_millis(1));
        let asked = pair.at_server.sent.pop().unwrap();
        assert!(asked.0 == spoofed && asked.1.len() <= 3 * old.len());
        pair.send_from_client(client, b"dropped");
        pair.run(LONG);
        assert_eq!(pair.at_server.data, []);
        let (_, ping) = pair.at_client.data.pop().unwrap();
        assert_eq!((ping.len(), &ping[..2]), (4, &[0x40, 0][..]));
        pair.send_from_client(client, &[0x70, 0, ping[2] ^ 1, ping[3]]);
        pair.run(LONG);
        pair.send_from_client(client, b"too early");
        pair.run(LONG);
        pair.send_from_client(client, &[0x70, 0, ping[2], ping[3]]);
        pair.run(LONG);
        pair.send_from_client(client, b"new");
        pair.inject(true, from, old);
        pair.run(LONG);
        assert_eq!(pair.at_server.data, [(session, b"new".to_vec())]);
        assert_eq!(pair.server.remote(session), Some(from));
        assert_eq!(&*pair.server.identity(session).unwrap(), b"device");
        pair.at_client.data.clear();
        let mut answer = Vec::new();
        pair.server.send(pair.now, session, b"answer", &mut answer).unwrap();
        let server = pair.server_address;
        pair.inject(false, server, answer);
        pair.run(LONG);
        assert_eq!(pair.at_client.data, [(client, b"answer".to_vec())]);
    }
}

#[test]
fn the_successor_of_a_server_that_has_ended_in_order_goes_on_at_once() {
    let (mut pair, client, session, old) = connected(Config::default());
    let all = pair.server.take_all();
    assert_eq!(pair.server.sessions(), 0, "nothing else is sent");
    restart(&mut pair, session, &all[0].1);
    let from = pair.client_address;
    pair.inject(true, from, old);
    pair.send_from_client(client, b"new");
    pair.run(LONG);
    assert_eq!(pair.at_server.data, [(session, b"new".to_vec())]);
    assert_eq!(pair.server.counters().records_replayed, 1);
    assert_eq!(pair.at_server.sent, [], "nobody is asked");
}

#[test]
fn no_sequence_number_is_used_twice_however_often_a_server_crashes() {
    let (mut pair, _, session, _) = connected(Config::default());
    let mut stored = stored_while_running(&mut pair, session);
    let mut last = Vec::new();
    for _ in 0..10 {
        let mut record = Vec::new();
        pair.server.send(pair.now, session, b"x", &mut record).unwrap();
        let sequence = record[5..11].to_vec();
        assert!(sequence > last, "{sequence:?} after {last:?}");
        last = sequence;
        restart(&mut pair, session, &stored);
        // As it is stored before the server does anything.
        stored = reserve(&stored).unwrap().to_vec();
    }
}

#[test]
fn a_session_is_not_restored_if_its_key_is_gone_or_its_place_is_taken() {
    let (mut pair, _, session, _) = connected(Config::default());
    let stored = stored_while_running(&mut pair, session);
    let mut revoked = Endpoint::new(Config::default(), Box::new(ChaCha8Rng::seed_from_u64(4)));
    revoked.accept(Box::new(|identity: &[u8]| (identity == b"other").then(|| psk(b"secret"))));
    assert!(!revoked.restore(pair.now, session, &stored));
    let mut full = Config::default();
    full.limits.sessions = 0;
    assert!(!server(full, 5).restore(pair.now, session, &stored));
    restart(&mut pair, session, &stored);
    assert!(!pair.server.restore(pair.now, session, &stored), "it is there already");
    assert!(!pair.server.restore(pair.now, SessionId::from_u64(9), &stored), "its ID is in use");
    for end in 0..stored.len() {
        assert!(!server(Config::default(), 6).restore(pair.now, session, &stored[..end]));
    }
}

#[test]
fn a_session_that_ends_is_not_stored_any_more_and_new_ones_take_other_places() {
    let (mut pair, client, session, _) = connected(Config::default());
    let stored = stored_while_running(&mut pair, session);
    restart(&mut pair, SessionId::from_u64(3), &stored);
    for name in ["40001", "40002", "40003", "40004", "40005"] {
        pair.client_address = address(&format!("192.0.2.1:{name}"));
        pair.connect(credentials("device", b"secret"));
        pair.run(LONG);
    }
    assert_eq!(pair.server.sessions(), 6);
    let changed: Vec<_> = pair.server.take_changed();
    assert!(changed.iter().all(|(id, stored)| stored.is_some() && id.as_u64() != 3));
    pair.server.close(pair.now, SessionId::from_u64(3));
    assert!(matches!(&pair.server.take_changed()[..], [(id, None)] if id.as_u64() == 3));
    let _ = client;
}

#[test]
fn connection_ids_begin_with_the_prefix_of_their_server() {
    let prefixed = Config { cid_prefix: vec![7, 2], ..Config::default() };
    let (_, _, _, record) = connected(prefixed);
    assert_eq!((record[0], &record[11..13]), (25, &[7, 2][..]));
    let long = Config { cid_prefix: vec![7; 9], ..Config::default() };
    let (_, _, _, record) = connected(long);
    assert_eq!(&record[11..13], [7, 7]);
    assert_ne!(&record[13..17], [7; 4], "enough of it is drawn at random");
}
