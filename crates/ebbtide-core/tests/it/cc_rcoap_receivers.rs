//! `rcoap` towards receivers that misbehave: everything ends, in bounded time and with few messages.

use crate::common::receiver::{Burst, answered};
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
            assert_eq!((*when, *reason), (crate::common::at(8.0), Failure::GaveUp));
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
    let mut burst = Burst::new(FAST, 0.2, 10_000);
    burst.run_until(20.0);
    burst.fate = Box::new(|_| None);
    let (before, left) = (burst.log.len(), burst.node.failed.len());
    assert_eq!(left, 0);
    burst.left = 0;
    burst.run_until(200.0);
    burst.node.assert_free();
    let after = burst.log.len() - before;
    // 20 in flight, five transmissions each, 80 pings of discovery at 10/s for 8 s, those of BACKOFF.
    assert!(after < 20 * 5 + 80 + 30, "{after} datagrams into the silence");
    let failed = burst.node.failed.len();
    assert!(failed >= 40, "{failed} of what was in flight or waited");
    assert_eq!(burst.node.ep.counters().gave_up as usize, failed);
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

#[test]
fn a_backoff_in_which_nothing_is_open_any_more_ends_after_another_discovery() {
    let mut burst = Burst::new(FAST, 0.2, 10_000);
    burst.run_until(20.0);
    burst.fate = Box::new(|_| None);
    burst.run_until(21.0);
    assert_eq!(burst.state(), "BACKOFF");
    burst.left = 0;
    // The application cancels what has been sent; what waits has not been.
    let mut cancelled = 0;
    while burst.node.ep.exchanges().open > 0 {
        let open = burst.accepted[cancelled];
        burst.node.cancel(open);
        cancelled += 1;
    }
    assert!(burst.node.ep.exchanges().queued > 0);
    burst.run_until(29.5);
    burst.node.assert_free();
}

#[test]
fn a_silence_costs_no_timer_once_the_rate_is_at_its_lowest() {
    let mut config = crate::common::node::config("rcoap:ipi-min=0.1ms");
    config.params.ack_timeout = crate::common::secs(0.001);
    config.params.max_retransmit = 200;
    let mut burst = Burst::new("rcoap", 0.001, 1);
    burst.node = crate::common::node::Node::with_rng(config, crate::common::Constant::lowest());
    burst.fate = Box::new(|sent| if sent.is_probe() { answered(sent) } else { None });
    burst.run_until(20.0);
    assert_eq!(burst.state(), "BACKOFF");
    // Its timeouts are 60 s by now: in ten minutes there is little to do.
    burst.run_until(600.0);
    let mut wakes = 0;
    while let Some(due) = burst.node.timeout.filter(|&due| due < crate::common::at(1200.0)) {
        burst.node.now = due;
        burst.node.ep.handle_timeout(due);
        burst.node.settle();
        wakes += 1;
    }
    assert!((5..30).contains(&wakes), "{wakes} wake-ups in ten minutes");
}

#[test]
fn a_slow_answer_to_a_fast_discovery_does_not_wake_the_sender_again_and_again() {
    let mut burst = Burst::new("rcoap:start-interval=1ms:ipi-min=1ms", 7.0, 1);
    // Only the first ping is answered, after seven seconds; two round trips are fourteen.
    let mut first = true;
    burst.fate =
        Box::new(move |sent| if core::mem::take(&mut first) { answered(sent) } else { None });
    burst.run_until(8.0);
    assert_eq!((burst.state(), burst.probes()), ("INITIAL", 1025));
    let due = burst.node.timeout.expect("the end of the two round trips");
    assert!(due >= crate::common::at(21.0), "{due:?}");
}
