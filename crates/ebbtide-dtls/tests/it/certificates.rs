//! Handshakes with certificates between two of our endpoints.

use crate::common::certificates::{Known, accept, certified, certified_as, shows};
use crate::common::{Pair, client_config, credentials};
use ebbtide_core::time::Duration;
use ebbtide_dtls::{
    AlertDescription, CertificateError, CipherSuite, ClientCertificates, Config, Event, Failure,
};
use std::sync::Arc;

const LONG: Duration = Duration::from_secs(200);

/// A pair whose server shows a certificate.
fn pair(clients: ClientCertificates) -> Pair {
    let mut pair = Pair::new(client_config(), Config::default());
    accept(&mut pair.server, &certified("server"), clients);
    pair
}

fn required() -> ClientCertificates {
    ClientCertificates::Required(Arc::new(Known))
}

/// The reason of the only end.
fn reason(events: &[&Event]) -> Failure {
    let [Event::Ended { reason, established: false, .. }] = events else { panic!("{events:?}") };
    *reason
}

#[test]
fn both_sides_know_the_certificate_of_the_other_and_data_passes_both_ways() {
    for suite in CipherSuite::ECDHE_ECDSA {
        for (ours, theirs) in [(Some(0), Some(6)), (None, None)] {
            let config = Config { suites: vec![suite], cid_length: ours, ..Config::default() };
            let mut pair = Pair::new(config, Config { cid_length: theirs, ..Config::default() });
            accept(&mut pair.server, &certified("server"), required());
            let session = pair.connect(shows(Some(certified("device"))));
            pair.run(LONG);
            assert_eq!(pair.at_client.established(), [(session, false)], "{:?}", pair.at_client);
            let [(at_server, false)] = pair.at_server.established()[..] else { panic!() };
            assert_eq!(pair.server.identity(at_server).as_deref(), Some(&b"device"[..]));
            assert_eq!(pair.server.certificate(at_server).as_deref(), Some(&b"device"[..]));
            assert_eq!(pair.client.certificate(session).as_deref(), Some(&b"server"[..]));
            assert_eq!(pair.server.suite(at_server), Some(suite));
            assert_eq!(pair.client.connection_ids(session), Some((false, theirs.is_some())));
            pair.send_from_client(session, b"ping");
            pair.run(LONG);
            assert_eq!(pair.at_server.data, [(at_server, b"ping".to_vec())]);
            let mut record = Vec::new();
            pair.server.send(pair.now, at_server, b"pong", &mut record).unwrap();
            let from = pair.server_address;
            pair.inject(false, from, record);
            pair.run(LONG);
            assert_eq!(pair.at_client.data, [(session, b"pong".to_vec())]);
        }
    }
}

#[test]
fn a_client_without_a_certificate_is_served_unless_one_is_required() {
    let optional = ClientCertificates::Optional(Arc::new(Known));
    for clients in [ClientCertificates::None, optional] {
        for own in [None, Some(certified("device"))] {
            let identity: &[u8] = match (&clients, &own) {
                (ClientCertificates::Optional(_), Some(_)) => b"device",
                _ => b"",
            };
            let mut pair = pair(clients.clone());
            pair.connect(shows(own));
            pair.run(LONG);
            let [(at_server, false)] = pair.at_server.established()[..] else { panic!() };
            assert_eq!(pair.server.identity(at_server).as_deref(), Some(identity), "{clients:?}");
            let shown = pair.server.certificate(at_server);
            assert_eq!(shown.as_deref(), Some(identity).filter(|identity| !identity.is_empty()));
        }
    }
    let mut pair = pair(required());
    pair.connect(shows(None));
    pair.run(LONG);
    let missing = Failure::Certificate(CertificateError::Missing);
    assert_eq!(reason(&pair.at_server.ended()), missing);
    let refused = Failure::Refused(AlertDescription::HANDSHAKE_FAILURE);
    assert_eq!(reason(&pair.at_client.ended()), refused);
    assert_eq!((pair.client.sessions(), pair.server.sessions()), (0, 0));
}

#[test]
fn a_certificate_that_is_not_accepted_ends_the_handshake_with_the_reason_at_both_sides() {
    for (name, error, alert) in [
        ("expired", CertificateError::Expired, AlertDescription::CERTIFICATE_EXPIRED),
        ("stranger", CertificateError::UnknownAuthority, AlertDescription::UNKNOWN_CA),
    ] {
        let mut at_client = pair(ClientCertificates::None);
        accept(&mut at_client.server, &certified(name), ClientCertificates::None);
        at_client.connect(shows(None));
        at_client.run(LONG);
        assert_eq!(reason(&at_client.at_client.ended()), Failure::Certificate(error));
        assert_eq!(reason(&at_client.at_server.ended()), Failure::Refused(alert));
        assert_eq!(at_client.client.counters().certificates_refused, 1);

        let mut at_server = pair(required());
        at_server.connect(shows(Some(certified(name))));
        at_server.run(LONG);
        assert_eq!(reason(&at_server.at_server.ended()), Failure::Certificate(error));
        assert_eq!(reason(&at_server.at_client.ended()), Failure::Refused(alert));
        assert_eq!(at_server.server.counters().certificates_refused, 1);
        assert_eq!((at_server.client.sessions(), at_server.server.sessions()), (0, 0));
    }
    let mut pair = pair(ClientCertificates::None);
    accept(&mut pair.server, &certified("device"), ClientCertificates::None);
    pair.connect(shows(None));
    pair.run(LONG);
    let wrong_name = Failure::Certificate(CertificateError::WrongName);
    assert_eq!(reason(&pair.at_client.ended()), wrong_name);
}

#[test]
fn a_certificate_without_its_key_is_worth_nothing() {
    let stolen = || certified_as("device", "thief");
    let mut at_server = pair(required());
    at_server.connect(shows(Some(stolen())));
    at_server.run(LONG);
    assert_eq!(reason(&at_server.at_server.ended()), Failure::WrongKey);
    let refused = Failure::Refused(AlertDescription::DECRYPT_ERROR);
    assert_eq!(reason(&at_server.at_client.ended()), refused);

    let mut at_client = pair(ClientCertificates::None);
    let stolen = certified_as("server", "thief");
    accept(&mut at_client.server, &stolen, ClientCertificates::None);
    at_client.connect(shows(None));
    at_client.run(LONG);
    assert_eq!(reason(&at_client.at_client.ended()), Failure::WrongKey);
    assert_eq!(reason(&at_client.at_server.ended()), refused);
}

#[test]
fn one_server_serves_clients_with_keys_and_with_certificates_and_refuses_those_without_a_common_suite()
 {
    let mut both = pair(required());
    let with_key = both.connect(credentials("device", b"secret"));
    both.run(LONG);
    let with_certificate = both.connect(shows(Some(certified("device"))));
    both.run(LONG);
    assert_eq!(both.at_client.established(), [(with_key, false), (with_certificate, false)]);

    let mut keys_only = Pair::new(client_config(), Config::default());
    keys_only.connect(shows(None));
    keys_only.run(LONG);
    let refused = Failure::Refused(AlertDescription::HANDSHAKE_FAILURE);
    assert_eq!(reason(&keys_only.at_client.ended()), refused);
    assert_eq!(keys_only.server.take_refused().unwrap().1, Failure::NoCommonSuite);
    assert_eq!(keys_only.server.sessions(), 0);
}

#[test]
fn a_session_is_resumed_with_the_identity_and_certificate_of_its_first_handshake() {
    let mut pair = pair(required());
    let first = pair.connect(shows(Some(certified("device"))));
    pair.run(LONG);
    let saved = pair.client.saved_session(first);
    assert!(saved.is_some());
    pair.client.close(pair.now, first);
    pair.run(LONG);
    let before = pair.at_client.sent.len();
    let second = pair.connect(ebbtide_dtls::CertificateCredentials { saved, ..shows(None) });
    pair.run(LONG);
    assert_eq!(pair.at_client.established(), [(first, false), (second, true)]);
    assert_eq!(pair.at_client.sent.len() - before, 3);
    let [_, (at_server, true)] = pair.at_server.established()[..] else { panic!() };
    assert_eq!(pair.server.identity(at_server).as_deref(), Some(&b"device"[..]));
    assert_eq!(pair.server.certificate(at_server).as_deref(), Some(&b"device"[..]));
}

#[test]
fn a_saved_session_with_a_key_is_not_offered_with_certificates() {
    let mut pair = pair(ClientCertificates::None);
    let first = pair.connect(credentials("device", b"secret"));
    pair.run(LONG);
    let saved = pair.client.saved_session(first);
    pair.client.close(pair.now, first);
    pair.run(LONG);
    let second = pair.connect(ebbtide_dtls::CertificateCredentials { saved, ..shows(None) });
    pair.run(LONG);
    assert_eq!(pair.at_client.established(), [(first, false), (second, false)]);
}

#[test]
fn a_handshake_takes_three_round_trips_and_the_bytes_of_its_certificates() {
    let mut pair = pair(required());
    let began = pair.now;
    pair.connect(shows(Some(certified("device"))));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.now - began, Duration::from_millis(300));
    assert_eq!((pair.at_client.sent.len(), pair.at_server.sent.len()), (3, 3));
    let bytes = |sent: &[(_, Vec<u8>)]| sent.iter().map(|(_, d)| d.len()).sum::<usize>();
    let total = (bytes(&pair.at_client.sent), bytes(&pair.at_server.sent));
    let chains = 2 * (3 + 3 + 6 + 3 + 600);
    // The two signatures have 70 to 72 bytes each, whatever is signed.
    assert_eq!(total.0 + total.1 - chains, 1040, "a change here is a change on the air");
}

#[test]
fn the_same_seeds_give_the_same_bytes() {
    let sent = || {
        let mut pair = pair(required());
        pair.connect(shows(Some(certified("device"))));
        pair.run(LONG);
        (pair.at_client.sent, pair.at_server.sent)
    };
    assert_eq!(sent(), sent());
}

/// Whichever datagram is lost, the handshake goes on after the client's timeout.
#[test]
fn one_lost_datagram_costs_one_timeout_of_the_client() {
    for mtu in [1232, 300] {
        let datagrams = {
            let mut pair = pair(required());
            pair.connect(shows(Some(certified("device"))));
            pair.run(LONG);
            pair.at_client.sent.len() + pair.at_server.sent.len()
        };
        for lost in 0..datagrams {
            let config = |cid_length| Config { mtu, cid_length, ..Config::default() };
            let mut pair = Pair::new(config(Some(0)), config(Some(6)));
            accept(&mut pair.server, &certified("server"), required());
            let began = pair.now;
            pair.connect(shows(Some(certified("device"))));
            let mut number = 0;
            pair.run_with(Duration::from_secs(10), &mut |datagram| {
                number += 1;
                let copy = vec![(Duration::ZERO, datagram.to_vec())];
                if number == lost + 1 { Vec::new() } else { copy }
            });
            assert_eq!(pair.at_client.established().len(), 1, "datagram {lost} of {mtu} bytes");
            assert!(pair.now - began < Duration::from_secs(4), "datagram {lost}, mtu {mtu}");
        }
    }
}
