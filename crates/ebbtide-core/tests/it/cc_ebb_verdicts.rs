//! `ebb` step by step, in an endpoint, as studies/ebb.md promises: queues, probes, verdicts and the guard.

use crate::common::ebb::{answered, config_faithful, lossy, state, timeout};
use crate::common::node::{Datagram, Node, PEER, config, message};
use ebbtide_core::endpoint::Ignored;
use ebbtide_core::wire::{Code, Type};

#[test]
fn behind_a_queue_no_repeat_is_short_and_timeouts_double_from_the_start() {
    let mut node = Node::under("ebb");
    answered(&mut node, 5, 0.5);
    // The last exchange took longer than three times the smallest one.
    let exchange = node.get();
    let request = node.one();
    node.wait(5.0);
    let sample = node.arrive(&request.answer()).response_to(exchange).expect("a sample");
    assert_eq!(sample.answered.map(|told| told.ordinal), None, "its copies left: not believed yet");
    node.take();
    assert_eq!(state(&node), "QUEUE");
    node.get();
    let original = node.one();
    node.wait(5.3);
    let copy = node.one();
    assert!(!copy.is_probe(), "what is known needs no probe");
    assert_eq!((timeout(&original), timeout(&copy)), (5.0, 10.0));
}

#[test]
fn a_probe_that_overtakes_a_slow_handler_costs_one_copy_and_the_guard_learns_the_delay() {
    let mut config = config("ebb");
    config.study.trusts_marks = true;
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
    node.get();
    let request = node.one();
    node.wait(0.4);
    let probe = node.one();
    node.wait(0.1);
    node.arrive(&probe.rst());
    node.wait(0.0);
    assert_eq!(node.one().ordinal(), 1, "the verdict was premature");
    // The handler was at work; its answer names the original, 0.4 s after the verdict.
    node.wait(0.4);
    node.arrive(&request.answer());
    // The next verdict waits as long.
    sentenced(&mut node, (0.35, 0.45));
}

#[test]
fn the_delay_of_a_handler_that_takes_longer_than_the_next_copy_is_learnt_in_steps() {
    let mut node = Node::with_rng(config_faithful(), crate::common::Constant::lowest());
    // The second copy leaves after 0.5 s, 0.3 s before the answer to the original.
    learn_guard(&mut node, 0.8);
    let (original, _) = sentenced(&mut node, (0.25, 0.35));
    node.wait(0.45);
    node.arrive(&original.answer());
    sentenced(&mut node, (0.75, 0.85));
}

/// An exchange on a path whose estimate is too old: a probe is answered with its Reset, and the copy that leaves
/// so much later is returned, after the original.
fn sentenced(node: &mut Node, (before, until): (f64, f64)) -> (Datagram, Datagram) {
    node.wait(300.0);
    node.get();
    let original = node.one();
    let mut sent = until_sent(node, 1);
    let probe = sent.remove(0);
    assert!(probe.is_probe() && sent.is_empty());
    node.arrive(&probe.rst());
    node.wait(before);
    assert!(node.take().is_empty(), "the verdict waits for an answer that was overtaken");
    node.wait(until - before);
    let copy = node.one();
    assert!(!copy.is_probe());
    (original, copy)
}

#[test]
fn a_verdict_that_was_right_halves_the_guard_and_one_that_was_not_adds_to_it() {
    let mut config = config_faithful();
    config.params.max_retransmit = 8;
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
    learn_guard(&mut node, 0.4);
    let (_, copy) = sentenced(&mut node, (0.35, 0.45));
    node.wait(0.1);
    node.arrive(&copy.answer());
    let (original, _) = sentenced(&mut node, (0.15, 0.25));
    // The answer to the original was 0.4 s later than the guard of 0.2 s.
    node.wait(0.4);
    node.arrive(&original.answer());
    sentenced(&mut node, (0.55, 0.7));
}

#[test]
fn a_peer_that_was_not_asked_is_not_silent() {
    for config in [config_faithful(), config("ebb")] {
        let mut node = Node::with_rng(config, crate::common::Constant::lowest());
        answered(&mut node, 60, 1.0);
        assert_eq!(state(&node), "CLEAR");
        for _ in 0..6 {
            lossy(&mut node, 1);
            answered(&mut node, 1, 1.0);
        }
        assert_eq!(state(&node), "CLEAR", "copies without a probe say nothing of probes");
    }
}

/// One exchange whose verdict came `late` seconds before the answer to the original.
fn learn_guard(node: &mut Node, late: f64) {
    node.get();
    let request = node.one();
    node.wait(0.4);
    let probe = node.one();
    node.arrive(&probe.rst());
    node.wait(late);
    node.take();
    node.arrive(&request.answer());
}

#[test]
fn a_slow_peer_that_answers_probes_is_given_time_not_copies() {
    // A handler of 15 s, no empty ACK, on a path of 10 ms: five messages in all are enough.
    let mut node = Node::under("ebb");
    let exchange = node.get();
    let begin = node.now;
    let request = node.one();
    let mut copies = 1;
    while (node.now - begin).as_secs_f64() < 15.0 {
        assert!(node.failed.is_empty(), "given up while the peer was at work");
        for datagram in node.take() {
            if datagram.is_probe() {
                node.wait(0.01);
                node.arrive(&datagram.rst());
            } else {
                copies += 1;
            }
        }
        node.wait(0.1);
    }
    assert!(copies <= 5, "{copies}");
    node.arrive(&request.answer()).response_to(exchange);
    node.assert_free();
}

#[test]
fn a_peer_that_does_not_answer_probes_is_sent_none() {
    let mut node = Node::with_rng(config_faithful(), crate::common::Constant::lowest());
    for _ in 0..3 {
        // The probe asks, nobody answers it, the copy after it is answered; then the estimate ages.
        unheard(&mut node);
        node.wait(256.0);
    }
    assert_eq!(state(&node), "SILENT");
    node.get();
    let request = node.one();
    assert_eq!(state(&node), "BLIND", "it is asked once more after each silence of 255 s");
    node.wait(1.0);
    assert!(node.one().is_probe());
    node.arrive(&request.answer());
    assert_eq!(state(&node), "CLEAR", "an answer before the copy says nothing of probes");
}

#[test]
fn no_probe_leaves_for_a_silent_peer_until_the_estimate_is_old() {
    let mut node = Node::with_rng(config_faithful(), crate::common::Constant::lowest());
    for exchange in 0..3 {
        if exchange > 0 {
            node.wait(256.0);
        }
        unheard(&mut node);
    }
    assert_eq!(state(&node), "SILENT");
    node.get();
    node.wait(200.0);
    assert!(node.take().iter().all(|sent| !sent.is_probe()));
}

/// An exchange whose probe is lost and whose first copy is answered.
fn unheard(node: &mut Node) {
    node.get();
    let sent = until_sent(node, 3);
    assert!(sent[1].is_probe() && !sent[2].is_probe());
    node.arrive(&sent[2].answer());
}

/// What leaves until there are so many datagrams.
fn until_sent(node: &mut Node, count: usize) -> Vec<Datagram> {
    let mut sent = node.take();
    while sent.len() < count {
        node.wait(0.1);
        sent.append(&mut node.take());
    }
    sent
}

#[test]
fn a_forged_reset_of_a_probe_changes_no_estimate_and_later_copies_wait_a_quarter_of_ack_timeout() {
    // However soon the forged Reset came.
    let mut node = Node::under("ebb");
    node.get();
    node.take();
    node.wait(0.4);
    let probe = node.one();
    for guess in 0..50u16 {
        let id = probe.id().wrapping_add(guess);
        node.arrive(&message(Type::Reset, Code::EMPTY, id, &[], &[], b""));
    }
    node.wait(0.0);
    let copy = node.one();
    assert_eq!(timeout(&copy), 0.5);
    assert_eq!(node.ep.metrics(PEER).expect("a peer").srtt, None);
}

#[test]
fn a_reset_sooner_than_a_quarter_of_the_smallest_round_trip_is_not_believed() {
    let mut node = Node::under("ebb:nstart=2");
    let answered = node.get();
    node.get();
    let requests = node.take();
    node.wait(0.4);
    let probes = node.take();
    assert!(probes.iter().all(Datagram::is_probe));
    node.wait(0.1);
    node.arrive(&requests[0].answer()).response_to(answered);
    node.arrive(&probes[1].rst());
    node.wait(0.5);
    assert!(node.take().is_empty(), "no copy on a verdict that cannot be the peer's");
}

/// An exchange that is answered after `seconds` and makes a queue seem to stand.
fn queue_to(node: &mut Node, seconds: f64) {
    let exchange = node.get();
    let request = node.take().remove(0);
    node.wait(seconds);
    node.take();
    node.arrive(&request.answer()).response_to(exchange);
}

#[test]
fn a_path_that_becomes_longer_for_good_is_not_taken_for_a_queue_in_the_end() {
    let mut node = Node::with_rng(config_faithful(), crate::common::Constant::lowest());
    answered(&mut node, 20, 0.4);
    let mut states = Vec::new();
    while state(&node) != "CLEAR" || states.is_empty() {
        queue_to(&mut node, 2.0);
        states.push(state(&node));
        assert!(states.len() < 60, "the smallest round trip never grows");
    }
    // First it is long, in the end it is as long as it always was.
    states.dedup();
    assert_eq!(states, ["QUEUE", "CLEAR"]);
}

#[test]
fn an_estimate_that_was_not_fed_for_255_s_is_asked_about_but_its_timeout_stays() {
    let mut node = Node::under("ebb");
    answered(&mut node, 10, 4.0 / 3.0);
    node.get();
    let before = node.one();
    node.arrive(&before.answer());
    node.wait(256.0);
    node.get();
    let original = node.one();
    assert!(timeout(&original) >= 1.46, "SRTT + 10 %: {original:?}");
    assert!(timeout(&original) >= timeout(&before) * 0.9, "{original:?} {before:?}");
    node.wait(timeout(&original));
    assert!(node.one().is_probe());
}

#[test]
fn several_exchanges_in_flight_each_have_their_own_verdict() {
    let mut node = Node::under("ebb:nstart=4");
    let exchanges: Vec<_> = (0..4).map(|_| node.get()).collect();
    let requests = node.take();
    node.wait(1.5);
    let probes = node.take();
    assert_eq!(probes.len(), 4);
    node.wait(1.0);
    node.arrive(&requests[2].answer()).response_to(exchanges[2]);
    node.arrive(&probes[1].rst());
    node.wait(0.0);
    let copy = node.one();
    assert_eq!(copy.id(), requests[1].id());
    assert_eq!(node.arrive(&probes[2].rst()).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.ep.open_exchanges(), 3);
}
