//! Requests to groups: asked by us, and arriving here (RFC 7252 section 8).

use crate::common::node::{Got, Node, config, content, message, peer};
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::{Arrival, Ignored, Reliability, Remember};
use ebbtide_core::wire::{Code, MessageId, Type};

const GROUP: &str = "224.0.1.187:5683";

/// A critical option that nobody knows.
const UNKNOWN: (u16, &[u8]) = (65_001, b"x");

fn group() -> PeerId {
    PeerId::Address(GROUP.parse().unwrap())
}

/// A member's answer to a request with this token.
fn answer(id: u16, token: &[u8], options: &[(u16, &[u8])]) -> Vec<u8> {
    message(Type::NonConfirmable, Code::CONTENT, id, token, options, b"21.0")
}

#[test]
fn the_message_id_of_a_group_request_is_that_of_no_open_exchange() {
    // All message IDs begin at the same place.
    let mut node = Node::under("default");
    node.try_request(peer(1), &content(Code::GET, b""), Reliability::Confirmable).unwrap();
    let open = node.one();
    node.try_request(group(), &content(Code::GET, b""), Reliability::NonConfirmable).unwrap();
    let asked = node.one();
    assert_eq!((open.kind(), asked.kind()), (Type::Confirmable, Type::NonConfirmable));
    // A member that does not know that the request came to a group may reset it.
    assert_ne!(asked.id(), open.id());
    let reset = message(Type::Reset, Code::EMPTY, asked.id(), b"", &[], b"");
    node.arrive_from(peer(1), &reset);
    assert!(node.failed.is_empty(), "{:?}", node.failed);
}

/// A datagram that was sent to a group which this endpoint is in.
fn arrive(node: &mut Node, bytes: &[u8]) -> Got {
    let arrival = Arrival { from: peer(9), to_group: true, ..peer(9).into() };
    let got = node.ep.receive(node.now, arrival, bytes, |_, _| Remember::Yes).into();
    node.settle();
    got
}

#[test]
fn one_members_unknown_critical_option_does_not_end_the_request_for_the_others() {
    let mut node = Node::under("default");
    node.try_request(group(), &content(Code::GET, b""), Reliability::NonConfirmable).unwrap();
    let token = node.one().token();
    let is_answer = |got| matches!(got, Got::Notification { .. });
    assert!(is_answer(node.arrive_from(peer(1), &answer(1, &token, &[]))));
    let bad = node.arrive_from(peer(2), &answer(2, &token, &[UNKNOWN]));
    assert_eq!(bad.ignored(), Ignored::UnknownCriticalOption);
    assert!(is_answer(node.arrive_from(peer(3), &answer(3, &token, &[]))));
    assert!(node.failed.is_empty(), "{:?}", node.failed);
    assert_eq!(node.ep.counters().bad_options, 1);
}

#[test]
fn one_blocks_unknown_critical_option_does_not_end_the_request_for_the_others() {
    let mut node = Node::new(config("default"));
    let exchange = node.ep.request_block(node.now, peer(2), &content(Code::GET, b"")).unwrap();
    node.settle();
    let token = node.one().token();
    let bad = node.arrive(&answer(1, &token, &[UNKNOWN]));
    assert_eq!(bad.ignored(), Ignored::UnknownCriticalOption);
    match node.arrive(&answer(2, &token, &[])) {
        Got::Notification { exchange: of, .. } => assert_eq!(of, exchange),
        other => panic!("{other:?}"),
    }
    assert!(node.failed.is_empty());
}

#[test]
fn nothing_that_came_to_a_group_is_rejected() {
    let mut node = Node::under("default");
    // A token length of 9 is a format error; an empty Confirmable message is a ping.
    let malformed = [0x49, 0x01, 0x12, 0x34];
    assert_eq!(arrive(&mut node, &malformed).ignored(), Ignored::Malformed);
    let ping = message(Type::Confirmable, Code::EMPTY, 7, b"", &[], b"");
    assert_eq!(arrive(&mut node, &ping).ignored(), Ignored::Ping);
    let unknown = message(Type::Confirmable, Code::GET, 8, b"t", &[UNKNOWN], b"");
    assert_eq!(arrive(&mut node, &unknown).ignored(), Ignored::UnknownCriticalOption);
    let response = message(Type::Confirmable, Code::CONTENT, 9, b"t", &[], b"");
    assert_eq!(arrive(&mut node, &response).ignored(), Ignored::UnknownExchange);
    assert!(node.take().is_empty(), "a thousand members would answer at once");
    let counters = node.ep.counters();
    assert_eq!((counters.malformed, counters.pings, counters.bad_options), (1, 1, 1));
    // The same to this endpoint alone is rejected.
    node.arrive(&malformed);
    node.arrive(&ping);
    node.arrive(&unknown);
    let kinds: Vec<Type> = node.take().iter().map(crate::common::node::Datagram::kind).collect();
    assert_eq!(kinds, [Type::Reset, Type::Reset, Type::Acknowledgement]);
}

#[test]
fn an_answer_to_our_own_message_that_came_by_multicast_is_ignored() {
    let mut node = Node::under("default");
    node.get();
    let sent = node.one();
    for bytes in [sent.answer(), sent.ack(), sent.rst()] {
        assert_eq!(arrive(&mut node, &bytes).ignored(), Ignored::UnknownExchange);
    }
    assert_eq!(node.ep.open_exchanges(), 1);
}

#[test]
fn a_group_request_is_delivered_as_one_and_its_duplicate_is_not_answered_again() {
    let mut node = Node::under("default");
    let post = message(Type::NonConfirmable, Code::POST, 5, b"t", &[], b"on");
    let incoming = arrive(&mut node, &post).request();
    assert!(incoming.is_to_group() && !incoming.is_idempotent());
    node.respond(&incoming, b"done");
    assert_eq!(node.take().len(), 1);
    assert_eq!(arrive(&mut node, &post).ignored(), Ignored::DuplicateRequest);
    assert!(node.take().is_empty(), "it would not wait for its leisure");
}

#[test]
fn a_full_memory_refuses_no_group_aloud() {
    let mut full = config("default");
    full.limits.remembered_messages = 0;
    let mut node = Node::new(full);
    let post = message(Type::Confirmable, Code::POST, 5, b"t", &[], b"on");
    assert_eq!(arrive(&mut node, &post).ignored(), Ignored::NoRoom);
    assert!(node.take().is_empty());
}

#[test]
fn the_application_sees_a_request_before_it_is_remembered() {
    let mut node = Node::under("default");
    let post = message(Type::Confirmable, Code::POST, 5, b"t", &[], b"on");
    let from = peer(9);
    // A stranger is challenged, and nothing is kept of what it asked.
    for _ in 0..3 {
        let got = node.ep.receive(node.now, from.into(), &post, |incoming, message| {
            assert_eq!((incoming.remote, message.payload()), (from, &b"on"[..]));
            Remember::No
        });
        let incoming = Got::from(got).request();
        assert_eq!(node.ep.remembered(), 0);
        let challenge = content(Code::UNAUTHORIZED, b"");
        node.ep.respond(node.now, &incoming, &challenge).unwrap();
        node.settle();
        assert_eq!(node.one().head(), (Type::Acknowledgement, Code::UNAUTHORIZED, 5));
    }
    assert_eq!(node.ep.counters().unstored, 0);
    // When it has shown that it is there it is a new request, and remembered.
    let got =
        Got::from(node.ep.receive(node.now, from.into(), &post, |_, _| Remember::Yes)).request();
    node.respond(&got, b"done");
    assert_eq!(node.ep.remembered(), 1);
    assert!(node.ep.is_remembered(node.now, from, MessageId(5)));
    let mut asked = false;
    let again = node.ep.receive(node.now, from.into(), &post, |_, _| {
        asked = true;
        Remember::Yes
    });
    assert_eq!(Got::from(again).ignored(), Ignored::DuplicateRequest);
    assert!(!asked, "a duplicate is known already");
    // What may be done twice is never asked about.
    let get = message(Type::Confirmable, Code::GET, 6, b"t", &[], b"");
    let got = node.ep.receive(node.now, from.into(), &get, |_, _| panic!("asked"));
    assert!(matches!(Got::from(got), Got::Request(_)));
}

#[test]
fn a_source_that_fills_the_memory_is_refused_and_others_are_not() {
    let mut small = config("default");
    small.limits.remembered_messages = 1000;
    let mut node = Node::new(small);
    let post = |id| message(Type::Confirmable, Code::POST, id, b"t", &[], b"on");
    let taken = (0..2000)
        .filter(|&id| matches!(node.arrive_from(peer(1), &post(id)), Got::Request(_)))
        .count();
    assert_eq!(taken, 500);
    for client in 2..100 {
        let got = node.arrive_from(peer(client), &post(1));
        assert!(matches!(got, Got::Request(_)), "client {client}: {got:?}");
    }
    assert_eq!(node.arrive_from(peer(1), &post(3000)).ignored(), Ignored::NoRoom);
}

#[test]
fn proxy_options_reach_the_application() {
    let mut node = Node::under("default");
    for (number, value) in [(35, &b"coap://example.com/"[..]), (39, &b"coap"[..])] {
        let get = message(Type::Confirmable, Code::GET, number, b"t", &[(number, value)], b"");
        let mut seen = None;
        if let ebbtide_core::endpoint::Received::Request(_, message) =
            node.ep.handle_datagram(node.now, peer(9), &get)
        {
            let option = message.option(ebbtide_core::wire::OptionNumber(number));
            seen = option.map(|option| option.value.to_vec());
        }
        assert_eq!(seen.as_deref(), Some(value), "5.05 is for the application to say");
    }
}
