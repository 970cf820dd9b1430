//! Peers that break the rules: Abort with a diagnostic, bounded memory, counted (RFC 8323 section
//! 5.6).

use crate::common::wired::{Wired, content, get, put};
use ebbtide_core::stream::{
    Closed, Config, Connection, Event, Failure, Fault, Ignored, Received, SendError,
};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{
    Code, Frame, FrameHeader, Framing, OptionNumber, SignalOption, signal_option,
};

const CSM: &[u8] = &[0x00, 0xe1];
const NOW: Instant = Instant::ZERO;

/// A connection that has sent its own CSM.
fn fresh(config: Config) -> Connection {
    let mut connection = Connection::new(NOW, Framing::Stream, config);
    let len = connection.poll_transmit().len();
    connection.handle_transmitted(NOW, len);
    connection
}

fn established() -> Connection {
    let mut connection = fresh(Config::default());
    assert!(matches!(
        connection.handle_input(NOW, CSM).unwrap().received,
        Received::Capabilities(_)
    ));
    connection
}

/// What the only message says that waits: an Abort.
fn abort(connection: &Connection) -> (String, Option<u32>) {
    let bytes = connection.poll_transmit();
    let header = FrameHeader::parse(Framing::Stream, bytes).unwrap().unwrap();
    let frame = Frame::parse(header, bytes).unwrap();
    assert_eq!(frame.code(), Code::ABORT);
    let option = signal_option(&frame, SignalOption::BAD_CSM_OPTION).and_then(|opt| opt.as_uint());
    (String::from_utf8(frame.payload().to_vec()).unwrap(), option)
}

/// `input` makes the connection abort for this reason, and end when the Abort is sent.
fn aborts(mut connection: Connection, input: &[u8], fault: Fault) {
    let taken = connection.handle_input(NOW, input).unwrap();
    assert!(matches!(taken.received, Received::Ignored(Ignored::Violation)), "{taken:?}");
    ended(connection, fault);
}

fn ended(mut connection: Connection, fault: Fault) {
    let (diagnostic, option) = abort(&connection);
    assert_eq!(diagnostic, fault.to_string());
    let bad = match fault {
        Fault::CriticalOption { signal: Code::CSM, option } => Some(option.0.into()),
        _ => None,
    };
    assert_eq!(option, bad);
    assert_eq!(connection.counters().aborted, 1);
    assert_eq!(connection.poll_event(), None, "the Abort is to be sent first");
    connection.handle_transmitted(NOW, connection.poll_transmit().len());
    assert_eq!(connection.poll_event(), Some(Event::Closed(Closed::Aborted(fault))));
    let after = connection.handle_input(NOW, &[0, 1]).unwrap();
    assert!(matches!(after.received, Received::Ignored(Ignored::AfterEnd)));
    assert_eq!(connection.request(NOW, &get()), Err(SendError::Closed));
}

#[test]
fn the_first_message_must_be_a_csm() {
    aborts(fresh(Config::default()), &[0x00, 0x01], Fault::CsmMissing(Code::GET));
    aborts(fresh(Config::default()), &[0x00, 0x45], Fault::CsmMissing(Code::CONTENT));
    aborts(fresh(Config::default()), &[0x00, 0xe2], Fault::CsmMissing(Code::PING));
}

#[test]
fn a_csm_that_is_late_ends_the_connection() {
    let mut connection = fresh(Config::default());
    assert_eq!(connection.poll_timeout(), Some(NOW + Config::default().csm_timeout));
    connection.handle_timeout(NOW + Duration::from_secs(29));
    assert!(connection.is_open());
    connection.handle_timeout(NOW + Duration::from_secs(30));
    ended(connection, Fault::CsmLate);
}

#[test]
fn a_critical_option_of_a_signal_is_understood_by_nobody() {
    let fault = |signal, option| Fault::CriticalOption { signal, option: OptionNumber(option) };
    aborts(fresh(Config::default()), &[0x10, 0xe1, 0x10], fault(Code::CSM, 1));
    aborts(established(), &[0x10, 0xe2, 0x50], fault(Code::PING, 5));
    aborts(established(), &[0x20, 0xe4, 0x91, 0x00], fault(Code::RELEASE, 9));
}

#[test]
fn an_unknown_elective_option_and_an_unknown_signal_are_ignored() {
    let mut connection = established();
    for input in [&[0x10, 0xe1, 0x60][..], &[0x10, 0xe2, 0xc0], &[0x00, 0xff]] {
        let taken = connection.handle_input(NOW, input).unwrap();
        assert_eq!(taken.bytes, input.len());
    }
    assert!(connection.is_open());
    assert_eq!(connection.counters().unknown_signals, 1);
}

#[test]
fn a_length_beyond_our_maximum_is_refused_by_its_header_alone() {
    let config = Config { max_message_size: 2000, ..Config::default() };
    // 269 + 1727 bytes behind four of header: 2000.
    let mut connection = fresh(config);
    connection.handle_input(NOW, CSM).unwrap();
    assert!(connection.handle_input(NOW, &[0xe0, 0x06, 0xbf, 0x01]).is_none());
    assert_eq!(connection.expects(), 2000);
    let mut connection = fresh(config);
    connection.handle_input(NOW, CSM).unwrap();
    aborts(connection, &[0xe0, 0x06, 0xc0, 0x01], Fault::TooLong { bytes: 2001, limit: 2000 });
    let bytes = 6 + 0xffff_ffff + 65_805;
    let fault = Fault::TooLong { bytes, limit: Config::default().max_message_size };
    aborts(established(), &[0xf0, 0xff, 0xff, 0xff, 0xff, 0x01], fault);
}

#[test]
fn an_invalid_message_ends_the_connection() {
    use ebbtide_core::wire::FormatError as E;
    for (input, error) in [
        (&[0x09, 0x01][..], E::TokenLength(9)),
        (&[0x10, 0x01, 0xff], E::PayloadMarkerWithoutPayload),
        (&[0x10, 0x01, 0xf0], E::OptionDelta15),
        (&[0x10, 0x01, 0x05], E::OptionTruncated),
        (&[0x00, 0x20], E::ReservedCodeClass(Code::new(1, 0))),
    ] {
        aborts(established(), input, Fault::Malformed(error));
    }
    let mut connection = Connection::new(NOW, Framing::WebSocket, Config::default());
    assert!(connection.handle_input(NOW, &[0x00]).is_some());
    assert!(!connection.is_open());
}

#[test]
fn a_message_that_drips_in_is_not_waited_for_longer_than_one_that_stops() {
    let mut connection = established();
    let message = [&[0xd0, 0x57, 0x02, 0xff][..], &[7; 99]].concat();
    for second in 0..60 {
        let now = NOW + Duration::from_secs(second);
        connection.handle_timeout(now);
        assert!(connection.handle_input(now, &message[..=second as usize]).is_none());
        assert!(connection.is_open());
    }
    connection.handle_timeout(NOW + Config::default().message_timeout);
    ended(connection, Fault::SlowMessage);
}

#[test]
fn a_transport_that_takes_nothing_is_given_up() {
    let mut wired = Wired::new(Config::default(), Config::default());
    wired.exchange();
    let asked = wired.a.request(wired.now, &get()).unwrap();
    wired.wait(Config::default().write_timeout);
    let closed = Closed::Aborted(Fault::WriteStalled);
    let reason = Failure::Closed(closed);
    assert_eq!(wired.a.poll_event(), Some(Event::Failed { request: asked, reason }));
    assert_eq!(wired.a.poll_event(), Some(Event::Closed(closed)));
    assert!(wired.a.poll_transmit().is_empty());
}

#[test]
fn a_peer_that_vanished_is_noticed_by_a_ping() {
    let config = Config { keep_alive: Some(Duration::from_secs(100)), ..Config::default() };
    let mut wired = Wired::new(config, Config::default());
    wired.exchange();
    wired.wait(Duration::from_secs(100));
    wired.exchange();
    wired.wait(Duration::from_secs(99));
    assert!(wired.a.is_open(), "it answered");
    wired.wait(Duration::from_secs(1));
    assert!(!wired.a.poll_transmit().is_empty(), "a Ping");
    wired.a.handle_transmitted(wired.now, wired.a.poll_transmit().len());
    wired.wait(config.pong_timeout);
    ended(wired.a, Fault::Silent);
}

#[test]
fn a_peer_that_does_not_take_its_answers_cannot_ask_for_more() {
    let config = Config { max_output: 4096, ..Config::default() };
    let mut connection = fresh(config);
    connection.handle_input(NOW, CSM).unwrap();
    let mut asked = 0;
    while let Some(taken) = connection.handle_input(NOW, &[0x00, 0x01]) {
        let Received::Request(incoming, _) = taken.received else { panic!("a request") };
        connection.respond(NOW, &incoming, &content(&[7; 500])).unwrap();
        asked += 1;
    }
    assert_eq!(asked, 5, "half of the output's bound");
    assert!(!connection.wants_input());
    // Pings are no way around it.
    assert!(connection.handle_input(NOW, &[0x00, 0xe2]).is_none());
    connection.handle_transmitted(NOW, 1000);
    assert!(connection.wants_input());
}

#[test]
fn unanswered_requests_are_bounded() {
    let config = Config { max_unanswered: 3, ..Config::default() };
    let mut connection = fresh(config);
    connection.handle_input(NOW, CSM).unwrap();
    let mut held = Vec::new();
    while let Some(taken) = connection.handle_input(NOW, &[0x00, 0x01]) {
        if let Received::Request(incoming, _) = taken.received {
            held.push(incoming);
        }
    }
    assert_eq!(held.len(), 3);
    connection.dismiss(NOW, &held[0]);
    assert!(connection.handle_input(NOW, &[0x00, 0x01]).is_some());
}

#[test]
fn a_message_longer_than_the_peer_takes_is_an_error_to_the_caller() {
    let small = Config { max_message_size: 100, ..Config::default() };
    let mut wired = Wired::new(Config::default(), small);
    wired.exchange();
    let long = wired.a.request(wired.now, &put(&[7; 100]));
    assert!(matches!(long, Err(SendError::TooLong { limit: 100, .. })), "{long:?}");
    assert_eq!(wired.a.open_requests(), 0);
    assert!(wired.a.request(wired.now, &put(&[7; 80])).is_ok());
    assert_eq!(wired.a.counters().refused, 1);
}

#[test]
fn a_critical_option_of_a_request_is_refused_and_of_a_response_fails_the_request() {
    let mut connection = established();
    // Option 9 in a GET: OSCORE, which nobody here implements.
    let taken = connection.handle_input(NOW, &[0x10, 0x01, 0x90]).unwrap();
    assert!(matches!(taken.received, Received::Ignored(Ignored::UnknownCriticalOption)));
    // With a diagnostic payload (RFC 7252 section 5.4.1).
    assert_eq!(connection.poll_transmit(), b"\x90\x82\xffoption 9");
    assert_eq!(connection.unanswered(), 0);

    let request = connection.request(NOW, &get()).unwrap();
    let mut response = vec![0x14, 0x45];
    response.extend_from_slice(request.token().as_slice());
    response.push(0x90);
    connection.handle_input(NOW, &response).unwrap();
    let failed = Event::Failed { request, reason: Failure::BadOption };
    assert_eq!(connection.poll_event(), Some(failed));
    assert_eq!(connection.counters().bad_options, 2);
}

#[test]
fn an_end_without_a_release_fails_what_is_open() {
    type End = fn(&mut Connection, Instant);
    let ends: [(End, Closed); 2] =
        [(Connection::handle_eof, Closed::ByPeer), (Connection::handle_loss, Closed::Lost)];
    for (end, closed) in ends {
        let mut wired = Wired::new(Config::default(), Config::default());
        let request = wired.a.request(wired.now, &get()).unwrap();
        wired.exchange();
        end(&mut wired.a, wired.now);
        let reason = Failure::Closed(closed);
        assert_eq!(wired.a.poll_event(), Some(Event::Failed { request, reason }));
        assert_eq!(wired.a.poll_event(), Some(Event::Closed(closed)));
    }
}

#[test]
fn the_peers_abort_ends_the_connection_and_says_why() {
    let mut connection = fresh(Config::default());
    connection.request(NOW, &get()).unwrap();
    // Before any CSM: it did not like option 4 of ours.
    let taken = connection.handle_input(NOW, &[0x60, 0xe5, 0x21, 0x04, 0xff, b'n', b'o', b'!']);
    let taken = taken.unwrap();
    assert!(matches!(taken.received, Received::Abort(b"no!")), "{taken:?}");
    let closed = Closed::AbortedByPeer(Some(OptionNumber(4)));
    assert!(matches!(connection.poll_event(), Some(Event::Failed { .. })));
    assert_eq!(connection.poll_event(), Some(Event::Closed(closed)));
    assert_eq!(connection.counters().aborted_by_peer, 1);
}
