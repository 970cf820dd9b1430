//! Explicit congestion notification: an answer that the path has marked slows its receiver down, as RFC 3168
//! section 6.1.2 asks of a sender whose window is one message.

use crate::common::at;
use crate::common::node::{Datagram, Got, Node, PEER, message, peer};
use crate::common::receiver::Burst;
use ebbtide_core::cc::Algorithm;
use ebbtide_core::endpoint::{Arrival, Reliability, Remember};
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber, Type};

/// A datagram arrives with the mark Congestion Experienced.
fn arrive_marked(node: &mut Node, bytes: &[u8]) -> Got {
    let arrival = Arrival { congestion_experienced: true, ..PEER.into() };
    let got = node.ep.receive(node.now, arrival, bytes, |_, _| Remember::Yes).into();
    node.settle();
    got
}

/// The instants at which what was sent left, s.
fn instants(sent: &[Datagram]) -> Vec<f64> {
    sent.iter().map(|own| own.at.as_nanos() as f64 / 1e9).collect()
}

/// A request at 10 s whose answer came at this instant and was marked or not; when the next request left, which
/// the application made at once.
fn next_after_answer(control: &str, answered: f64, is_marked: bool) -> f64 {
    let mut node = Node::under(control);
    node.get();
    let first = node.one();
    node.run_until(answered);
    // Copies, and probes.
    node.take();
    if is_marked {
        arrive_marked(&mut node, &first.answer());
    } else {
        node.arrive(&first.answer());
    }
    node.get();
    node.run_until(30.0);
    let sent = node.take();
    sent.iter()
        .find(|own| !own.is_probe())
        .map(|own| instants(std::slice::from_ref(own))[0])
        .unwrap()
}

fn next_after(control: &str, is_marked: bool) -> f64 {
    next_after_answer(control, 10.5, is_marked)
}

#[test]
fn after_a_marked_answer_the_next_request_waits_for_the_retransmission_timeout() {
    // RFC 7252's control knows no round trip: its timeout is ACK_TIMEOUT, 2 s.
    assert_eq!(next_after("default", true), 12.5);
    assert_eq!(next_after("default:ack-timeout=4s", true), 14.5);
    // RFC 6298 after one sample of 0.5 s: SRTT + 4 RTTVAR = 1.5 s.
    assert_eq!(next_after("linux-rto", true), 12.0);
    // eCoAP's longest first timeout is twice its average: nine tenths of 2 s, and a tenth of the round trip.
    assert_eq!(next_after("ecoap", true), 14.2);
    for control in ["cocoa", "fasor", "fasor-token", "ebb", "peak-hopper"] {
        let wait = next_after(control, true) - 10.5;
        assert!((0.5..=3.0).contains(&wait), "{control}: {wait} s, a round trip takes 0.5 s");
    }
}

#[test]
fn after_a_marked_answer_of_a_short_path_the_floor_of_the_timeout_holds() {
    for (control, floor) in
        [("rfc6298", 1.0), ("linux-rto", 1.0), ("peak-hopper", 1.0), ("basic-rto", 0.5)]
    {
        assert_eq!(next_after_answer(control, 10.1, true), 10.1 + floor, "{control}");
    }
}

#[test]
fn after_a_marked_answer_to_a_copy_the_timeout_that_is_kept_holds() {
    // The answer comes while the doubled first timeout runs, which is the next first timeout.
    for (control, doubled) in [("rfc6298", 2.0), ("linux-rto", 4.0), ("cocoa-fb1", 4.0)] {
        assert_eq!(next_after_answer(control, 12.5, true), 12.5 + doubled, "{control}");
    }
    // One and a half times the 2.7 s since the original left.
    assert_eq!(next_after_answer("slow", 12.7, true), 12.7 + 4.05);
}

#[test]
fn without_a_mark_the_next_request_leaves_at_once() {
    for control in ["default", "linux-rto", "cocoa", "fasor", "fasor-token", "ebb"] {
        assert_eq!(next_after(control, false), 10.5, "{control}");
    }
}

#[test]
fn the_marks_of_one_round_trip_count_once() {
    let mut node = Node::under("default:nstart=2");
    node.get();
    node.get();
    let sent = node.take();
    node.run_until(10.5);
    arrive_marked(&mut node, &sent[0].answer());
    node.run_until(11.5);
    arrive_marked(&mut node, &sent[1].answer());
    node.get();
    node.run_until(20.0);
    assert_eq!(instants(&node.take())[0], 12.5, "2 s after the first mark");
    assert_eq!(node.ep.counters().congestion_experienced, 2);
}

#[test]
fn an_empty_acknowledgement_and_a_separate_response_count_too() {
    for is_separate in [false, true] {
        let mut node = Node::under("default");
        node.get();
        let first = node.one();
        if is_separate {
            node.arrive(&first.ack());
            arrive_marked(&mut node, &first.separate(Type::NonConfirmable, 7));
        } else {
            arrive_marked(&mut node, &first.ack());
            node.arrive(&first.separate(Type::NonConfirmable, 7));
        }
        node.get();
        node.run_until(20.0);
        assert_eq!(instants(&node.take())[0], 12.0);
    }
}

#[test]
fn the_answer_to_a_non_confirmable_request_counts_and_the_next_one_waits_too() {
    let mut node = Node::under("default");
    node.non_get();
    let first = node.one();
    arrive_marked(&mut node, &first.separate(Type::NonConfirmable, 7));
    assert_eq!(node.ep.counters().congestion_experienced, 1);
    node.non_get();
    node.run_until(20.0);
    assert_eq!(instants(&node.take())[0], 12.0);
}

#[test]
fn the_first_answer_to_a_registration_counts_piggybacked_or_separate() {
    let observe = [Opt { number: OptionNumber::OBSERVE, value: b"" }];
    let register = Content { code: Code::GET, options: &observe, payload: b"" };
    for is_separate in [false, true] {
        let mut node = Node::under("default");
        node.try_request(PEER, &register, Reliability::Confirmable).unwrap();
        let first = node.one();
        let options: [(u16, &[u8]); 1] = [(OptionNumber::OBSERVE.0, b"\x05")];
        let (kind, id) = match is_separate {
            false => (Type::Acknowledgement, first.id()),
            true => (Type::NonConfirmable, 7),
        };
        if is_separate {
            node.arrive(&first.ack());
        }
        let answer = message(kind, Code::CONTENT, id, &first.token(), &options, b"22.5");
        let got = arrive_marked(&mut node, &answer);
        assert!(matches!(got, Got::Notification { .. }), "{got:?}");
        assert_eq!(node.ep.counters().congestion_experienced, 1, "separate: {is_separate}");
        node.get();
        node.run_until(20.0);
        assert_eq!(instants(&node.take())[0], 12.0, "separate: {is_separate}");
    }
}

#[test]
fn a_mark_on_anything_but_an_answer_changes_nothing() {
    let mut node = Node::under("default");
    // A server cannot tell the client whose requests are marked.
    let get = message(Type::Confirmable, Code::GET, 1, b"t", &[], b"");
    let incoming = arrive_marked(&mut node, &get).request();
    node.respond(&incoming, b"22.5");
    // An answer to nothing, and one with another token.
    node.get();
    let mut sent = node.take();
    let request = sent.pop().unwrap();
    let stranger = message(Type::Acknowledgement, Code::CONTENT, 9, b"x", &[], b"");
    arrive_marked(&mut node, &stranger);
    let wrong = message(Type::Acknowledgement, Code::CONTENT, request.id(), b"wrong", &[], b"");
    arrive_marked(&mut node, &wrong);
    node.arrive(&request.answer());
    node.get();
    assert_eq!(node.one().at, at(10.0));
    assert_eq!(node.ep.counters().congestion_experienced, 0);
}

#[test]
fn a_mark_concerns_the_peer_whose_answer_it_is_on() {
    let mut node = Node::under("default");
    node.get();
    let first = node.one();
    arrive_marked(&mut node, &first.answer());
    node.get_from(peer(3));
    assert_eq!(node.one().at, at(10.0));
}

#[test]
fn a_control_that_keeps_a_rate_halves_it_once_per_round_trip() {
    // 10 messages a second, a round trip of 0.25 s: at most three in flight.
    let mut burst = Burst::new("rcoap:start-interval=100ms:ipi-min=100ms", 0.25, 100);
    burst.run_until(3.0);
    assert_eq!((burst.state(), burst.interval()), ("NORMAL", 0.1));
    let open: Vec<Datagram> = burst.log.iter().rev().take(2).cloned().collect();
    for request in open.iter().rev() {
        arrive_marked(&mut burst.node, &request.answer());
    }
    assert_eq!(burst.node.ep.counters().congestion_experienced, 2);
    assert_eq!((burst.state(), burst.interval()), ("NORMAL", 0.2));
}

#[test]
fn a_path_that_marks_everything_slows_a_client_down_and_never_stops_it() {
    // rcoap begins with pings, which nobody answers here; it does not wait after a mark.
    for algorithm in Algorithm::ALL.iter().filter(|one| one.name() != "rcoap") {
        let name = algorithm.name();
        let mut node = Node::under(name);
        let mut last = 10.0;
        for round in 0..30 {
            node.get();
            // The first request of all is never answered, so that timeouts have grown before the marks begin.
            if round == 0 {
                node.run_until(1000.0);
                node.take();
                last = 1000.0;
                continue;
            }
            let mut now = last;
            let sent = loop {
                let sent = node.take().into_iter().find(|own| !own.is_probe());
                if let Some(sent) = sent {
                    break sent;
                }
                now += 0.05;
                assert!(now - last < 60.0, "{name}, request {round}: silent since {last} s");
                node.run_until(now);
            };
            last = now + 0.5;
            node.run_until(last);
            // A control with a short timeout has sent copies meanwhile, which are no new requests.
            node.take();
            arrive_marked(&mut node, &sent.answer());
        }
        assert_eq!(node.ep.counters().congestion_experienced, 29, "{name}");
    }
}
