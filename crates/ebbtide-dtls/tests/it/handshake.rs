//! Handshakes between two of our endpoints.

use crate::common::{Pair, client_config, credentials, server};
use ebbtide_core::time::Duration;
use ebbtide_dtls::{AlertDescription, CipherSuite, Config, Event, Failure, Timing};

const LONG: Duration = Duration::from_secs(200);

#[test]
fn a_client_with_the_right_key_gets_a_session_and_data_passes_both_ways() {
    for suite in CipherSuite::PSK {
        for (ours, theirs) in
            [(Some(0), Some(6)), (Some(4), Some(8)), (None, None), (None, Some(6)), (Some(3), None)]
        {
            let config = Config { suites: vec![suite], cid_length: ours, ..Config::default() };
            let mut pair = Pair::new(config, Config { cid_length: theirs, ..Config::default() });
            let session = pair.connect(credentials("device", b"secret"));
            pair.run(LONG);
            assert_eq!(pair.at_client.established(), [(session, false)]);
            let [(at_server, false)] = pair.at_server.established()[..] else { panic!() };
            assert_eq!(pair.server.identity(at_server).as_deref(), Some(&b"device"[..]));
            assert_eq!(pair.server.suite(at_server), Some(suite));
            let both = ours.is_some() && theirs.is_some();
            let expected = (both && ours > Some(0), both && theirs > Some(0));
            assert_eq!(pair.client.connection_ids(session), Some(expected));
            assert_eq!(pair.server.connection_ids(at_server), Some((expected.1, expected.0)));

            pair.send_from_client(session, b"ping");
            pair.run(LONG);
            assert_eq!(pair.at_server.data, [(at_server, b"ping".to_vec())]);
            let mut record = Vec::new();
            let to = pair.server.send(pair.now, at_server, b"pong", &mut record).unwrap();
            assert_eq!(to, pair.client_address);
            let from = pair.server_address;
            pair.inject(false, from, record);
            pair.run(LONG);
            assert_eq!(pair.at_client.data, [(session, b"pong".to_vec())]);
        }
    }
}

#[test]
fn a_full_handshake_takes_three_round_trips_of_five_flights_and_few_bytes() {
    let mut pair = Pair::new(client_config(), Config::default());
    let began = pair.now;
    pair.connect(credentials("device", b"secret"));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.now - began, Duration::from_millis(300));
    assert_eq!((pair.at_client.sent.len(), pair.at_server.sent.len()), (3, 3));
    let bytes = |sent: &[(_, Vec<u8>)]| sent.iter().map(|(_, d)| d.len()).sum::<usize>();
    let total = (bytes(&pair.at_client.sent), bytes(&pair.at_server.sent));
    assert_eq!(total, (299, 241), "a change here is a change on the air");
    assert_eq!(pair.at_client.round_trips().len(), 3);
    assert_eq!(pair.at_server.round_trips().len(), 1);
}

/// A ClientHello in one record with one more extension, which nobody knows.
fn with_another_extension(hello: &[u8]) -> Vec<u8> {
    const EXTENSION: [u8; 4] = [0xff, 0x77, 0, 0];
    let mut longer = [hello, &EXTENSION].concat();
    let mut add = |at: usize| {
        let length = u16::from_be_bytes([longer[at], longer[at + 1]]) + EXTENSION.len() as u16;
        longer[at..at + 2].copy_from_slice(&length.to_be_bytes());
    };
    // The record (RFC 6347 section 4.1), the message and its only fragment (4.2.2), and, after version, random number,
    // session ID, cookie, cipher suites and compression methods, the extensions.
    add(11);
    add(13 + 2);
    add(13 + 10);
    let mut at = 25 + 2 + 32;
    at += 1 + usize::from(hello[at]);
    at += 1 + usize::from(hello[at]);
    at += 2 + usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    at += 1 + usize::from(hello[at]);
    add(at);
    longer
}

#[test]
fn a_cookie_is_valid_for_a_hello_with_other_extensions() {
    let mut pair = Pair::new(client_config(), Config::default());
    pair.connect(credentials("device", b"secret"));
    let mut hellos = 0;
    pair.run_with(Duration::from_millis(500), &mut |datagram| {
        let is_hello = datagram[0] == 22 && datagram[13] == 1;
        hellos += u32::from(is_hello);
        // The first one comes without a cookie.
        let datagram = match is_hello && hellos > 1 {
            true => with_another_extension(datagram),
            false => datagram.to_vec(),
        };
        vec![(Duration::ZERO, datagram)]
    });
    // RFC 6347 section 4.2.1: HelloVerifyRequest (3), then a ServerHello (2).
    let messages: Vec<u8> = pair.at_server.sent.iter().map(|(_, sent)| sent[13]).collect();
    assert_eq!(messages[..2], [3, 2], "{messages:?}");
}

#[test]
fn a_cookie_is_not_valid_for_a_hello_of_another_version() {
    let mut pair = Pair::new(client_config(), Config::default());
    pair.connect(credentials("device", b"secret"));
    let mut hellos = 0;
    pair.run_with(Duration::from_millis(500), &mut |datagram| {
        let mut datagram = datagram.to_vec();
        if datagram[0] == 22 && datagram[13] == 1 {
            hellos += 1;
            // After the headers of record and message: DTLS 1.3, which is 1.2 or later.
            datagram[25 + 1] = if hellos > 1 { 0xfc } else { 0xfd };
        }
        vec![(Duration::ZERO, datagram)]
    });
    // RFC 6347 section 4.2.1: another HelloVerifyRequest (3).
    let messages: Vec<u8> = pair.at_server.sent.iter().map(|(_, sent)| sent[13]).collect();
    assert_eq!(messages[..2], [3, 3], "{messages:?}");
}

#[test]
fn a_session_is_resumed_in_two_round_trips() {
    let mut pair = Pair::new(client_config(), Config::default());
    let first = pair.connect(credentials("device", b"secret"));
    pair.run(LONG);
    let saved = pair.client.saved_session(first).unwrap();
    let bytes = saved.to_bytes();
    let saved = ebbtide_dtls::SavedSession::from_bytes(&bytes);
    assert!(saved.is_some());
    pair.client.close(pair.now, first);
    pair.run(LONG);
    assert!(matches!(
        pair.at_server.ended()[..],
        [Event::Ended { reason: Failure::ClosedByPeer, established: true, .. }]
    ));
    assert_eq!(pair.server.sessions(), 0);
    let began = pair.now;
    let again = ebbtide_dtls::Credentials { saved, ..credentials("device", b"secret") };
    let second = pair.connect(again);
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.at_client.established(), [(first, false), (second, true)]);
    assert!(matches!(pair.at_server.established()[..], [(_, false), (_, true)]));
    assert_eq!(pair.now - began, Duration::from_millis(250), "the last flight needs no answer");
    pair.send_from_client(second, b"again");
    pair.run(LONG);
    let (session, data) = &pair.at_server.data[0];
    assert_eq!(data, b"again");
    assert_eq!(pair.server.identity(*session).as_deref(), Some(&b"device"[..]));
}

#[test]
fn a_session_is_not_resumed_with_another_suite() {
    let mut pair = Pair::new(client_config(), Config::default());
    let first = pair.connect(credentials("device", b"secret"));
    pair.run(LONG);
    let saved = pair.client.saved_session(first);
    pair.client.close(pair.now, first);
    pair.run(LONG);
    pair.connect(ebbtide_dtls::Credentials { saved, ..credentials("device", b"secret") });
    pair.run_with(LONG, &mut |datagram| {
        let mut datagram = datagram.to_vec();
        // ServerHello (2): the suite follows version, random and a session ID of 16 bytes.
        if (datagram[0], datagram[13]) == (22, 2) {
            let suite = &mut datagram[13 + 12 + 2 + 32 + 1 + 16..][..2];
            // TLS_PSK_WITH_AES_128_CCM_8 becomes TLS_PSK_WITH_AES_128_GCM_SHA256.
            assert_eq!(suite, [0xc0, 0xa8]);
            suite.copy_from_slice(&[0, 0xa8]);
        }
        vec![(Duration::ZERO, datagram)]
    });
    let [_, Event::Ended { reason, .. }] = pair
        .at_client
        .events
        .iter()
        .filter(|event| !matches!(event, Event::RoundTrip { .. }))
        .collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", pair.at_client.events)
    };
    // RFC 5246 section 7.4.1.3.
    assert_eq!(*reason, Failure::IllegalParameter);
}

/// Whether a server completes a handshake whose last record overtakes the message from which its key follows, behind
/// two others of this type and length.
fn is_completed_behind(content: u8, length: usize) -> bool {
    let mut pair = Pair::new(client_config(), Config { cid_length: None, ..Config::default() });
    pair.connect(credentials("device", b"secret"));
    let millis = Duration::from_millis;
    pair.run_with(millis(1000), &mut |datagram| {
        // ClientKeyExchange (16), ChangeCipherSpec and Finished.
        if (datagram[0], datagram[13]) != (22, 16) {
            return vec![(Duration::ZERO, datagram.to_vec())];
        }
        let end = 13 + usize::from(datagram[12]);
        let (first, finished) = (&datagram[..end], &datagram[end + 14..]);
        let mut other = [&finished[..11], &(length as u16).to_be_bytes()].concat();
        other[0] = content;
        other.resize(13 + length, 7);
        let records = [other.clone(), other, finished.to_vec(), first.to_vec()];
        (0..).map(millis).zip(records).collect()
    });
    !pair.at_server.established().is_empty()
}

#[test]
fn of_the_records_that_overtake_their_keys_two_short_ones_are_kept() {
    let (handshake, data) = (22, 23);
    // Two that are not authentic would end the handshake.
    assert!(is_completed_behind(handshake, 500));
    assert!(!is_completed_behind(handshake, 499));
    // Data would not, but takes the places.
    assert!(!is_completed_behind(data, 40));
    assert!(is_completed_behind(data, 500));
}

#[test]
fn a_wrong_key_and_an_unknown_identity_look_alike_to_the_peer_and_differ_at_the_server() {
    let mut seen = Vec::new();
    for (identity, key, reason) in [
        ("device", &b"wrong!"[..], Failure::WrongKey),
        ("devicf", &b"secret"[..], Failure::UnknownIdentity),
    ] {
        let mut pair = Pair::new(client_config(), Config::default());
        pair.connect(credentials(identity, key));
        pair.run(LONG);
        let [Event::Ended { reason: at_client, established: false, .. }] =
            pair.at_client.ended()[..]
        else {
            panic!("{:?}", pair.at_client)
        };
        assert_eq!(*at_client, Failure::Refused(AlertDescription::DECRYPT_ERROR));
        let [Event::Ended { reason: at_server, identity: named, .. }] = pair.at_server.ended()[..]
        else {
            panic!("{:?}", pair.at_server)
        };
        assert_eq!((*at_server, &**named), (reason, identity.as_bytes()));
        let lengths: Vec<usize> = pair.at_server.sent.iter().map(|(_, d)| d.len()).collect();
        seen.push((pair.now, lengths));
        assert_eq!((pair.client.sessions(), pair.server.sessions()), (0, 0));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn without_a_common_suite_the_client_is_told() {
    let gcm = Config { suites: vec![CipherSuite::PskAes128GcmSha256], ..client_config() };
    let ccm = Config { suites: vec![CipherSuite::PskAes128Ccm8], ..Config::default() };
    let mut pair = Pair::new(gcm, ccm);
    pair.connect(credentials("device", b"secret"));
    pair.run(LONG);
    let [Event::Ended { reason, .. }] = pair.at_client.ended()[..] else { panic!() };
    assert_eq!(*reason, Failure::Refused(AlertDescription::HANDSHAKE_FAILURE));
    assert_eq!(pair.server.take_refused().unwrap().1, Failure::NoCommonSuite);
    assert_eq!(pair.server.sessions(), 0);
}

#[test]
fn a_handshake_without_answer_ends_after_doubling_timeouts() {
    let mut pair = Pair::new(client_config(), Config::default());
    let began = pair.now;
    pair.connect(credentials("device", b"secret"));
    pair.run_with(LONG, &mut |_| Vec::new());
    assert_eq!(pair.at_client.sent.len(), 6);
    let [Event::Ended { reason: Failure::NoAnswer, .. }] = pair.at_client.ended()[..] else {
        panic!("{:?}", pair.at_client)
    };
    // 2 s + 4 + 8 + 16 + 32 + 60.
    assert_eq!(pair.now - began, Duration::from_secs(122));
}

#[test]
fn over_a_path_of_an_hour_a_handshake_takes_three_round_trips_and_no_copy() {
    let delay = Duration::from_secs(1800);
    let hour = 2 * delay;
    for follows_path in [true, false] {
        let server = Config::default();
        let server = if follows_path { server.for_round_trips(hour) } else { server };
        let mut pair = Pair::new(client_config(), server);
        pair.delay = delay;
        let timing = Timing::default().beginning_with(2 * hour);
        let key = credentials("device", b"secret");
        let session = pair.client.connect(pair.now, pair.server_address, key, timing);
        let began = pair.now;
        pair.run(5 * hour);
        if follows_path {
            assert_eq!(pair.at_client.established(), [(session, false)]);
            let sent = (pair.at_client.sent.len(), pair.at_server.sent.len());
            assert_eq!(sent, (3, 3), "flights of the client and the server");
            assert_eq!(pair.now - began, 3 * hour);
        } else {
            // A cookie of the defaults is two minutes old at most.
            assert!(pair.at_client.established().is_empty());
        }
    }
}

#[test]
fn messages_longer_than_a_datagram_are_fragmented() {
    let small = |cid_length| Config { mtu: 256, cid_length, ..Config::default() };
    let mut pair = Pair::new(small(Some(8)), small(Some(8)));
    let identity = "i".repeat(128);
    pair.server.accept(Box::new(|_: &[u8]| Some(crate::common::psk(b"secret"))));
    let session = pair.connect(credentials(&identity, b"secret"));
    pair.run(LONG);
    assert_eq!(pair.at_client.established(), [(session, false)]);
    let longest = pair.at_client.sent.iter().map(|(_, datagram)| datagram.len()).max();
    assert!(longest <= Some(256), "{longest:?}");
}

#[test]
fn a_handshake_that_its_server_has_lost_is_doubted_once_its_last_flight_was_repeated() {
    for cid_length in [None, Some(6)] {
        let config = || Config { cid_length, ..Config::default() };
        let mut pair = Pair::new(client_config(), config());
        let session = pair.connect(credentials("device", b"secret"));
        pair.run_with(Duration::from_secs(1), &mut |datagram| match datagram[13] {
            // ClientKeyExchange.
            16 => Vec::new(),
            _ => vec![(Duration::ZERO, datagram.to_vec())],
        });
        pair.server = server(config(), 9);
        let is_doubted = |pair: &Pair| pair.at_client.events.contains(&Event::Doubted { session });
        // A fatal bad_record_mac in plain text, from anybody.
        let forged = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 20];
        let from = pair.server_address;
        pair.inject(false, from, forged.to_vec());
        pair.run(Duration::from_millis(500));
        assert!(!is_doubted(&pair), "an answer may be under way");
        pair.run(Duration::from_secs(3));
        assert!(is_doubted(&pair), "{:?}", pair.at_client.events);
        let again = pair.connect(credentials("device", b"secret"));
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.at_client.established(), [(again, false)]);
    }
}

#[test]
fn a_handshake_whose_end_was_lost_for_minutes_is_doubted() {
    for cid_length in [None, Some(6)] {
        for minutes in [3, 4] {
            let config = Config { cid_length, ..Config::default() };
            let mut pair = Pair::new(client_config(), config);
            let session = pair.connect(credentials("device", b"secret"));
            // ChangeCipherSpec (20) and Finished of the server are lost.
            let mut is_lost = |datagram: &[u8]| match datagram[0] {
                20 => Vec::new(),
                _ => vec![(Duration::ZERO, datagram.to_vec())],
            };
            pair.run_with(Duration::from_secs(1), &mut is_lost);
            assert_eq!(pair.at_server.established().len(), 1);
            // As after a suspension.
            pair.now = pair.now + Duration::from_secs(60 * minutes);
            pair.run(Duration::from_secs(1));
            let is_doubted = pair.at_client.events.contains(&Event::Doubted { session });
            let is_established = pair.client.is_established(session);
            // The server keeps its last flight for 240 s.
            assert_eq!((is_established, is_doubted), (minutes < 4, minutes >= 4));
        }
    }
}

/// Also a flight of the server, whose own timer takes a minute.
#[test]
fn whichever_datagram_is_lost_the_handshake_goes_on_after_the_clients_timeout() {
    for lost in 1..=6 {
        let mut pair = Pair::new(client_config(), Config::default());
        let began = pair.now;
        let session = pair.connect(credentials("device", b"secret"));
        let mut number = 0;
        pair.run_with(Duration::from_secs(10), &mut |datagram| {
            number += 1;
            let copy = vec![(Duration::ZERO, datagram.to_vec())];
            if number == lost { Vec::new() } else { copy }
        });
        assert_eq!(pair.at_client.established(), [(session, false)], "datagram {lost}");
        assert!(pair.now - began < Duration::from_secs(3), "datagram {lost}: {:?}", pair.now);
    }
}

#[test]
fn a_server_of_dtls_1_3_as_well_says_so_in_its_random_number() {
    for serves_dtls13 in [false, true] {
        let config = Config { serves_dtls13, ..Config::default() };
        let mut pair = Pair::new(client_config(), config);
        pair.connect(credentials("device", b"secret"));
        pair.run(LONG);
        let sentinel = |bytes: &[u8]| bytes.windows(8).any(|end| end == b"DOWNGRD\x01");
        let found = pair.at_server.sent.iter().any(|(_, datagram)| sentinel(datagram));
        assert_eq!(found, serves_dtls13);
        assert_eq!(pair.at_server.established().len(), 1);
    }
}
