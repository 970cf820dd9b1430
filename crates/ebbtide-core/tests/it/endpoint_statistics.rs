//! What an endpoint counts per control and per reason, checked against exchanges played by hand.

use crate::common::node::{Node, PEER, message};
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::endpoint::{ControlCounters, EndpointConfig, Histogram};
use ebbtide_core::testbed::StudySettings;
use ebbtide_core::time::Micros;
use ebbtide_core::wire::{Code, Type};

fn counted(node: &Node) -> Vec<(String, ControlCounters)> {
    node.ep.controls().map(|(control, counters)| (control.to_string(), *counters)).collect()
}

/// A GET whose original and `times` retransmissions have left, answered by the copy `ordinal`.
fn answered_by(node: &mut Node, times: usize, ordinal: u8) {
    node.get();
    while node.sent.len() <= times {
        node.now = node.timeout.expect("open");
        node.ep.handle_timeout(node.now);
        node.settle();
    }
    let sent = node.take().swap_remove(0);
    node.wait(0.3);
    let mut token = sent.token();
    token[0] = ordinal;
    node.arrive(&message(Type::Acknowledgement, Code::CONTENT, sent.id(), &token, &[], b"x"));
}

#[test]
fn a_mark_tells_how_many_retransmissions_were_unnecessary() {
    // This peer is known to echo the mark of the copy that it answers.
    let control = ControlConfig::parse("fasor-token").unwrap();
    let mut node = Node::with_rng(
        EndpointConfig {
            control,
            study: StudySettings::DEFAULT.trusting_marks(true),
            ..EndpointConfig::default()
        },
        crate::common::Constant::lowest(),
    );
    answered_by(&mut node, 3, 1);
    let (control, counters) = counted(&node).remove(0);
    assert_eq!(control, "fasor-token");
    assert_eq!((counters.messages, counters.retransmissions, counters.timeouts), (1, 3, 3));
    assert_eq!(
        counters.unnecessary, 2,
        "the second and third left although the first was answered"
    );
    assert_eq!(counters.rtt.count(), 1);
    assert_eq!(counters.rto.count(), 1, "backed-off timeouts are not what the control estimates");
}

#[test]
fn without_a_mark_a_repeated_exchange_tells_no_round_trip() {
    let mut node = Node::under("default");
    node.get();
    node.now = node.timeout.expect("open");
    node.ep.handle_timeout(node.now);
    node.settle();
    let answer = node.take()[0].answer();
    node.arrive(&answer);
    node.get();
    let answer = node.one().answer();
    node.wait(0.3);
    node.arrive(&answer);
    let counters = counted(&node)[0].1;
    assert_eq!((counters.retransmissions, counters.unnecessary), (1, 0));
    assert_eq!((counters.rtt.count(), counters.rtt.sum_micros()), (1, 300_000));
}

#[test]
fn each_control_counts_for_itself() {
    let mut node = Node::under("default");
    node.ep.set_control(node.now, PEER, ControlConfig::parse("cocoa").unwrap()).unwrap();
    node.get();
    node.run_until(1000.0);
    let counted = counted(&node);
    assert_eq!(counted[0], ("default".to_owned(), ControlCounters::default()));
    assert_eq!((counted[1].0.as_str(), counted[1].1.gave_up), ("cocoa", 1));
    assert_eq!(counted[1].1.timeouts, counted[1].1.retransmissions + 1);
}

#[test]
fn an_invalid_message_is_counted_by_reason() {
    let mut node = Node::under("default");
    node.arrive(&[0x40]);
    node.arrive(&[0xc0, 1, 0, 1]);
    node.arrive(&[0x4f, 1, 0, 2]);
    node.arrive(&[0x40, 1, 0, 3, 0xff]);
    node.arrive(&[0x40, 1, 0, 4, 0xff]);
    let malformed = node.ep.malformed();
    let seen: Vec<_> = malformed.iter().filter(|(_, count)| *count > 0).collect();
    let expected = [
        ("too-short", 1),
        ("version", 1),
        ("token-length", 1),
        ("payload-marker-without-payload", 2),
    ];
    assert_eq!(seen, expected);
    assert_eq!(malformed.iter().map(|(_, count)| count).sum::<u64>(), node.ep.counters().malformed);
}

#[test]
fn exchanges_are_counted_by_where_they_are() {
    let mut node = Node::under("default");
    let exchanges: Vec<_> = (0..3).map(|_| node.get()).collect();
    node.non_get();
    let now = node.ep.exchanges();
    assert_eq!((now.queued, now.open, now.waiting, now.observing), (3, 1, 0, 0), "NSTART is 1");
    for exchange in exchanges {
        node.cancel(exchange);
    }
    assert_eq!(node.ep.exchanges().waiting, 1, "the Non-confirmable one has left");
}

#[test]
fn a_histogram_counts_up_to_and_including_its_bounds() {
    let mut histogram = Histogram::default();
    for micros in [0, 100, 101, 1_000_000_000, 1_000_000_001] {
        histogram.record(Micros::new(micros));
    }
    let cumulative: Vec<_> = histogram.cumulative().collect();
    assert_eq!(cumulative[0], (100, 2));
    assert_eq!(cumulative[1], (200, 3));
    assert_eq!(*cumulative.last().unwrap(), (1_000_000_000, 4));
    assert_eq!((histogram.count(), histogram.sum_micros()), (5, 2_000_000_202));
}
