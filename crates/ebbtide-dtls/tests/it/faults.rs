//! Both sides against each other over a network that loses, repeats, reorders, cuts, corrupts and
//! replays datagrams.

use crate::common::{CLIENT, Pair, Seen, address, client_config, credentials};
use ebbtide_core::time::Duration;
use ebbtide_dtls::{Config, Event, SessionId};
use proptest::prelude::*;
use std::collections::BTreeSet;

const LONG: Duration = Duration::from_secs(600);

/// What happens to one datagram.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    Lose,
    Repeat(u16),
    Delay(u16),
    Cut(u16),
    Corrupt(u16, u8),
    /// An earlier datagram follows once more.
    Replay(u8),
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::None),
        3 => Just(Fault::Lose),
        1 => (0_u16..5000).prop_map(Fault::Repeat),
        2 => (0_u16..5000).prop_map(Fault::Delay),
        1 => any::<u16>().prop_map(Fault::Cut),
        1 => (any::<u16>(), 0_u8..8).prop_map(|(at, bit)| Fault::Corrupt(at, bit)),
        1 => any::<u8>().prop_map(Fault::Replay),
    ]
}

/// Runs the pair with one fault after another, then without.
fn run(pair: &mut Pair, limit: Duration, faults: &mut impl Iterator<Item = Fault>) {
    let mut earlier: Vec<Vec<u8>> = Vec::new();
    pair.run_with(limit, &mut |datagram| {
        earlier.push(datagram.to_vec());
        let whole = datagram.to_vec();
        let millis = |span: u16| Duration::from_millis(span.into());
        match faults.next().unwrap_or(Fault::None) {
            Fault::None => vec![(Duration::ZERO, whole)],
            Fault::Lose => Vec::new(),
            Fault::Repeat(later) => vec![(Duration::ZERO, whole.clone()), (millis(later), whole)],
            Fault::Delay(later) => vec![(millis(later), whole)],
            Fault::Cut(at) => {
                let at = usize::from(at) % whole.len();
                vec![(Duration::ZERO, whole[..at].to_vec())]
            }
            Fault::Corrupt(at, bit) => {
                let mut wrong = whole;
                let at = usize::from(at) % wrong.len();
                wrong[at] ^= 1 << bit;
                vec![(Duration::ZERO, wrong)]
            }
            Fault::Replay(index) => {
                // It may go to the wrong side: a reflection.
                let again = earlier[usize::from(index) % earlier.len()].clone();
                vec![(Duration::ZERO, whole), (Duration::from_millis(1), again)]
            }
        }
    });
}

/// Each message at most once, and only what was sent.
fn intact(seen: &Seen, sent: usize) -> Result<BTreeSet<Vec<u8>>, TestCaseError> {
    let mut unique = BTreeSet::new();
    for (_, data) in &seen.data {
        prop_assert!(unique.insert(data.clone()), "{data:?} came twice");
        let number: Result<[u8; 4], _> = data.as_slice().try_into();
        let Ok(number) = number.map(u32::from_be_bytes) else {
            return Err(TestCaseError::fail("another length than what was sent"));
        };
        prop_assert!((number as usize) < sent, "{number} was never sent");
    }
    Ok(unique)
}

/// A session that begins after all the faults is established and carries a message.
fn carries_data(pair: &mut Pair, session: SessionId) -> Result<(), TestCaseError> {
    pair.run(LONG);
    let found = pair.at_client.established();
    prop_assert!(found.iter().any(|(found, _)| *found == session), "{:?}", pair.at_client.events);
    pair.send_from_client(session, &0_u32.to_be_bytes());
    pair.run(LONG);
    prop_assert_eq!(intact(&pair.at_server, 1)?.len(), 1);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_handshake_ends_and_the_next_one_over_a_good_network_succeeds(
        faults in proptest::collection::vec(fault(), 0..24),
        ours in prop_oneof![Just(None), Just(Some(0)), Just(Some(5))],
        theirs in prop_oneof![Just(None), Just(Some(6))],
        mtu in 256_usize..400,
    ) {
        let config = |cid_length| Config { cid_length, mtu, ..Config::default() };
        let mut pair = Pair::new(config(ours), config(theirs));
        let session = pair.connect(credentials("device", b"secret"));
        run(&mut pair, LONG, &mut faults.into_iter());
        let ended = !pair.at_client.ended().is_empty();
        let established = pair.client.is_established(session);
        prop_assert!(ended != established, "{:?}", pair.at_client.events);
        prop_assert_eq!(pair.client.sessions(), usize::from(established));
        // If the client failed when the server was done, the server's session is left over.
        prop_assert!(pair.server.sessions() <= 1);
        if established {
            let at_server = pair.at_server.established();
            prop_assert!(!at_server.is_empty());
        }

        let saved = pair.client.saved_session(session);
        let again = ebbtide_dtls::Credentials { saved, ..credentials("device", b"secret") };
        let session = pair.connect(again);
        carries_data(&mut pair, session)?;
    }

    #[test]
    fn data_arrives_unchanged_at_most_once_and_only_if_it_was_sent(
        faults in proptest::collection::vec(fault(), 0..60),
        theirs in prop_oneof![Just(None), Just(Some(6))],
    ) {
        let config = Config { cid_length: theirs, ..Config::default() };
        let mut pair = Pair::new(client_config(), config);
        let session = pair.connect(credentials("device", b"secret"));
        pair.run(LONG);
        let (at_server, _) = pair.at_server.established()[0];
        let clean = faults.iter().all(|fault| matches!(fault, Fault::None | Fault::Repeat(_) | Fault::Delay(_)));
        let mut faults = faults.into_iter();
        let mut sent = 0;
        while faults.len() > 0 {
            // Records are not sent through the outbox: the fault is applied here.
            let mut record = Vec::new();
            pair.client.send(pair.now, session, &(sent as u32).to_be_bytes(), &mut record).unwrap();
            sent += 1;
            let from = pair.client_address;
            match faults.next().unwrap_or(Fault::None) {
                Fault::Lose => {}
                Fault::Repeat(_) => {
                    pair.inject(true, from, record.clone());
                    pair.inject(true, from, record);
                }
                Fault::Cut(at) => {
                    record.truncate(usize::from(at) % record.len());
                    pair.inject(true, from, record);
                }
                Fault::Corrupt(at, bit) => {
                    let at = usize::from(at) % record.len();
                    record[at] ^= 1 << bit;
                    pair.inject(true, from, record);
                }
                Fault::Replay(_) => {
                    // To its own sender, too.
                    let server = pair.server_address;
                    pair.inject(false, server, record.clone());
                    pair.inject(true, from, record);
                }
                Fault::None | Fault::Delay(_) => pair.inject(true, from, record),
            }
            run(&mut pair, Duration::from_secs(1), &mut std::iter::empty());
        }
        let got = intact(&pair.at_server, sent)?;
        prop_assert!(pair.at_client.data.is_empty());
        if clean {
            prop_assert_eq!(got.len(), sent);
        }
        prop_assert!(pair.at_server.data.iter().all(|(session, _)| *session == at_server));
        let over = pair.at_server.events.iter().any(|event| matches!(event, Event::Ended { .. }));
        prop_assert!(!over, "no forged record ends a session");
    }

    #[test]
    fn nothing_is_kept_of_what_a_stranger_sends(
        datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..20),
    ) {
        let mut pair = Pair::new(client_config(), Config::default());
        for datagram in datagrams {
            pair.inject(true, address(CLIENT), datagram);
        }
        pair.run(LONG);
        prop_assert_eq!(pair.server.sessions(), 0);
        prop_assert!(pair.at_server.sent.is_empty());
    }
}

#[cfg(feature = "certificates")]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The same with certificates on both sides, which come in several datagrams.
    #[test]
    fn a_handshake_with_certificates_ends_and_the_next_one_over_a_good_network_succeeds(
        faults in proptest::collection::vec(fault(), 0..24),
        theirs in prop_oneof![Just(None), Just(Some(6))],
        mtu in 256_usize..1300,
        requires in any::<bool>(),
    ) {
        use crate::common::certificates::{Known, accept, certified, shows};
        use ebbtide_dtls::ClientCertificates;
        let config = |cid_length| Config { cid_length, mtu, ..Config::default() };
        let mut pair = Pair::new(config(Some(0)), config(theirs));
        let clients = match requires {
            true => ClientCertificates::Required(std::sync::Arc::new(Known)),
            false => ClientCertificates::None,
        };
        accept(&mut pair.server, &certified("server"), clients);
        let session = pair.connect(shows(Some(certified("device"))));
        run(&mut pair, LONG, &mut faults.into_iter());
        let ended = !pair.at_client.ended().is_empty();
        let established = pair.client.is_established(session);
        prop_assert!(ended != established, "{:?}", pair.at_client.events);
        prop_assert!(pair.server.sessions() <= 1);
        for (at_server, _) in pair.at_server.established() {
            // Whatever was damaged, nobody is taken for another.
            let shown = pair.server.certificate(at_server);
            let expected: Option<&[u8]> = requires.then_some(b"device");
            prop_assert_eq!(shown.as_deref(), expected);
        }
        let session = pair.connect(shows(Some(certified("device"))));
        carries_data(&mut pair, session)?;
    }
}

#[test]
fn every_datagram_of_a_handshake_may_be_replayed_later_without_effect() {
    let mut pair = Pair::new(client_config(), Config::default());
    let session = pair.connect(credentials("device", b"secret"));
    pair.run(LONG);
    pair.send_from_client(session, b"once");
    pair.run(LONG);
    let all: Vec<Vec<u8>> =
        pair.at_client.sent.iter().map(|(_, datagram)| datagram.clone()).collect();
    let (sent, sessions) = (pair.at_server.sent.len(), pair.server.sessions());
    // The cookie of the second hello is too old by then.
    for datagram in all {
        pair.inject(true, address(CLIENT), datagram);
    }
    pair.run(LONG);
    assert_eq!(pair.server.sessions(), sessions);
    assert_eq!(pair.at_server.data.len(), 1);
    let new: Vec<usize> = pair.at_server.sent[sent..].iter().map(|(_, d)| d.len()).collect();
    assert_eq!(new, [44, 44], "a HelloVerifyRequest for each hello, and nothing else");
}
