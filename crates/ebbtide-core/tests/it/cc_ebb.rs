//! `ebb` step by step, in an endpoint, as studies/ebb.md promises: losses, backoff, samples and settings.

use crate::common::ebb::{answered, config_faithful, lossy, state, timeout};
use crate::common::float;
use crate::common::node::{Node, PEER, config, message};
use ebbtide_core::cc::{Context, ControlConfig, Kind, Shell, Slot, Transmission};
use ebbtide_core::endpoint::Ignored;
use ebbtide_core::params::Parameters;
use ebbtide_core::wire::{Code, Type};

#[test]
fn while_nothing_is_known_probes_and_copies_take_turns_at_growing_intervals() {
    let mut config = config("ebb");
    config.params.max_retransmit = 20;
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
    node.get();
    node.wait(1200.0);
    let sent = node.take();
    let timeouts: Vec<f64> = sent.iter().map(timeout).collect();
    // ACK_TIMEOUT / 5; seven times 3/4 ACK_TIMEOUT; a probe soon after the first copy; then the interval
    // doubles before a probe and is four times as long before a copy.
    assert_eq!(timeouts[..8], [0.4, 10.5, 1.5, 21.0, 42.0, 84.0, 336.0, 672.0]);
    let probes: Vec<usize> = (0..8).filter(|&n| sent[n].is_probe()).collect();
    assert_eq!(probes, [1, 3, 4, 6], "of eight datagrams, three copies");
}

#[test]
fn with_few_retransmissions_only_the_first_try_is_a_probe() {
    let mut node = Node::impatient("ebb");
    node.get();
    node.wait(120.0);
    let sent = node.take();
    let timeouts: Vec<f64> = sent[..5].iter().map(timeout).collect();
    assert_eq!(timeouts, [0.4, 10.5, 10.5, 21.0, 42.0]);
    let probes: Vec<usize> = (0..sent.len()).filter(|&n| sent[n].is_probe()).collect();
    assert_eq!((probes, sent.len()), (vec![1], 6), "a probe costs no copy");
}

#[test]
fn copies_of_a_blind_exchange_are_a_logarithm_of_the_time_it_waits() {
    let copies_within = |seconds: f64| {
        let mut config = config("ebb");
        config.params.max_retransmit = 20;
        let mut node = Node::with_rng(config, crate::common::Constant::lowest());
        node.get();
        node.wait(seconds);
        node.take().iter().filter(|sent| !sent.is_probe()).count() - 1
    };
    assert_eq!([100.0, 800.0].map(copies_within), [2, 3]);
}

#[test]
fn an_old_estimate_asks_before_it_repeats() {
    let mut node = Node::under("ebb");
    answered(&mut node, 10, 0.1);
    node.wait(11.0);
    node.get();
    let original = node.one();
    // The queue may have grown since: no copy leaves sooner than one of a fresh sender, and no probe, as
    // nothing was lost of late.
    assert_eq!(timeout(&original), 1.5);
    node.wait(1.5);
    assert!(node.one().is_probe());
    node.wait(1.5);
    let copy = node.one();
    assert_eq!((copy.ordinal(), timeout(&copy)), (1, 3.0));
}

#[test]
fn a_long_first_sample_is_taken_for_a_queue_that_grows() {
    let mut config = config_faithful();
    config.params.max_retransmit = 20;
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
    node.get();
    let request = node.one();
    node.wait(50.0);
    assert_eq!(node.take().iter().filter(|sent| !sent.is_probe()).count(), 1, "one copy left");
    node.arrive(&request.answer());
    node.get();
    let original = node.one();
    assert_eq!(timeout(&original), 200.0, "four times the sample");
    node.wait(200.0);
    let probe = node.one();
    assert_eq!((probe.is_probe(), timeout(&probe)), (true, 200.0));
}

#[test]
fn an_exchange_asks_once_whatever_becomes_of_the_copy_after_the_verdict() {
    let mut node = Node::impatient("ebb");
    node.get();
    node.take();
    node.wait(0.4);
    let probe = node.one();
    node.wait(0.1);
    node.arrive(&probe.rst());
    node.wait(500.0);
    let copies = node.take();
    assert!(copies.iter().all(|copy| !copy.is_probe()));
    let timeouts: Vec<f64> = copies.iter().map(timeout).collect();
    assert_eq!(timeouts, [0.5, 1.0, 2.0, 4.0], "ACK_TIMEOUT / 4 for the peer, doubled from there");
}

#[test]
fn without_a_message_id_for_the_probe_copies_are_as_far_apart_as_if_it_had_left() {
    let config = ControlConfig::parse("ebb").expect("a control");
    let (params, settings) = (&Parameters::DEFAULT, &config.settings);
    let mut rng = crate::common::Constant::lowest();
    let cx = &mut Context { now: crate::common::at(0.0), params, settings, rng: &mut *rng };
    let (mut shell, mut slot) = (Shell::new(config.build()), Slot::default());
    let mut timeouts = [0.0; 4];
    for (ordinal, timeout) in (0..).zip(&mut timeouts) {
        *timeout =
            float(shell.on_transmit(Transmission::new(Kind::Message, ordinal), &mut slot, cx));
    }
    assert_eq!(timeouts, [0.4, 10.5, 10.5, 21.0]);
}

#[test]
fn the_reset_of_a_probe_is_a_verdict_and_the_message_is_repeated_at_once() {
    let mut node = Node::under("ebb");
    node.get();
    let request = node.one();
    node.wait(0.4);
    let probe = node.one();
    node.wait(0.7);
    node.arrive(&probe.rst());
    node.wait(0.0);
    let copy = node.one();
    assert_eq!((copy.id(), copy.ordinal()), (request.id(), 1));
    // The path took 0.7 s; what the peer needs is not known: half as long again.
    assert_eq!(timeout(&copy), 1.05);
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
    config.params.max_retransmit = 14;
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
    answered(&mut node, 60, 1.0);
    assert_eq!(state(&node), "CLEAR");
    node.get();
    node.wait(1000.0);
    let sent = node.take();
    assert!(sent.iter().all(|datagram| !datagram.is_probe()));
    // SRTT + 10 %; after seven doublings it grows by equal steps.
    let backed_off = sent.iter().take(14);
    let units: Vec<f64> = backed_off.map(|datagram| timeout(datagram) / 1.1).collect();
    let rounded: Vec<u32> = units.iter().map(|units| units.round() as u32).collect();
    assert_eq!(rounded, [1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 384]);
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
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
    answered(&mut node, 1, 1.0);
    node.get();
    node.wait(15.0);
    // The first round trip of a queue that fills up is short, the second may be of ten seconds.
    let timeouts: Vec<f64> = node.take().iter().map(timeout).collect();
    assert_eq!(timeouts, [2.0, 2.0, 8.0, 16.0]);
    // On a long path the margin is ACK_TIMEOUT.
    let mut node = Node::under("ebb");
    answered(&mut node, 1, 3.0);
    node.get();
    assert_eq!(timeout(&node.one()), 5.0);
}

#[test]
fn a_sample_beside_the_answer_of_a_probe_is_not_doubted() {
    let mut config = config("ebb");
    config.params.max_retransmit = 20;
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
    node.get();
    node.take();
    node.wait(0.4);
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
    config.study.patience = false;
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
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
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
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
    let mut node = Node::with_rng(config_faithful(), crate::common::Constant::lowest());
    answered(&mut node, 60, 1.0);
    for _ in 0..10 {
        lossy(&mut node, 1);
        answered(&mut node, 1, 1.0);
    }
    node.get();
    assert!(timeout(&node.one()) < 1.2);
}

#[test]
fn an_exchange_that_was_given_up_makes_the_next_one_wait_half_as_long_as_it_did() {
    let mut config = config("ebb");
    config.study.patience = false;
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
    answered(&mut node, 60, 1.0);
    node.get();
    node.wait(20.0);
    let longest = node.take().iter().map(timeout).fold(0.0, f64::max);
    assert_eq!(node.failed.len(), 1);
    for divisor in [2.0, 4.0] {
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
    let mut node = Node::impatient("ebb");
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
    node.ep.handle_timeout(crate::common::at(0.0));
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
            crate::common::node::Got::Reset { sample: Some(_), .. }
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
        assert_eq!(sent[1].option(crate::common::node::COUNT).is_some(), text.ends_with("option"));
    }
}

#[test]
fn the_worked_example_of_the_specification_is_what_happens() {
    let mut config = config("ebb");
    config.params.max_retransmit = 20;
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
    node.get();
    let original = node.one();
    assert_eq!(timeout(&original), 0.4);
    node.wait(1.0);
    assert!(node.one().is_probe());
    node.arrive(&original.answer());
    node.get();
    let mut last = node.one();
    for (armed, ordinal) in [(2.0, 1), (2.0, 2), (8.0, 3)] {
        assert_eq!(timeout(&last), armed);
        node.wait(armed);
        last = node.one();
        assert_eq!(last.ordinal(), ordinal);
    }
    assert_eq!(timeout(&last), 16.0);
    let third = last;
    node.wait(1.0);
    node.arrive(&third.answer());
    node.get();
    assert_eq!(timeout(&node.one()), 1.328125);
}
