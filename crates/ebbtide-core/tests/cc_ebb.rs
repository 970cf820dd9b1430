//! `ebb` step by step, in an endpoint: what docs/ebb.md promises.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod common;

use common::float;
use common::node::{Datagram, Node, PEER, config, message};
use ebbtide_core::cc::{Context, ControlConfig, Kind, Shell, Slot};
use ebbtide_core::endpoint::Ignored;
use ebbtide_core::params::Parameters;
use ebbtide_core::wire::{Code, Type};

/// The timeout in seconds.
fn timeout(datagram: &Datagram) -> f64 {
    float(datagram.timeout())
}

fn state(node: &Node) -> &'static str {
    node.ep.metrics(PEER).expect("a peer").state
}

/// So many exchanges, each answered after `seconds`.
fn answered(node: &mut Node, exchanges: u32, seconds: f64) {
    for _ in 0..exchanges {
        node.get();
        let request = node.one();
        node.wait(seconds);
        assert!(node.take().is_empty(), "nothing else leaves");
        node.arrive(&request.answer());
    }
}

#[test]
fn while_nothing_is_known_one_probe_leaves_before_the_first_copy_and_intervals_grow() {
    let mut config = config("ebb");
    config.params.max_retransmit = 20;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    node.get();
    node.wait(1e4);
    let sent = node.take();
    let probes: Vec<usize> = (0..sent.len()).filter(|&n| sent[n].is_probe()).collect();
    assert_eq!((probes, sent.len()), (vec![1], 22), "it asks once, and the probe costs no copy");
    let timeouts: Vec<f64> = sent.iter().map(timeout).collect();
    // 3/4 ACK_TIMEOUT; the probe's seven times that; two copies close together; doubled to 60 s.
    assert_eq!(timeouts[..7], [1.5, 10.5, 1.5, 21.0, 42.0, 60.0, 60.0]);
}

#[test]
fn an_exchange_asks_once_whatever_becomes_of_the_copy_after_the_verdict() {
    let mut node = Node::impatient("ebb");
    node.get();
    node.take();
    node.wait(1.5);
    let probe = node.one();
    node.wait(0.7);
    node.arrive(&probe.rst());
    node.wait(500.0);
    let copies = node.take();
    assert!(copies.iter().all(|copy| !copy.is_probe()));
    let timeouts: Vec<f64> = copies.iter().map(timeout).collect();
    assert_eq!(timeouts, [2.0, 4.0, 8.0, 16.0], "ACK_TIMEOUT for the peer, doubled from there");
}

#[test]
fn without_a_message_id_for_the_probe_copies_are_as_far_apart_as_if_it_had_left() {
    let config = ControlConfig::parse("ebb").expect("a control");
    let (params, settings) = (&Parameters::DEFAULT, &config.settings);
    let mut rng = common::Constant::lowest();
    let cx = &mut Context { now: common::at(0.0), params, settings, rng: &mut *rng };
    let (mut shell, mut slot) = (Shell::new(config.build()), Slot::default());
    let mut timeouts = [0.0; 4];
    for (ordinal, timeout) in (0..).zip(&mut timeouts) {
        *timeout = float(shell.on_transmit((Kind::Message, ordinal), &mut slot, cx));
    }
    assert_eq!(timeouts, [1.5, 10.5, 21.0, 42.0]);
}

#[test]
fn the_reset_of_a_probe_is_a_verdict_and_the_message_is_repeated_at_once() {
    let mut node = Node::under("ebb");
    node.get();
    let request = node.one();
    node.wait(1.5);
    let probe = node.one();
    node.wait(0.7);
    node.arrive(&probe.rst());
    node.wait(0.0);
    let copy = node.one();
    assert_eq!((copy.id(), copy.ordinal()), (request.id(), 1));
    // The path took 0.7 s; what the peer needs is not known: ACK_TIMEOUT.
    assert_eq!(timeout(&copy), 2.0);
    assert_eq!(state(&node), "BLIND", "a ping is no sample of an exchange");
}

#[test]
fn an_answer_before_the_reset_costs_no_copy() {
    let mut node = Node::under("ebb");
    let exchange = node.get();
    let request = node.one();
    node.wait(5.0);
    let probe = node.one();
    assert!(probe.is_probe());
    let sample = node.arrive(&request.answer()).response_to(exchange).expect("a sample");
    assert_eq!((sample.transmissions, float(sample.since_first)), (1, 5.0));
    assert_eq!(node.arrive(&probe.rst()).ignored(), Ignored::UnknownExchange);
    node.assert_free();
    assert!(node.take().is_empty());
}

#[test]
fn originals_are_unmarked_and_the_mark_of_a_copy_gives_its_own_round_trip() {
    let mut node = Node::under("ebb");
    answered(&mut node, 20, 0.5);
    let exchange = node.get();
    let request = node.one();
    node.wait(0.6);
    let copy = node.one();
    assert_eq!(copy.token().len(), request.token().len() + 1);
    assert_eq!((copy.token()[0], &copy.token()[1..]), (1, &request.token()[..]));
    node.wait(0.25);
    let sample = node.arrive(&copy.answer()).response_to(exchange).expect("a sample");
    let told = sample.answered.expect("told");
    assert_eq!((told.ordinal, float(told.since)), (1, float(sample.since_last)));
}

#[test]
fn an_answer_that_names_a_copy_that_was_never_sent_teaches_nothing() {
    let mut node = Node::under("ebb");
    answered(&mut node, 5, 0.5);
    let before = node.ep.metrics(PEER);
    node.get();
    let request = node.one();
    for mark in [0, 1, 2, 254, 255] {
        let token = [&[mark][..], &request.token()].concat();
        let forged = message(Type::Acknowledgement, Code::CONTENT, request.id(), &token, &[], b"x");
        assert_eq!(node.arrive(&forged).ignored(), Ignored::WrongToken, "{mark}");
    }
    assert_eq!(node.ep.metrics(PEER), before);
    assert_eq!(node.ep.counters().wrong_tokens, 5);
}

#[test]
fn without_a_queue_a_silence_is_a_loss_four_short_repeats_and_then_doubling() {
    let mut config = config("ebb");
    config.params.max_retransmit = 12;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    answered(&mut node, 60, 1.0);
    assert_eq!(state(&node), "CLEAR");
    node.get();
    node.wait(1000.0);
    let sent = node.take();
    assert!(sent.iter().all(|datagram| !datagram.is_probe()));
    // SRTT + 10 %, and no more than 2^5 of it.
    let units: Vec<f64> = sent.iter().map(|datagram| timeout(datagram) / 1.1).collect();
    let rounded: Vec<u32> = units.iter().map(|units| units.round() as u32).collect();
    assert_eq!(rounded, [1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 32, 32, 32]);
    assert!(units.iter().all(|units| (units - units.round()).abs() < 0.01), "{units:?}");
}

#[test]
fn with_few_retransmissions_only_half_of_them_are_short() {
    let mut node = Node::impatient("ebb");
    answered(&mut node, 60, 1.0);
    node.get();
    node.wait(1000.0);
    let units: Vec<u32> =
        node.take().iter().map(|sent| (timeout(sent) / 1.1).round() as u32).collect();
    assert_eq!(units, [1, 1, 1, 2, 4]);
}

#[test]
fn one_sample_is_trusted_with_a_short_repeat_and_then_doubted() {
    let mut config = config("ebb");
    config.params.max_retransmit = 20;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    answered(&mut node, 1, 1.0);
    node.get();
    node.wait(15.0);
    // The first round trip of a queue that fills up is short, the second may be of ten seconds.
    let timeouts: Vec<f64> = node.take().iter().map(timeout).collect();
    assert_eq!(timeouts, [1.4375, 1.4375, 5.75, 11.5]);
}

#[test]
fn a_sample_beside_the_answer_of_a_probe_is_not_doubted() {
    let mut config = config("ebb");
    config.params.max_retransmit = 20;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    node.get();
    node.take();
    node.wait(1.5);
    let probe = node.one();
    node.wait(1.0);
    node.arrive(&probe.rst());
    node.wait(0.0);
    let copy = node.one();
    node.wait(1.0);
    node.arrive(&copy.answer());
    node.get();
    node.wait(15.0);
    // Two round trips of a second were seen: the path is not about to be full.
    let timeouts: Vec<f64> = node.take().iter().map(timeout).collect();
    assert_eq!(timeouts, [1.4375, 1.4375, 2.875, 5.75, 11.5]);
}

#[test]
fn on_a_short_path_backoff_begins_at_a_twentieth_of_ack_timeout_and_the_last_wait_is_long() {
    let mut config = config("ebb");
    config.params.max_retransmit = 8;
    config.params.patience = false;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    answered(&mut node, 60, 0.02);
    node.get();
    node.wait(1000.0);
    let timeouts: Vec<f64> = node.take().iter().map(timeout).collect();
    assert!(timeouts[..5].iter().all(|short| *short < 0.023), "{timeouts:?}");
    assert_eq!(timeouts[5..], [0.1, 0.2, 0.4, 3.0], "nobody answered for {timeouts:?}");
}

#[test]
fn after_many_losses_no_repeat_is_short_and_the_next_exchange_begins_where_the_last_one_was() {
    let mut config = config_faithful();
    config.params.max_retransmit = 20;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    answered(&mut node, 60, 1.0);
    // Each loses two: in the end two copies per exchange, on average.
    for _ in 0..7 {
        lossy(&mut node, 2);
    }
    node.get();
    node.wait(1000.0);
    let timeouts: Vec<f64> = node.take().iter().map(timeout).collect();
    assert!((2.0..5.0).contains(&timeouts[0]), "held: {timeouts:?}");
    let doubles = timeouts.windows(2).take(3).all(|pair| (pair[1] / pair[0] - 2.0).abs() < 0.01);
    assert!(doubles, "{timeouts:?}");
    // What link errors lose, one in three, does not count as a buffer.
    let mut node = Node::with_rng(config_faithful(), common::Constant::lowest());
    answered(&mut node, 60, 1.0);
    for _ in 0..10 {
        lossy(&mut node, 1);
        answered(&mut node, 1, 1.0);
    }
    node.get();
    assert!(timeout(&node.one()) < 1.2);
}

/// An exchange whose original and copies are lost until `copies` have left; the last is answered
/// after a second.
fn lossy(node: &mut Node, copies: u8) {
    node.get();
    let mut last = node.one();
    while last.ordinal() < copies {
        node.wait(0.05);
        if let Some(next) = node.take().pop() {
            last = next;
        }
    }
    node.wait(1.0);
    node.take();
    node.arrive(&last.answer());
}

#[test]
fn an_exchange_that_was_given_up_makes_the_next_one_wait_as_long_as_it_did() {
    let mut config = config("ebb");
    config.params.patience = false;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    answered(&mut node, 60, 1.0);
    node.get();
    node.wait(1000.0);
    let longest = node.take().iter().map(timeout).fold(0.0, f64::max);
    assert_eq!(node.failed.len(), 1);
    for divisor in [1.0, 2.0, 4.0] {
        node.get();
        let next = node.one();
        let held = longest / divisor;
        assert!((held * 0.99..held * 1.3).contains(&timeout(&next)), "{next:?}, held {held}");
        // An answer without a repetition halves it.
        node.wait(1.0);
        node.arrive(&next.answer());
    }
}

#[test]
fn blind_intervals_double_with_every_exchange_that_was_given_up() {
    let mut config = config("ebb:bound=none");
    config.params.patience = false;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    let mut intervals = Vec::new();
    for _ in 0..7 {
        node.get();
        node.wait(4000.0);
        let sent = node.take();
        let probe = sent.iter().find(|sent| sent.is_probe()).expect("a probe");
        intervals.push(timeout(probe) / 10.5);
    }
    assert_eq!(intervals, [1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0]);
}

#[test]
fn behind_a_queue_a_probe_asks_first_and_timeouts_double_from_the_start() {
    let mut node = Node::under("ebb");
    answered(&mut node, 5, 0.5);
    // The last exchange took longer than 1.5 times the smallest, within its timeout of a retry.
    let exchange = node.get();
    let request = node.one();
    node.wait(5.0);
    let sample = node.arrive(&request.answer()).response_to(exchange).expect("a sample");
    assert_eq!(sample.answered.map(|told| told.ordinal), None, "its copies left: not believed yet");
    node.take();
    assert_eq!(state(&node), "QUEUE");
    node.get();
    node.take();
    node.wait(5.3);
    let probe = node.one();
    assert!(probe.is_probe());
    assert!(timeout(&probe) >= 10.0, "{}", timeout(&probe));
}

#[test]
fn a_probe_that_overtakes_a_slow_handler_costs_one_copy_and_the_guard_learns_the_delay() {
    let mut config = config("ebb");
    config.trust_marks = true;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    node.get();
    let request = node.one();
    node.wait(1.5);
    let probe = node.one();
    node.wait(0.1);
    node.arrive(&probe.rst());
    node.wait(0.0);
    assert_eq!(node.one().ordinal(), 1, "the verdict was premature");
    // The handler was at work; its answer names the original, 0.8 s after the verdict.
    node.wait(0.8);
    node.arrive(&request.answer());

    // The next verdict waits as long.
    let mut config = config_faithful();
    config.params.max_retransmit = 8;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    learn_guard(&mut node, 0.8);
    node.wait(300.0);
    node.get();
    let request = node.one();
    node.wait(5.0);
    let probe = node.one();
    assert!(probe.is_probe(), "an estimate that is 300 s old is none");
    node.arrive(&probe.rst());
    node.wait(0.7);
    assert!(node.take().is_empty(), "the verdict waits for an answer that was overtaken");
    node.wait(0.2);
    assert_eq!(node.one().id(), request.id());
}

/// An exchange on a path whose estimate is too old: a probe is answered with its Reset, and the copy that leaves
/// so much later is returned, after the original.
fn sentenced(node: &mut Node, (before, until): (f64, f64)) -> (Datagram, Datagram) {
    node.wait(300.0);
    node.get();
    let original = node.one();
    let mut sent = Vec::new();
    while sent.is_empty() {
        node.wait(0.1);
        sent = node.take();
    }
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
    let mut node = Node::with_rng(config, common::Constant::lowest());
    learn_guard(&mut node, 0.8);
    let (_, copy) = sentenced(&mut node, (0.7, 0.9));
    node.wait(0.1);
    node.arrive(&copy.answer());
    let (original, _) = sentenced(&mut node, (0.35, 0.45));
    // The answer to the original was 0.6 s later than the guard of 0.4 s.
    node.wait(0.6);
    node.arrive(&original.answer());
    sentenced(&mut node, (0.95, 1.1));
}

#[test]
fn a_peer_that_was_not_asked_is_not_silent() {
    for config in [config_faithful(), config("ebb")] {
        let mut node = Node::with_rng(config, common::Constant::lowest());
        answered(&mut node, 60, 1.0);
        assert_eq!(state(&node), "CLEAR");
        for _ in 0..6 {
            lossy(&mut node, 1);
            answered(&mut node, 1, 1.0);
        }
        assert_eq!(state(&node), "CLEAR", "copies without a probe say nothing of probes");
    }
}

fn config_faithful() -> ebbtide_core::endpoint::EndpointConfig {
    let mut config = config("ebb");
    config.trust_marks = true;
    config
}

/// One exchange whose verdict came `late` seconds before the answer to the original.
fn learn_guard(node: &mut Node, late: f64) {
    node.get();
    let request = node.one();
    node.wait(1.5);
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
fn a_peer_that_does_not_answer_probes_gets_fasor() {
    let mut config = config("ebb:ageing=off");
    config.trust_marks = true;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    answered(&mut node, 1, 0.1);
    for _ in 0..3 {
        // A queue: the probe asks, nobody answers it, the copy after it is answered.
        queue(&mut node);
        node.get();
        node.take();
        let mut sent = Vec::new();
        while sent.len() < 2 {
            node.wait(0.1);
            sent.append(&mut node.take());
        }
        assert!(sent[0].is_probe() && !sent[1].is_probe());
        node.arrive(&sent[1].answer());
    }
    assert_eq!(state(&node), "FASOR");
    node.get();
    node.wait(300.0);
    assert!(node.take().iter().all(|sent| !sent.is_probe()));
}

/// An exchange that takes 2 s, much longer than those before.
fn queue(node: &mut Node) {
    node.get();
    let request = node.take().remove(0);
    node.wait(2.0);
    node.take();
    node.arrive(&request.answer());
}

#[test]
fn a_forged_reset_of_a_probe_buys_one_copy_and_shortens_nothing() {
    // While nothing is known: the copy waits ACK_TIMEOUT, however soon the forged Reset came.
    let mut node = Node::under("ebb");
    node.get();
    node.take();
    node.wait(1.5);
    let probe = node.one();
    for guess in 0..50u16 {
        let id = probe.id().wrapping_add(guess);
        node.arrive(&message(Type::Reset, Code::EMPTY, id, &[], &[], b""));
    }
    node.wait(0.0);
    let copy = node.one();
    assert_eq!(timeout(&copy), 2.0);
    assert_eq!(node.ep.metrics(PEER).expect("a peer").srtt, None);
}

#[test]
fn a_reset_sooner_than_a_quarter_of_the_smallest_round_trip_is_not_believed() {
    let mut node = Node::under("ebb");
    answered(&mut node, 5, 1.0);
    queue_to(&mut node, 3.0);
    node.get();
    node.take();
    node.wait(3.05);
    let probe = node.take().remove(0);
    assert!(probe.is_probe());
    node.wait(0.1);
    node.arrive(&probe.rst());
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
    let mut node = Node::with_rng(config_faithful(), common::Constant::lowest());
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
    assert!(timeout(&original) >= 1.5);
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

#[test]
fn a_clock_that_jumps_ahead_teaches_no_less_than_a_round_trip_and_sends_one_datagram() {
    let mut node = Node::under("ebb");
    answered(&mut node, 5, 0.5);
    node.get();
    node.take();
    // Minutes at once: one timer is due, one datagram leaves.
    node.now = node.now + std::time::Duration::from_secs(200);
    node.ep.handle_timeout(node.now);
    node.settle();
    assert_eq!(node.take().len(), 1);
    // And back: time stands still.
    node.ep.handle_timeout(common::at(0.0));
    node.settle();
    assert!(node.take().is_empty());
}

#[test]
fn a_peer_that_resets_everything_is_an_error_at_once() {
    let mut node = Node::under("ebb");
    for _ in 0..10 {
        node.get();
        let request = node.one();
        node.wait(0.2);
        assert!(matches!(
            node.arrive(&request.rst()),
            common::node::Got::Reset { sample: Some(_), .. }
        ));
        node.assert_free();
    }
}

#[test]
fn marks_are_a_setting() {
    for (text, original, copy) in [
        ("ebb", 4, 5),
        ("ebb:mark=token", 5, 5),
        ("ebb:mark=none", 4, 4),
        ("ebb:mark=option", 4, 4),
    ] {
        let mut node = Node::under(text);
        node.get();
        assert_eq!(node.one().token().len(), original, "{text}");
        node.wait(13.0);
        let sent = node.take();
        assert_eq!(sent[1].token().len(), copy, "{text}");
        assert_eq!(sent[1].option(common::node::COUNT).is_some(), text.ends_with("option"));
    }
}

#[test]
fn the_worked_example_of_the_specification_is_what_happens() {
    let mut config = config("ebb");
    config.params.max_retransmit = 20;
    let mut node = Node::with_rng(config, common::Constant::lowest());
    node.get();
    let original = node.one();
    assert_eq!(timeout(&original), 1.5);
    node.wait(1.0);
    node.arrive(&original.answer());
    node.get();
    let mut last = node.one();
    for (armed, ordinal) in [(1.4375, 1), (1.4375, 2), (5.75, 3)] {
        assert_eq!(timeout(&last), armed);
        node.wait(armed);
        last = node.one();
        assert_eq!(last.ordinal(), ordinal);
    }
    assert_eq!(timeout(&last), 11.5);
    let third = last;
    node.wait(1.0);
    node.arrive(&third.answer());
    node.get();
    assert_eq!(timeout(&node.one()), 1.328125);
}
