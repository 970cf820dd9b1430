//! `rcoap` towards receivers that misbehave: everything ends, in bounded time and with few messages.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod common;

use common::receiver::{Burst, answered};
use ebbtide_core::endpoint::Failure;

const FAST: &str = "rcoap:start-interval=100ms:ipi-min=10ms";

#[test]
fn without_an_answer_to_discovery_everything_that_waits_fails_after_eight_seconds() {
    for (text, most) in [("rcoap", 8), ("rcoap:start-interval=500ms", 16)] {
        let mut burst = Burst::new(text, 0.1, 3);
        burst.fate = Box::new(|_| None);
        burst.run_until(7.999);
        assert!(burst.node.failed.is_empty());
        burst.run_until(60.0);
        assert_eq!(burst.node.failed.len(), 3);
        for (when, _, reason) in &burst.node.failed {
            assert_eq!((*when, *reason), (common::at(8.0), Failure::GaveUp));
        }
        assert_eq!(burst.node.ep.counters().gave_up, 3);
        assert_eq!((burst.probes(), burst.messages()), (most, 0), "{text}");
        burst.node.assert_free();
    }
}

#[test]
fn a_fast_discovery_into_a_silence_is_bounded() {
    let mut burst = Burst::new("rcoap:start-interval=0.1ms:ipi-min=0.1ms", 0.1, 1);
    burst.fate = Box::new(|_| None);
    burst.run_until(60.0);
    assert_eq!(burst.probes(), 1024);
    assert_eq!(burst.node.failed.len(), 1);
    burst.node.assert_free();
}

#[test]
fn a_fast_discovery_goes_on_for_as_long_as_it_is_answered() {
    // 1.8 ms from ping to ping, half a second to the receiver and back: 833 in 1.5 s.
    let mut burst = Burst::new("rcoap:start-interval=1.8ms:ipi-min=1.8ms", 0.5, 1);
    burst.run_until(1.49);
    assert_eq!(burst.state(), "INITIAL");
    assert!((820..=835).contains(&burst.probes()), "{}", burst.probes());
    burst.run_until(1.6);
    assert_eq!(burst.state(), "NORMAL");
    assert!((burst.interval() - 0.0018).abs() < 0.00002, "{}", burst.interval());
}

#[test]
fn when_a_receiver_vanishes_what_is_open_is_given_up_and_what_waits_after_a_new_discovery() {
    let mut burst = Burst::new(FAST, 0.2, 1000);
    burst.run_until(20.0);
    burst.fate = Box::new(|_| None);
    let (before, left) = (burst.log.len(), burst.node.failed.len());
    assert_eq!(left, 0);
    burst.left = 0;
    burst.run_until(200.0);
    burst.node.assert_free();
    let after = burst.log.len() - before;
    // 20 in flight, five transmissions each, and the pings of BACKOFF and of discovery.
    assert!(after < 20 * 5 + 40, "{after} datagrams into the silence");
    assert_eq!(burst.node.ep.counters().gave_up as usize, burst.node.failed.len());
}

#[test]
fn a_receiver_that_answers_only_pings_gets_every_message_five_times() {
    let mut burst = Burst::new(FAST, 0.2, 40);
    burst.fate = Box::new(|sent| if sent.is_probe() { answered(sent) } else { None });
    burst.run_until(3000.0);
    burst.node.assert_free();
    assert_eq!(burst.node.failed.len(), 40);
    assert_eq!(burst.messages(), 40 * 5);
    assert!(burst.probes() < 1000, "{} pings", burst.probes());
}

#[test]
fn a_receiver_that_resets_everything_ends_every_exchange_at_the_rate() {
    let mut burst = Burst::new(FAST, 0.2, 500);
    burst.fate = Box::new(|sent| Some(sent.rst()));
    burst.run_until(30.0);
    burst.node.assert_free();
    assert_eq!((burst.messages(), burst.copies()), (500, 0));
    let departures = burst.departures();
    assert!(departures.windows(2).all(|pair| pair[1] - pair[0] > 0.0099));
}

#[test]
fn answers_in_any_order_cause_no_retransmission_and_the_rate_is_reached() {
    let mut burst = Burst::new(FAST, 0.2, 2000);
    // A message leaves every 10 ms: most answers overtake others.
    burst.extra = &[0.0, 0.03, 0.015, 0.07, 0.0, 0.045];
    burst.run_until(40.0);
    assert_eq!((burst.copies(), burst.departures().len()), (0, 2000));
    assert!((burst.interval() - 0.01).abs() < 1e-6, "{}", burst.interval());
}
