//! Probes: pings that congestion control sends for an exchange.

use crate::common::node::{Datagram, Node, PEER, config, message};
use ebbtide_core::endpoint::{Failure, Ignored};
use ebbtide_core::wire::{Code, Type};

/// A node under ebb whose first request has gone unanswered until it probed: request and probe.
fn probing() -> (Node, Datagram, Datagram) {
    let mut node = Node::under("ebb");
    node.get();
    let request = node.one();
    node.wait(1.6);
    let probe = node.one();
    (node, request, probe)
}

#[test]
fn a_probe_is_a_ping_with_an_id_of_its_own() {
    let (node, request, probe) = probing();
    assert!(probe.is_probe());
    assert_eq!(
        (probe.kind(), probe.code(), probe.bytes.len()),
        (Type::Confirmable, Code::EMPTY, 4)
    );
    assert_ne!(probe.id(), request.id());
    assert_eq!(probe.to, PEER);
    let counters = node.ep.counters();
    assert_eq!((counters.probes, counters.sent, counters.retransmissions), (1, 2, 0));
}

#[test]
fn its_reset_is_told_to_nobody_but_the_control_and_is_taken_once() {
    let (mut node, request, probe) = probing();
    assert_eq!(node.arrive(&probe.rst()).ignored(), Ignored::Probe);
    assert_eq!(node.ep.counters().probes_answered, 1);
    assert_eq!(node.arrive(&probe.rst()).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.ep.counters().probes_answered, 1);
    assert_eq!(node.ep.open_exchanges(), 1, "the exchange goes on");
    node.wait(0.0);
    assert_eq!(node.one().id(), request.id(), "and its message is repeated");
}

#[test]
fn an_empty_ack_of_a_probe_shows_the_path_as_well() {
    let (mut node, request, probe) = probing();
    assert_eq!(node.arrive(&probe.ack()).ignored(), Ignored::Probe);
    node.wait(0.0);
    assert_eq!(node.one().id(), request.id());
}

#[test]
fn a_response_that_names_a_probe_does_not_answer_the_request() {
    let (mut node, request, probe) = probing();
    let forged =
        message(Type::Acknowledgement, Code::CONTENT, probe.id(), &request.token(), &[], b"x");
    assert_eq!(node.arrive(&forged).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.ep.open_exchanges(), 1);
}

#[test]
fn each_end_of_an_exchange_frees_its_probes() {
    for end in ["answer", "reset", "cancel", "error"] {
        let (mut node, request, probe) = probing();
        match end {
            "answer" => drop(node.arrive(&request.answer())),
            "reset" => drop(node.arrive(&request.rst())),
            "cancel" => {
                let mut other = Node::under("ebb");
                let exchange = other.get();
                other.wait(1.6);
                other.cancel(exchange);
                let probe = other.take().remove(1);
                assert_eq!(other.arrive(&probe.rst()).ignored(), Ignored::UnknownExchange);
                other.assert_free();
                continue;
            }
            _ => {
                let ebbtide_core::endpoint::Sent::Probe { exchange, .. } = probe.what else {
                    panic!("{probe:?}")
                };
                node.ep.handle_send_error(node.now, exchange);
                node.settle();
                assert_eq!(node.failures(), [(exchange, Failure::SendError)]);
            }
        }
        assert_eq!(node.arrive(&probe.rst()).ignored(), Ignored::UnknownExchange, "{end}");
        node.assert_free();
    }
}

#[test]
fn after_an_empty_ack_the_response_is_awaited_and_nothing_is_repeated() {
    let (mut node, request, probe) = probing();
    node.arrive(&request.ack());
    assert_eq!(node.arrive(&probe.rst()).ignored(), Ignored::UnknownExchange);
    node.wait(200.0);
    assert_eq!(node.take().len(), 0);
    assert_eq!(node.ep.open_exchanges(), 1);
    node.arrive(&request.separate(Type::NonConfirmable, 77));
    node.assert_free();
}

#[test]
fn without_any_answer_an_exchange_sends_one_datagram_more_than_with_retransmissions_alone() {
    let mut node = Node::under("ebb");
    let exchange = node.get();
    node.wait(1000.0);
    let sent = node.take();
    // MAX_RETRANSMIT is 4: the original and four copies, and the probe.
    let probes: Vec<bool> = sent.iter().map(Datagram::is_probe).collect();
    assert_eq!(probes, [false, true, false, false, false, false]);
    assert_eq!(node.failures(), [(exchange, Failure::GaveUp)]);
    node.assert_free();
}

#[test]
fn a_peer_that_answers_probes_but_never_requests_gets_a_bounded_number_of_both() {
    let mut node = Node::under("ebb");
    let exchange = node.get();
    let (mut copies, mut probes) = (0, 0);
    while node.failed.is_empty() {
        for datagram in node.take() {
            if datagram.is_probe() {
                probes += 1;
                node.wait(0.3);
                node.arrive(&datagram.rst());
            } else {
                copies += 1;
            }
        }
        node.wait(0.5);
        assert!(node.now < crate::common::at(2000.0), "it never ends");
    }
    assert_eq!(node.failures(), [(exchange, Failure::GaveUp)]);
    assert_eq!(copies, 5, "the original and MAX_RETRANSMIT copies");
    assert!(probes <= 4, "{probes} probes");
    node.assert_free();
}

#[test]
fn max_retransmit_zero_allows_neither_copy_nor_probe() {
    let mut config = config("ebb");
    config.params.max_retransmit = 0;
    let mut node = Node::new(config);
    node.get();
    node.wait(100.0);
    assert_eq!(node.take().len(), 1);
    node.assert_free();
}

#[test]
fn a_ping_of_the_application_is_its_own_probe() {
    let mut node = Node::under("ebb");
    node.ep.ping(node.now, PEER).expect("accepted");
    node.wait(100.0);
    let sent = node.take();
    assert!(sent.iter().all(|datagram| !datagram.is_probe() && datagram.id() == sent[0].id()));
    assert_eq!(sent.len(), 5);
}

#[test]
fn separate_responses_and_notifications_are_probed_for_as_requests_are() {
    let mut node = Node::under("ebb");
    let get = message(Type::Confirmable, Code::GET, 9, b"t", &[], b"");
    let mut incoming = node.arrive(&get).request();
    node.acknowledge(&mut incoming);
    node.respond(&incoming, b"late");
    node.take();
    node.wait(1.6);
    let probe = node.one();
    assert!(probe.is_probe());
    node.arrive(&probe.rst());
    node.wait(0.0);
    assert_eq!(node.one().code(), Code::CONTENT);
}

#[test]
fn no_probe_leaves_for_an_exchange_whose_transmissions_are_limited() {
    // Its bytes would add to those that an address which may be forged receives.
    let mut node = Node::under("ebb");
    let exchange = node.get();
    node.ep.limit_transmissions(exchange, 2);
    node.wait(300.0);
    let sent = node.take();
    assert!(sent.iter().all(|datagram| !datagram.is_probe()), "{sent:?}");
    let times: Vec<f64> =
        sent.iter().map(|datagram| (datagram.at - sent[0].at).as_secs_f64()).collect();
    assert_eq!(times, [0.0, 3.0], "the copy leaves after ACK_TIMEOUT * ACK_RANDOM_FACTOR");
}
