//! How an exchange can end, and that everything it held is free afterwards.

use crate::common::node::{Got, Node, PEER, config, content, message, peer, peer_at};
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Failure, Ignored, Reliability};
use ebbtide_core::wire::{Code, Type};

/// A client with one exchange that has been sent.
fn open() -> (Node, ExchangeId, crate::common::node::Datagram) {
    let mut node = Node::under("default");
    let exchange = node.get();
    let sent = node.one();
    (node, exchange, sent)
}

#[test]
fn a_reset_ends_a_request() {
    let (mut node, exchange, sent) = open();
    node.wait(0.3);
    match node.arrive(&sent.rst()) {
        Got::Reset { exchange: reset, sample: Some(sample) } => {
            assert_eq!(reset, exchange);
            assert_eq!(crate::common::float(sample.since_first), 0.3);
        }
        other => panic!("{other:?}"),
    }
    node.assert_free();
    assert!(node.failed.is_empty(), "an exchange ends once");
}

#[test]
fn a_reset_ends_an_acknowledged_request_and_a_non_confirmable_one() {
    let (mut node, exchange, sent) = open();
    assert!(matches!(node.arrive(&sent.ack()), Got::Acknowledged { .. }));
    match node.arrive(&sent.rst()) {
        Got::Reset { exchange: reset, sample: None } => assert_eq!(reset, exchange),
        other => panic!("{other:?}"),
    }
    node.assert_free();
    let exchange = node.non_get();
    let sent = node.one();
    match node.arrive(&sent.rst()) {
        Got::Reset { exchange: reset, sample: None } => assert_eq!(reset, exchange),
        other => panic!("{other:?}"),
    }
    node.assert_free();
}

#[test]
fn a_cancelled_exchange_is_gone_in_every_state() {
    // Queued behind another one.
    let (mut node, first, sent) = open();
    let queued = node.get();
    assert_eq!(node.ep.open_exchanges(), 2);
    node.cancel(queued);
    assert_eq!(node.ep.open_exchanges(), 1);
    node.arrive(&sent.answer()).response_to(first);
    node.assert_free();
    assert!(node.take().is_empty(), "what was cancelled is not sent");

    // Open, between transmissions.
    let (mut node, exchange, sent) = open();
    node.wait(3.0);
    assert_eq!(node.take().len(), 1);
    node.cancel(exchange);
    node.assert_free();
    node.wait(500.0);
    assert!(node.take().is_empty() && node.failed.is_empty());
    // A late answer is no answer.
    assert_eq!(node.arrive(&sent.answer()).ignored(), Ignored::UnknownExchange);
    assert!(node.take().is_empty());

    // Acknowledged, waiting for its response.
    let (mut node, exchange, sent) = open();
    node.arrive(&sent.ack());
    node.cancel(exchange);
    node.assert_free();
    assert_eq!(node.arrive(&sent.rst()).ignored(), Ignored::UnknownExchange);
    // The response finds nobody and is rejected (RFC 7252 section 4.2).
    let late = node.arrive(&sent.separate(Type::Confirmable, 77));
    assert_eq!(late.ignored(), Ignored::UnknownExchange);
    assert_eq!(node.one().head(), (Type::Reset, Code::EMPTY, 77));

    // Non-confirmable, waiting; and waiting for permission to leave.
    let mut node = Node::under("default");
    let sent = node.non_get();
    let paced = node.non_get();
    assert_eq!(node.take().len(), 1);
    node.cancel(paced);
    node.cancel(sent);
    node.assert_free();

    // Ended already: nothing happens.
    node.cancel(sent);
    node.cancel(paced);
    node.assert_free();
    assert_eq!(node.ep.counters().unknown_answers, 0);
}

#[test]
fn a_cancelled_name_does_not_name_the_next_exchange_in_its_place() {
    let (mut node, old, _) = open();
    node.cancel(old);
    let new = node.get();
    assert_eq!(old.index(), new.index(), "the place is used again");
    node.cancel(old);
    assert_eq!(node.ep.open_exchanges(), 1);
    node.cancel(new);
    node.assert_free();
}

#[test]
fn a_send_error_ends_an_exchange_at_once() {
    let (mut node, exchange, _) = open();
    node.ep.handle_send_error(node.now, exchange);
    node.settle();
    assert_eq!(node.failures(), [(exchange, Failure::SendError)]);
    node.assert_free();
    node.ep.handle_send_error(node.now, exchange);
    node.settle();
    assert!(node.failures().is_empty());
}

#[test]
fn a_separate_response_ends_a_request_before_and_after_its_acknowledgement() {
    for acknowledged in [false, true] {
        for kind in [Type::Confirmable, Type::NonConfirmable] {
            let (mut node, exchange, sent) = open();
            if acknowledged {
                node.arrive(&sent.ack());
            }
            let sample = node.arrive(&sent.separate(kind, 77)).response_to(exchange);
            assert_eq!(sample.is_some(), !acknowledged);
            node.assert_free();
            let replies = node.take();
            match kind {
                Type::Confirmable => {
                    assert_eq!(replies[0].head(), (Type::Acknowledgement, Code::EMPTY, 77));
                }
                _ => assert!(replies.is_empty()),
            }
            // The acknowledgement that was overtaken.
            assert_eq!(node.arrive(&sent.ack()).ignored(), Ignored::UnknownExchange);
        }
    }
}

#[test]
fn the_duplicate_of_a_separate_response_is_acknowledged_again_and_not_processed() {
    let (mut node, exchange, sent) = open();
    let response = sent.separate(Type::Confirmable, 77);
    node.arrive(&response).response_to(exchange);
    let first = node.one();
    node.wait(200.0);
    assert_eq!(node.arrive(&response).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.one().bytes, first.bytes);
    // After EXCHANGE_LIFETIME nothing is known about it.
    node.wait(48.0);
    assert_eq!(node.arrive(&response).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.one().head(), (Type::Reset, Code::EMPTY, 77));
}

#[test]
fn the_duplicate_of_a_response_does_not_answer_the_next_request_with_the_same_token() {
    // Without randomness in tokens every one is empty (RFC 7252 section 5.3.1 allows it).
    let mut config = config("default");
    config.token_length = 0;
    let mut node = Node::new(config);
    let first = node.get();
    let sent = node.one();
    let response = sent.separate(Type::Confirmable, 77);
    node.arrive(&response).response_to(first);
    let second = node.get();
    assert_eq!(node.take().len(), 2);
    assert_eq!(node.arrive(&response).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.one().head(), (Type::Acknowledgement, Code::EMPTY, 77));
    assert_eq!(node.ep.open_exchanges(), 1);
    node.cancel(second);
}

#[test]
fn an_answer_counts_once() {
    let (mut node, exchange, sent) = open();
    assert!(node.arrive(&sent.answer()).response_to(exchange).is_some());
    assert_eq!(node.arrive(&sent.answer()).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.ep.counters().unknown_answers, 1);
    let (mut node, _, sent) = open();
    assert!(matches!(node.arrive(&sent.ack()), Got::Acknowledged { .. }));
    assert_eq!(node.arrive(&sent.ack()).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.ep.counters().unknown_answers, 1);
}

#[test]
fn the_wrong_token_is_ignored_and_the_request_goes_on() {
    let (mut node, exchange, sent) = open();
    let wrong = message(Type::Acknowledgement, Code::CONTENT, sent.id(), b"wrong", &[], b"");
    assert_eq!(node.arrive(&wrong).ignored(), Ignored::WrongToken);
    let none = message(Type::Acknowledgement, Code::CONTENT, sent.id(), b"", &[], b"");
    assert_eq!(node.arrive(&none).ignored(), Ignored::WrongToken);
    assert_eq!(node.ep.counters().wrong_tokens, 2);
    assert!(node.take().is_empty(), "an acknowledgement is never answered");
    assert_eq!(node.ep.open_exchanges(), 1);
    assert!(node.arrive(&sent.answer()).response_to(exchange).is_some());
}

#[test]
fn the_wrong_message_id_is_ignored() {
    let (mut node, _, sent) = open();
    for kind in [Type::Acknowledgement, Type::Reset] {
        let wrong = message(kind, Code::EMPTY, sent.id().wrapping_add(1), b"", &[], b"");
        assert_eq!(node.arrive(&wrong).ignored(), Ignored::UnknownExchange);
    }
    assert_eq!(node.ep.counters().unknown_answers, 2);
    assert!(node.take().is_empty());
    assert_eq!(node.ep.open_exchanges(), 1);
}

#[test]
fn an_answer_from_another_address_is_ignored() {
    let (mut node, exchange, sent) = open();
    let other_port = peer_at(5684);
    for from in [peer(3), other_port] {
        for datagram in
            [sent.answer(), sent.ack(), sent.rst(), sent.separate(Type::NonConfirmable, 77)]
        {
            assert_eq!(node.arrive_from(from, &datagram).ignored(), Ignored::UnknownExchange);
            assert!(node.take().is_empty());
        }
        let separate = sent.separate(Type::Confirmable, 77);
        assert_eq!(node.arrive_from(from, &separate).ignored(), Ignored::UnknownExchange);
        let reset = node.one();
        assert_eq!((reset.to, reset.kind()), (from, Type::Reset));
    }
    assert_eq!(node.ep.counters().unknown_answers, 10);
    assert!(node.arrive(&sent.answer()).response_to(exchange).is_some());
}

#[test]
fn an_answer_to_what_is_still_queued_is_rejected() {
    let (mut node, first, sent) = open();
    let queued = node.get();
    // Nobody can know its token; drawn here from an endpoint with the same randomness.
    let mut twin = Node::under("default");
    twin.get();
    let other = twin.get();
    twin.cancel(first);
    let token = twin.take().pop().expect("sent").token();
    let forged = message(Type::Confirmable, Code::CONTENT, 77, &token, &[], b"");
    assert_eq!(node.arrive(&forged).ignored(), Ignored::WrongToken);
    assert_eq!(node.one().head(), (Type::Reset, Code::EMPTY, 77));
    assert_eq!(node.ep.open_exchanges(), 2);
    assert_eq!(queued, other);
    node.arrive(&sent.answer()).response_to(first);
}

#[test]
fn a_critical_option_of_requests_is_not_known_in_a_response() {
    for number in [1, 3, 5, 7, 11, 15, 17, 35, 39] {
        let value: &[u8] = if matches!(number, 3 | 35 | 39) { b"x" } else { b"" };
        let (mut node, exchange, sent) = open();
        let bad = message(
            Type::Acknowledgement,
            Code::CONTENT,
            sent.id(),
            &sent.token(),
            &[(number, value)],
            b"",
        );
        assert_eq!(node.arrive(&bad).ignored(), Ignored::UnknownCriticalOption, "{number}");
        assert_eq!(node.failures(), [(exchange, Failure::BadOption)], "RFC 7252 section 5.4");
    }
    for number in [23, 27] {
        let (mut node, _, sent) = open();
        let (id, token) = (sent.id(), sent.token());
        let good =
            message(Type::Acknowledgement, Code::CONTENT, id, &token, &[(number, &[8])], b"");
        node.arrive(&good);
        assert_eq!((node.failures(), node.ep.counters().bad_options), (vec![], 0), "{number}");
    }
}

#[test]
fn a_response_with_an_unknown_critical_option_is_rejected() {
    // 9 is critical and not assigned.
    let option: &[(u16, &[u8])] = &[(9, b"x")];
    let (mut node, exchange, sent) = open();
    let id = sent.id();
    let bad = message(Type::Acknowledgement, Code::CONTENT, id, &sent.token(), option, b"");
    assert_eq!(node.arrive(&bad).ignored(), Ignored::UnknownCriticalOption);
    assert!(node.take().is_empty(), "an acknowledgement is never answered");
    assert_eq!(node.failures(), [(exchange, Failure::BadOption)]);
    assert_eq!(node.ep.counters().bad_options, 1);
    node.assert_free();

    // Separate and Confirmable: rejected with a Reset (RFC 7252 sections 5.4.1 and 4.2).
    for acknowledged in [false, true] {
        let (mut node, exchange, sent) = open();
        if acknowledged {
            node.arrive(&sent.ack());
        }
        let bad = message(Type::Confirmable, Code::CONTENT, 77, &sent.token(), option, b"");
        assert_eq!(node.arrive(&bad).ignored(), Ignored::UnknownCriticalOption);
        assert_eq!(node.one().head(), (Type::Reset, Code::EMPTY, 77));
        assert_eq!(node.failures(), [(exchange, Failure::BadOption)]);
        node.assert_free();
        // Its duplicate is no better.
        node.arrive(&bad).ignored();
        assert_eq!(node.one().head(), (Type::Reset, Code::EMPTY, 77));
    }

    // Non-confirmable: in silence.
    let (mut node, exchange, sent) = open();
    let bad = message(Type::NonConfirmable, Code::CONTENT, 77, &sent.token(), option, b"");
    assert_eq!(node.arrive(&bad).ignored(), Ignored::UnknownCriticalOption);
    assert!(node.take().is_empty());
    assert_eq!(node.failures(), [(exchange, Failure::BadOption)]);
    node.assert_free();
}

#[test]
fn an_unknown_elective_option_in_a_response_is_ignored() {
    let (mut node, exchange, sent) = open();
    let option: &[(u16, &[u8])] = &[(10, b"x"), (65534, b"")];
    let id = sent.id();
    let odd = message(Type::Acknowledgement, Code::CONTENT, id, &sent.token(), option, b"");
    assert!(node.arrive(&odd).response_to(exchange).is_some());
}

#[test]
fn an_empty_acknowledgement_of_a_ping_ends_it_too() {
    let mut node = Node::under("default");
    let ping = node.ep.ping(node.now, PEER).unwrap();
    node.settle();
    let sent = node.one();
    assert_eq!(sent.bytes.len(), 4);
    match node.arrive(&sent.ack()) {
        Got::Acknowledged { exchange, .. } => assert_eq!(exchange, ping),
        other => panic!("{other:?}"),
    }
    node.assert_free();
}

#[test]
fn a_response_of_ours_ends_with_its_acknowledgement_or_reset() {
    for reset in [false, true] {
        let mut node = Node::under("default");
        let get = message(Type::Confirmable, Code::GET, 5, b"t", &[], b"");
        let mut incoming = node.arrive(&get).request();
        node.acknowledge(&mut incoming);
        let exchange = node.respond(&incoming, b"late").expect("an exchange of its own");
        let sent = node.take().pop().expect("sent");
        assert_eq!((sent.kind(), sent.token()), (Type::Confirmable, b"t".to_vec()));
        let datagram = if reset { sent.rst() } else { sent.ack() };
        match node.arrive(&datagram) {
            Got::Acknowledged { exchange: ended, .. } => {
                assert_eq!((ended, reset), (exchange, false))
            }
            Got::Reset { exchange: ended, .. } => assert_eq!((ended, reset), (exchange, true)),
            other => panic!("{other:?}"),
        }
        node.assert_free();
    }
}

#[test]
fn a_clock_that_jumps_back_stands_still() {
    let (mut node, exchange, sent) = open();
    node.now = crate::common::at(1.0);
    node.ep.handle_timeout(node.now);
    node.settle();
    assert_eq!(node.timeout, Some(crate::common::at(12.0)));
    let sample = node.arrive(&sent.answer()).response_to(exchange).expect("a sample");
    assert_eq!(crate::common::float(sample.since_first), 0.0);
    // What is sent now is timed from the latest time seen.
    node.get();
    assert_eq!(node.timeout, Some(crate::common::at(12.0)));
}

#[test]
fn the_clock_may_begin_and_end_anywhere() {
    for begin in [0, 1, u64::MAX - 3_000_000_000, u64::MAX] {
        for control in ["default", "cocoa", "fasor-token"] {
            let mut node = Node::under(control);
            node.now = ebbtide_core::time::Instant::from_nanos(begin);
            let exchange = node.get();
            node.non_get();
            node.non_get();
            let mut steps = 0;
            while let Some(due) = node.timeout {
                node.now = due;
                node.ep.handle_timeout(due);
                node.settle();
                steps += 1;
                assert!(steps < 100, "{control} from {begin}");
            }
            assert!(node.failures().contains(&(exchange, Failure::GaveUp)));
            node.assert_free();
        }
    }
}

#[test]
fn a_message_that_cannot_be_sent_is_an_error_and_changes_nothing() {
    use ebbtide_core::endpoint::SendError;
    let mut node = Node::under("default");
    let response = content(Code::CONTENT, b"");
    let wrong = node.try_request(PEER, &response, Reliability::Confirmable);
    assert_eq!(wrong, Err(SendError::WrongCode(Code::CONTENT)));
    // RFC 7252 section 4.6: 4 bytes of header, 8 for the token, the marker, the payload.
    let payload = vec![0; 1152 - 4 - 8];
    let long = node.try_request(PEER, &content(Code::PUT, &payload), Reliability::Confirmable);
    assert!(matches!(long, Err(SendError::TooLong { limit: 1152, .. })), "{long:?}");
    assert!(node.take().is_empty());
    node.assert_free();
    for error in [wrong.unwrap_err(), long.unwrap_err()] {
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn an_exchange_whose_transmissions_are_limited_gives_up_after_them() {
    let mut node = Node::under("default");
    let exchange = node.get();
    node.ep.limit_transmissions(exchange, 2);
    node.run_until(1000.0);
    assert_eq!(node.take().len(), 2);
    assert_eq!(node.failures(), [(exchange, Failure::GaveUp)]);
    node.assert_free();
    // The place is free of it.
    node.get();
    node.run_until(2000.0);
    assert_eq!(node.take().len(), 5);
}

#[test]
fn an_exchange_that_may_not_be_repeated_is_given_up_after_the_peers_time_to_process_it() {
    for control in ["ebb", "default"] {
        let mut node = Node::under(control);
        let exchange = node.get();
        node.ep.limit_transmissions(exchange, 1);
        node.wait(1.9);
        assert_eq!(node.failures(), [], "{control}: PROCESSING_DELAY is not over");
        node.wait(60.0);
        assert_eq!(node.take().len(), 1, "{control}: neither a probe nor a copy");
        assert_eq!(node.failures(), [(exchange, Failure::GaveUp)], "{control}");
        node.assert_free();
    }
}
