//! Requests that arrive: duplicates, what is remembered of them, options, malformed datagrams.

use crate::common::node::{COUNT, Node, PEER, config, content, message, peer};
use ebbtide_core::endpoint::{EndpointConfig, Ignored, SendError};
use ebbtide_core::wire::{Code, OptionNumber, Type};

fn request(kind: Type, code: Code, id: u16, token: &[u8]) -> Vec<u8> {
    message(kind, code, id, token, &[], b"")
}

fn con(code: Code, id: u16, token: &[u8]) -> Vec<u8> {
    request(Type::Confirmable, code, id, token)
}

#[test]
fn a_request_says_what_it_is() {
    let mut node = Node::under("default");
    let incoming = node.arrive(&con(Code::PUT, 5, b"tok")).request();
    assert_eq!((incoming.remote, incoming.id.0, incoming.code), (PEER, 5, Code::PUT));
    assert_eq!((incoming.token.as_slice(), incoming.kind), (&b"tok"[..], Type::Confirmable));
    assert!(node.take().is_empty(), "nothing is sent before the application answers");
}

#[test]
fn the_duplicate_of_a_post_gets_the_stored_response_with_its_own_token() {
    let mut node = Node::under("default");
    let incoming = node.arrive(&con(Code::POST, 5, b"\x00abc")).request();
    node.respond(&incoming, b"done");
    let first = node.one();
    assert_eq!(first.head(), (Type::Acknowledgement, Code::CONTENT, 5));
    // A retransmission with a marked token.
    let again = node.arrive(&con(Code::POST, 5, b"\x01abc"));
    assert_eq!(again.ignored(), Ignored::DuplicateRequest);
    let second = node.one();
    assert_eq!(second.head(), (Type::Acknowledgement, Code::CONTENT, 5));
    assert_eq!((second.token(), second.message().payload()), (b"\x01abc".to_vec(), &b"done"[..]));
    // And one without a token.
    node.arrive(&con(Code::POST, 5, b""));
    assert_eq!(node.one().token(), b"");
    assert_eq!(node.ep.counters().duplicates, 2);
}

#[test]
fn the_duplicate_of_a_post_in_the_works_gets_nothing_yet() {
    let mut node = Node::under("default");
    let incoming = node.arrive(&con(Code::POST, 5, b"t")).request();
    assert_eq!(node.arrive(&con(Code::POST, 5, b"t")).ignored(), Ignored::DuplicateRequest);
    assert!(node.take().is_empty());
    node.respond(&incoming, b"done");
    assert_eq!(node.take().len(), 1);
}

#[test]
fn idempotent_requests_are_delivered_again_and_cost_no_memory() {
    for code in [Code::GET, Code::PUT, Code::DELETE, Code::FETCH, Code::IPATCH] {
        let mut node = Node::under("default");
        for _ in 0..3 {
            let incoming = node.arrive(&con(code, 5, b"t")).request();
            node.respond(&incoming, b"fresh");
            assert_eq!(node.take().len(), 1);
        }
        assert_eq!((node.ep.remembered(), node.ep.counters().duplicates), (0, 0), "{code}");
    }
}

#[test]
fn a_request_that_may_not_be_idempotent_is_remembered() {
    for code in [Code::POST, Code::PATCH, Code(0x1f)] {
        let mut node = Node::under("default");
        node.arrive(&con(code, 5, b"t")).request();
        assert_eq!(node.ep.remembered(), 1, "{code}");
        assert_eq!(node.arrive(&con(code, 5, b"t")).ignored(), Ignored::DuplicateRequest);
    }
}

#[test]
fn a_change_under_a_condition_is_made_once_and_its_duplicate_gets_the_answer_again() {
    let (matches, absent) = (OptionNumber::IF_MATCH, OptionNumber::IF_NONE_MATCH);
    for code in [Code::PUT, Code::DELETE, Code::IPATCH] {
        for condition in [matches, absent] {
            let mut node = Node::under("default");
            let options = [(condition.0, &b""[..])];
            let put = message(Type::Confirmable, code, 5, b"t", &options, b"new");
            let incoming = node.arrive(&put).request();
            node.respond(&incoming, b"done");
            node.take();
            // The condition no longer holds: it must not be judged again.
            assert_eq!(node.arrive(&put).ignored(), Ignored::DuplicateRequest, "{code}");
            assert_eq!(node.one().message().payload(), b"done", "{code}");
        }
    }
    let mut node = Node::under("default");
    let options = [(matches.0, &b"x"[..])];
    node.arrive(&message(Type::Confirmable, Code::GET, 5, b"t", &options, b"")).request();
    assert_eq!(node.ep.remembered(), 0, "what changes nothing may be done twice");
}

#[test]
fn a_slow_request_is_acknowledged_again_whatever_its_method() {
    for code in [Code::GET, Code::POST] {
        let mut node = Node::under("default");
        let mut incoming = node.arrive(&con(code, 5, b"t")).request();
        node.acknowledge(&mut incoming);
        assert_eq!(node.one().head(), (Type::Acknowledgement, Code::EMPTY, 5));
        node.acknowledge(&mut incoming);
        assert!(node.take().is_empty(), "once is enough");
        assert_eq!(node.arrive(&con(code, 5, b"t")).ignored(), Ignored::DuplicateRequest);
        assert_eq!(node.one().head(), (Type::Acknowledgement, Code::EMPTY, 5));
        // Even after the separate response has left.
        node.respond(&incoming, b"late");
        assert_eq!(node.one().kind(), Type::Confirmable);
        assert_eq!(node.arrive(&con(code, 5, b"t")).ignored(), Ignored::DuplicateRequest);
        assert_eq!(node.one().head(), (Type::Acknowledgement, Code::EMPTY, 5));
    }
}

#[test]
fn an_acknowledgement_of_a_separate_response_counts_whatever_it_carries() {
    let option: &[(u16, &[u8])] = &[(65001, b"")];
    for (code, token, options, payload) in [
        (Code::EMPTY, &b""[..], &[][..], &b""[..]),
        (Code::CONTENT, b"t", &[], b"thanks"),
        (Code::BAD_REQUEST, b"another", option, b""),
    ] {
        let mut node = Node::under("default");
        let mut incoming = node.arrive(&con(Code::GET, 5, b"t")).request();
        node.acknowledge(&mut incoming);
        node.take();
        node.respond(&incoming, b"late");
        let id = node.one().id();
        let acknowledged = message(Type::Acknowledgement, code, id, token, options, payload);
        node.arrive(&acknowledged);
        assert_eq!(node.ep.open_exchanges(), 0, "{code:?}");
        node.run_until(200.0);
        assert!(node.take().is_empty(), "it is not repeated (RFC 7252 section 5.2.2)");
    }
}

#[test]
fn a_copy_of_a_request_that_is_answered_later_is_a_duplicate_whatever_its_method_until_it_is_answered()
 {
    for kind in [Type::Confirmable, Type::NonConfirmable] {
        for code in [Code::GET, Code::PUT, Code::POST] {
            let mut node = Node::under("default");
            let copy = request(kind, code, 5, b"t");
            let mut incoming = node.arrive(&copy).request();
            node.ep.defer(node.now, &mut incoming);
            for _ in 0..3 {
                assert_eq!(node.arrive(&copy).ignored(), Ignored::DuplicateRequest, "{code}");
            }
            assert!(node.take().is_empty(), "its answer is still to come");
            // Another message, and the same one of another client, are requests of their own.
            node.arrive(&request(kind, code, 6, b"t")).request();
            node.arrive_from(peer(3), &copy).request();
            node.respond(&incoming, b"late");
            assert_eq!(node.one().message().payload(), b"late");
            assert_eq!((node.ep.deferred(), node.ep.counters().duplicates), (0, 3));
            // From now on the rules are those of a request that was answered at once.
            match code {
                Code::POST => drop(node.arrive(&copy).ignored()),
                _ => drop(node.arrive(&copy).request()),
            }
        }
    }
}

#[test]
fn a_deferred_request_that_is_acknowledged_rejected_or_dismissed_holds_no_place_in_the_end() {
    let mut node = Node::under("default");
    let mut incoming = node.arrive(&con(Code::GET, 1, b"a")).request();
    node.ep.defer(node.now, &mut incoming);
    node.acknowledge(&mut incoming);
    assert_eq!(node.arrive(&con(Code::GET, 1, b"a")).ignored(), Ignored::DuplicateRequest);
    let heads: Vec<_> = node.take().iter().map(crate::common::node::Datagram::head).collect();
    assert_eq!(heads, [(Type::Acknowledgement, Code::EMPTY, 1); 2], "acknowledged again");
    node.respond(&incoming, b"late");
    assert_eq!((node.ep.deferred(), node.one().kind()), (0, Type::Confirmable));
    for (id, kind) in [(2, Type::Confirmable), (3, Type::NonConfirmable)] {
        let mut incoming = node.arrive(&request(kind, Code::GET, id, b"b")).request();
        node.ep.defer(node.now, &mut incoming);
        node.ep.dismiss(node.now, &incoming);
        node.settle();
        let acknowledgements = usize::from(kind == Type::Confirmable);
        assert_eq!((node.ep.deferred(), node.take().len()), (0, acknowledgements), "{kind:?}");
    }
    let mut incoming = node.arrive(&con(Code::GET, 4, b"c")).request();
    node.ep.defer(node.now, &mut incoming);
    node.ep.reset(&incoming);
    assert_eq!(node.ep.deferred(), 0);
}

#[test]
fn the_memory_for_deferred_requests_is_bounded_and_beyond_it_copies_are_processed_again() {
    let mut config = config("default");
    config.limits.deferred_requests = 1;
    let mut node = Node::new(config);
    let (first, second) = (con(Code::GET, 1, b"t"), con(Code::GET, 2, b"t"));
    for get in [&first, &second] {
        let mut incoming = node.arrive(get).request();
        node.ep.defer(node.now, &mut incoming);
    }
    assert_eq!((node.ep.deferred(), node.ep.counters().unstored), (1, 1));
    assert_eq!(node.arrive(&first).ignored(), Ignored::DuplicateRequest);
    node.arrive(&second).request();
    // A request that is never answered holds its place no longer than its message ID.
    node.wait(247.0);
    let mut incoming = node.arrive(&second).request();
    node.ep.defer(node.now, &mut incoming);
    assert_eq!(node.arrive(&second).ignored(), Ignored::DuplicateRequest);
    node.arrive(&first).request();
}

#[test]
fn a_message_id_is_a_new_request_after_exchange_lifetime_and_from_another_peer() {
    let mut node = Node::under("default");
    let post = con(Code::POST, 5, b"t");
    node.arrive(&post).request();
    node.arrive_from(peer(3), &post).request();
    node.wait(246.9);
    assert_eq!(node.arrive(&post).ignored(), Ignored::DuplicateRequest);
    node.wait(0.1);
    node.arrive(&post).request();
}

#[test]
fn a_non_confirmable_request_is_answered_non_confirmable_with_an_id_of_our_own() {
    let mut node = Node::under("default");
    let post = request(Type::NonConfirmable, Code::POST, 5, b"t");
    let mut incoming = node.arrive(&post).request();
    node.acknowledge(&mut incoming);
    assert!(node.take().is_empty(), "there is nothing to acknowledge");
    assert_eq!(node.respond(&incoming, b"done"), None);
    let sent = node.one();
    assert_eq!((sent.kind(), sent.code()), (Type::NonConfirmable, Code::CONTENT));
    assert_eq!(sent.token(), b"t");
    // Its duplicate gets the response again.
    assert_eq!(node.arrive(&post).ignored(), Ignored::DuplicateRequest);
    assert_eq!(node.one().kind(), Type::NonConfirmable);
}

#[test]
fn the_memory_for_duplicates_is_bounded_and_who_does_not_fit_gets_5_03() {
    let mut config = config("default");
    config.limits.remembered_messages = 4;
    let mut node = Node::new(config);
    for id in 1..=2 {
        let incoming = node.arrive(&con(Code::POST, id, b"t")).request();
        node.respond(&incoming, b"done");
    }
    node.take();
    assert_eq!(node.arrive(&con(Code::POST, 3, b"tok")).ignored(), Ignored::NoRoom);
    let refusal = node.one();
    assert_eq!(refusal.head(), (Type::Acknowledgement, Code::SERVICE_UNAVAILABLE, 3));
    assert_eq!(refusal.token(), b"tok");
    // A Non-confirmable one is ignored.
    let non = request(Type::NonConfirmable, Code::POST, 4, b"t");
    assert_eq!(node.arrive(&non).ignored(), Ignored::NoRoom);
    assert!(node.take().is_empty());
    assert_eq!((node.ep.counters().refused, node.ep.remembered()), (2, 2));
    // A GET needs no room, and later there is room again.
    node.arrive(&con(Code::GET, 6, b"t")).request();
    node.wait(247.0);
    node.arrive(&con(Code::POST, 3, b"tok")).request();
}

#[test]
fn idempotent_requests_that_are_only_acknowledged_leave_half_of_the_memory_to_others() {
    let mut config = config("default");
    config.limits.remembered_messages = 100;
    let mut node = Node::new(config);
    for n in 0..200_u8 {
        let get = con(Code::GET, n.into(), b"t");
        let incoming = node.arrive_from(peer(n), &get).request();
        node.ep.dismiss(node.now, &incoming);
        node.settle();
        assert_eq!(node.one().head(), (Type::Acknowledgement, Code::EMPTY, n.into()));
    }
    assert_eq!((node.ep.remembered(), node.ep.counters().unstored), (50, 150));
    // The same request again is processed again, and one that must not be is remembered.
    node.arrive_from(peer(199), &con(Code::GET, 199, b"t")).request();
    node.arrive_from(peer(199), &con(Code::POST, 7, b"t")).request();
    assert_eq!(node.ep.remembered(), 51);
}

#[test]
fn a_response_without_room_is_counted_and_its_duplicates_get_nothing() {
    let mut config = config("default");
    config.limits.remembered_bytes = 10;
    let mut node = Node::new(config);
    let incoming = node.arrive(&con(Code::POST, 5, b"t")).request();
    node.respond(&incoming, b"more than ten bytes");
    assert_eq!(node.take().len(), 1);
    assert_eq!(node.ep.counters().unstored, 1);
    assert_eq!(node.arrive(&con(Code::POST, 5, b"t")).ignored(), Ignored::DuplicateRequest);
    assert!(node.take().is_empty());
}

#[test]
fn an_unknown_critical_option_makes_a_confirmable_request_4_02() {
    for (options, name) in [
        (&[(9, &b"x"[..])][..], "not assigned"),
        (&[(65001, b"")], "experimental"),
        (&[(17, b"\x00\x00\x00")], "Accept, too long"),
        (&[(17, b""), (17, b"")], "Accept, twice"),
    ] {
        let mut node = Node::under("default");
        for code in [Code::GET, Code::POST] {
            let bad = message(Type::Confirmable, code, 5, b"t", options, b"");
            assert_eq!(node.arrive(&bad).ignored(), Ignored::UnknownCriticalOption, "{name}");
            let sent = node.one();
            assert_eq!(sent.head(), (Type::Acknowledgement, Code::BAD_OPTION, 5));
            assert_eq!(sent.token(), b"t");
            let diagnostic = format!("option {}", options[0].0);
            assert_eq!(sent.message().payload(), diagnostic.as_bytes());
            assert!(sent.bytes.len() <= 3 * bad.len(), "{name}");
            let bad = message(Type::NonConfirmable, code, 6, b"t", options, b"");
            assert_eq!(node.arrive(&bad).ignored(), Ignored::UnknownCriticalOption);
            assert!(node.take().is_empty(), "rejected in silence (RFC 7252 section 4.3)");
        }
        assert_eq!(node.ep.counters().bad_options, 4);
    }
}

#[test]
fn unknown_elective_options_are_ignored() {
    let mut node = Node::under("default");
    // Unassigned; and Max-Age of an impossible length, which is treated as unknown.
    let options: &[(u16, &[u8])] = &[(10, b"x"), (14, b"12345"), (65534, b"")];
    node.arrive(&message(Type::Confirmable, Code::GET, 5, b"t", options, b"")).request();
    assert_eq!(node.ep.counters().bad_options, 0);
}

#[test]
fn the_count_of_retransmissions_is_echoed_on_the_acknowledgement_only() {
    let mut node = Node::under("default");
    for (value, echo) in [(&b""[..], &b""[..]), (b"\x03", b"\x03"), (b"\xff", b"\xff")] {
        let options: &[(u16, &[u8])] = &[(COUNT, value)];
        let get = message(Type::Confirmable, Code::GET, 5, b"t", options, b"");
        let incoming = node.arrive(&get).request();
        node.respond(&incoming, b"x");
        assert_eq!(node.one().option(COUNT).as_deref(), Some(echo));
        let get = message(Type::NonConfirmable, Code::GET, 6, b"t", options, b"");
        let incoming = node.arrive(&get).request();
        node.respond(&incoming, b"x");
        assert_eq!(node.one().option(COUNT), None);
        let get = message(Type::Confirmable, Code::GET, 7, b"t", options, b"");
        let mut incoming = node.arrive(&get).request();
        node.acknowledge(&mut incoming);
        assert_eq!(node.one().bytes.len(), 4);
        let exchange = node.respond(&incoming, b"x").expect("separate");
        assert_eq!(node.one().option(COUNT), None);
        node.cancel(exchange);
        node.wait(300.0);
    }
    // Who did not ask gets none.
    let incoming = node.arrive(&con(Code::GET, 8, b"t")).request();
    node.respond(&incoming, b"x");
    assert_eq!(node.one().option(COUNT), None);
}

#[test]
fn the_duplicate_of_a_post_is_answered_with_its_own_count() {
    let mut node = Node::under("default");
    let post =
        |count: &[u8]| message(Type::Confirmable, Code::POST, 5, b"t", &[(COUNT, count)], b"");
    let incoming = node.arrive(&post(b"")).request();
    node.respond(&incoming, b"done");
    assert_eq!(node.one().option(COUNT).as_deref(), Some(&b""[..]));
    node.arrive(&post(b"\x02")).ignored();
    let sent = node.one();
    assert_eq!(sent.option(COUNT).as_deref(), Some(&b"\x02"[..]));
    assert_eq!(sent.message().payload(), b"done");
}

#[test]
fn a_response_must_be_one_and_must_fit() {
    let mut node = Node::under("default");
    let incoming = node.arrive(&con(Code::GET, 5, b"t")).request();
    let wrong = node.ep.respond(node.now, &incoming, &content(Code::GET, b""));
    assert_eq!(wrong, Err(SendError::WrongCode(Code::GET)));
    let payload = vec![0; 1300];
    let long = node.ep.respond(node.now, &incoming, &content(Code::CONTENT, &payload));
    assert!(matches!(long, Err(SendError::TooLong { .. })), "{long:?}");
    // It can still be answered.
    node.respond(&incoming, b"short");
    assert_eq!(node.take().len(), 1);
}

#[test]
fn the_application_can_reset() {
    let mut node = Node::under("default");
    let incoming = node.arrive(&con(Code::GET, 5, b"t")).request();
    node.ep.reset(&incoming);
    node.settle();
    assert_eq!(node.one().head(), (Type::Reset, Code::EMPTY, 5));
}

#[test]
fn a_driver_that_does_not_fetch_gets_an_error_and_nothing_grows() {
    let mut config = config("default");
    config.limits.outbox_bytes = 64;
    let mut node = Node::new(config);
    let incoming = node.arrive(&con(Code::GET, 5, b"t")).request();
    let answer = content(Code::CONTENT, b"0123456789012345678901234567890123456789");
    let results: Vec<_> = (0..4).map(|_| node.ep.respond(node.now, &incoming, &answer)).collect();
    assert_eq!(results[0], Ok(None));
    assert_eq!(results[3], Err(SendError::OutboxFull));
    assert!(node.ep.counters().outbox_full > 0);
    node.settle();
    assert_eq!(node.ep.respond(node.now, &incoming, &answer), Ok(None));
}

/// A datagram, and whether it is answered with a Reset.
fn malformed() -> Vec<(&'static str, Vec<u8>, bool)> {
    let mut all: Vec<(&'static str, Vec<u8>, bool)> = vec![
        ("nothing", vec![], false),
        ("less than a header", vec![0x40, 0x01, 0x12], false),
        ("version 0", vec![0x00, 0x01, 0x12, 0x34], false),
        ("version 2", vec![0x80, 0x01, 0x12, 0x34], false),
        ("version 3", vec![0xc0, 0x01, 0x12, 0x34], false),
    ];
    let bodies: [(&'static str, u8, u8, &[u8]); 14] = [
        ("token length 9", 9, 0x01, &[0; 20]),
        ("token length 15", 15, 0x01, &[0; 20]),
        ("token cut off", 4, 0x01, &[1, 2]),
        ("delta 15", 0, 0x01, &[0xf0]),
        ("length 15", 0, 0x01, &[0x0f]),
        ("option cut off", 0, 0x01, &[0xb5, b'a']),
        ("extended delta cut off", 0, 0x01, &[0xd0]),
        ("extended length cut off", 0, 0x01, &[0xbe, 0]),
        ("number beyond 65535", 0, 0x01, &[0xe0, 0xff, 0xff]),
        ("marker without payload", 0, 0x01, &[0xff]),
        ("reserved class 1", 0, 0x21, &[]),
        ("reserved class 6", 0, 0xc1, &[]),
        ("signaling over UDP", 0, 0xe1, &[]),
        ("empty with a token", 1, 0x00, &[7]),
    ];
    for (name, token_length, code, rest) in bodies {
        for kind in 0..4u8 {
            let first = 0x40 | kind << 4 | token_length;
            let bytes = [&[first, code, 0x12, 0x34], rest].concat();
            // Only a Confirmable message is answered (RFC 7252 sections 4.2 and 4.3).
            all.push((name, bytes, kind == 0));
        }
    }
    all.push(("empty with a payload", vec![0x40, 0x00, 0x12, 0x34, 0xff, 1], true));
    all.push(("an acknowledgement with a request", vec![0x60, 0x01, 0x12, 0x34], false));
    all.push(("a reset that is not empty", vec![0x70, 0x45, 0x12, 0x34], false));
    all.push(("an empty NON", vec![0x50, 0x00, 0x12, 0x34], false));
    all
}

#[test]
fn malformed_datagrams_are_rejected_or_ignored_and_always_counted() {
    let mut node = Node::new(EndpointConfig::default());
    for (count, (name, datagram, reset)) in malformed().into_iter().enumerate() {
        assert_eq!(node.arrive(&datagram).ignored(), Ignored::Malformed, "{name}");
        assert_eq!(node.ep.counters().malformed, count as u64 + 1, "{name}");
        let sent = node.take();
        assert_eq!(sent.len(), usize::from(reset), "{name}: {datagram:02x?} {sent:?}");
        if reset {
            assert_eq!(sent[0].head(), (Type::Reset, Code::EMPTY, 0x1234), "{name}");
        }
    }
    assert_eq!((node.ep.peers(), node.ep.remembered()), (0, 0), "nothing is kept of them");
    node.assert_free();
}

#[test]
fn acknowledgements_and_resets_of_nothing_are_never_answered() {
    let mut node = Node::new(EndpointConfig::default());
    for kind in [Type::Acknowledgement, Type::Reset] {
        let datagram = message(kind, Code::EMPTY, 5, b"", &[], b"");
        assert_eq!(node.arrive(&datagram).ignored(), Ignored::UnknownExchange);
    }
    let datagram = message(Type::Acknowledgement, Code::CONTENT, 5, b"t", &[], b"x");
    assert_eq!(node.arrive(&datagram).ignored(), Ignored::UnknownExchange);
    let datagram = message(Type::NonConfirmable, Code::CONTENT, 5, b"t", &[], b"x");
    assert_eq!(node.arrive(&datagram).ignored(), Ignored::UnknownExchange);
    assert!(node.take().is_empty());
    assert_eq!(node.ep.counters().unknown_answers, 4);
    let datagram = message(Type::Confirmable, Code::CONTENT, 5, b"t", &[], b"x");
    assert_eq!(node.arrive(&datagram).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.one().head(), (Type::Reset, Code::EMPTY, 5));
}
