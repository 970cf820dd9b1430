//! Messages of a layer below CoAP, such as DTLS flights, share the scope's congestion control.

use crate::common::at;
use crate::common::node::{Node, PEER};
use ebbtide_core::cc::Sample;
use ebbtide_core::time::Micros;

fn sample(millis: u32) -> Sample {
    let span = Micros::from_millis(millis);
    Sample::new(span, span, 1)
}

#[test]
fn a_flight_takes_its_timeout_from_the_control_and_the_control_learns_its_round_trip() {
    let mut node = Node::under("linux-rto");
    let now = at(1.0);
    let flight = node.ep.begin_flight(now, PEER).unwrap();
    let first = flight.timeout();
    assert!(first >= Micros::from_millis(1000), "nothing is known yet: {first:?}");
    node.ep.end_flight(at(1.1), PEER, &flight, Some(&sample(100)));
    let srtt = node.ep.metrics(PEER).unwrap().srtt;
    assert_eq!(srtt, Some(Micros::from_millis(100)));
    let next = node.ep.begin_flight(at(1.1), PEER).unwrap();
    assert!(next.timeout() < first, "{:?} after {first:?}", next.timeout());
    node.ep.end_flight(at(1.2), PEER, &next, None);
    assert_eq!(node.ep.metrics(PEER).unwrap().srtt, srtt, "given up: nothing was learnt");
}

#[test]
fn nothing_for_which_no_probe_may_leave_is_repeated_as_soon_as_one_would_leave() {
    for control in ["ebb", "ebb:initial-rto=100ms"] {
        let mut node = Node::under(control);
        let flight = node.ep.begin_flight(at(1.0), PEER).unwrap();
        assert_eq!(flight.timeout(), Micros::from_millis(1500), "{control}: 3/4 ACK_TIMEOUT");
        node.ep.end_flight(at(1.1), PEER, &flight, None);
        let mut node = Node::under(control);
        node.ep.ping(node.now, PEER).unwrap();
        node.settle();
        let ping = node.one();
        assert_eq!(ping.timeout(), Micros::from_millis(1500), "{control}: a ping is its own probe");
    }
}

#[test]
fn a_request_waits_while_a_flight_holds_the_only_place() {
    let mut node = Node::under("default:nstart=1");
    let flight = node.ep.begin_flight(at(1.0), PEER).unwrap();
    node.get();
    assert_eq!(node.take().len(), 0, "NSTART is one");
    node.ep.end_flight(at(1.1), PEER, &flight, Some(&sample(100)));
    node.settle();
    let sent = node.take();
    assert_eq!(sent.len(), 1);
    node.arrive(&sent[0].answer());
    node.assert_free();
}
