//! `rcoap` step by step, in an endpoint (RCOAP21 section III).

use crate::common::receiver::{Burst, answered, losing};

/// R_start 2/s, R_max 2.5/s: what the paper's three flows are told.
const PAPER: &str = "rcoap:start-interval=500ms:ipi-min=400ms";
/// R_max 100/s.
const FAST: &str = "rcoap:start-interval=100ms:ipi-min=10ms";

/// Equal to within a microsecond.
#[track_caller]
fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 2e-6, "{got}, not {expected}");
}

#[test]
fn pings_leave_at_the_start_rate_until_two_round_trips_after_the_first_answer() {
    let mut burst = Burst::new(PAPER, 0.6, 100);
    burst.run_until(1.7);
    assert_eq!(burst.state(), "INITIAL");
    let pings: Vec<f64> = burst.log.iter().map(|sent| sent.at.as_nanos() as f64 / 1e9).collect();
    assert_eq!(pings, [0.0, 0.5, 1.0, 1.5]);
    assert!(burst.log.iter().all(|sent| sent.is_probe()));
    burst.run_until(1.8);
    assert_eq!(burst.state(), "NORMAL");
    near(burst.interval(), 0.5);
    burst.run_until(2.0);
    assert_eq!(burst.departures(), [2.0], "the first message follows the last ping");
}

#[test]
fn the_initial_rate_is_what_the_path_answers_if_that_is_less_than_the_start_rate() {
    // 100 pings a second into a link that carries 25: two round trips of about 0.2 s count.
    let mut burst = Burst::new("rcoap:start-interval=10ms:ipi-min=10ms", 0.2, 1000).behind(0.04);
    while burst.node.ep.counters().sent == 0 || burst.state() == "INITIAL" {
        let now = burst.node.now.as_nanos() as f64 / 1e9;
        burst.run_until(now + 0.01);
    }
    let rate = 1.0 / burst.interval();
    assert!((rate - 25.0).abs() < 0.05 * 25.0, "{rate} messages a second, the link carries 25");
}

#[test]
fn without_a_start_rate_the_spacing_of_a_pair_of_answers_gives_one() {
    let mut burst = Burst::new("rcoap:ipi-min=1ms", 0.1, 1000).behind(0.01);
    burst.run_until(0.111);
    assert_eq!(burst.probes(), 2, "a pair, at once");
    assert!(burst.log.iter().all(|sent| sent.at == crate::common::at(0.0)));
    burst.run_until(0.121);
    // 10 ms for a ping of 32 bytes with its headers; a GET with a token of 4 bytes has 36.
    near(burst.interval(), 0.01 * 36.0 / 32.0);
    burst.run_until(1.0);
    assert_eq!(burst.state(), "NORMAL");
}

#[test]
fn a_pair_that_loses_one_answer_starts_with_one_message_per_round_trip() {
    let mut burst = Burst::new("rcoap", 0.1, 1000);
    let mut count = 0;
    burst.fate = Box::new(move |datagram| {
        count += 1;
        if count == 2 { None } else { answered(datagram) }
    });
    burst.run_until(0.199);
    assert_eq!(burst.probes(), 2, "the other answer has a round trip");
    burst.run_until(0.201);
    assert_eq!((burst.state(), burst.probes()), ("INITIAL", 3));
    near(burst.interval(), 0.1);
    burst.run_until(3.0);
    assert_eq!(burst.state(), "NORMAL");
}

#[test]
fn a_round_trip_without_loss_adds_one_message_per_round_trip() {
    let mut burst = Burst::new(FAST, 0.2, 10_000);
    burst.run_until(0.61);
    assert_eq!(burst.state(), "NORMAL");
    near(burst.interval(), 0.1);
    // 10/s, then 5/s more per round trip of 0.2 s in which something is answered.
    let mut rates = vec![];
    for step in 1..=8 {
        burst.run_until(0.61 + 0.2 * f64::from(step));
        rates.push((1.0 / burst.interval()).round() as u32);
    }
    assert!(rates.windows(2).all(|pair| pair[1] - pair[0] <= 5 && pair[1] >= pair[0]), "{rates:?}");
    assert!(*rates.last().unwrap() >= 35, "{rates:?}");
}

#[test]
fn a_rate_beyond_what_the_path_answers_is_not_raised_further() {
    // The link carries 25 messages a second, and its buffer holds whatever comes.
    let mut burst =
        Burst::new("rcoap:start-interval=100ms:ipi-min=1ms:in-flight=50", 0.5, 10_000).behind(0.04);
    let mut fastest = f64::INFINITY;
    for second in 10..100 {
        burst.run_until(f64::from(second));
        fastest = fastest.min(burst.interval());
    }
    assert!(1.0 / fastest < 25.0 * 1.5, "{} messages a second", 1.0 / fastest);
    assert_eq!(burst.copies(), 0, "nothing is lost");
    assert!(burst.departures().len() > 90 * 24, "{} messages", burst.departures().len());
}

#[test]
fn the_largest_rate_is_honoured() {
    let mut burst = Burst::new(FAST, 0.2, 10_000);
    burst.run_until(60.0);
    near(burst.interval(), 0.01);
    let departures = burst.departures();
    assert!(departures.windows(2).all(|pair| pair[1] - pair[0] > 0.0099), "IPI_min is 10 ms");
    let late = departures.iter().filter(|at| **at > 50.0).count();
    assert!((990..=1001).contains(&late), "{late} in 10 s at 100/s");
    assert_eq!(burst.copies(), 0, "no retransmission without loss");
}

#[test]
fn no_more_than_the_rate_times_the_round_trip_is_in_flight() {
    let mut burst = Burst::new("rcoap:start-interval=100ms:ipi-min=100ms", 0.45, 1000);
    let mut most = 0;
    for step in 0..400 {
        burst.run_until(5.0 + f64::from(step) / 100.0);
        most = most.max(burst.node.ep.exchanges().open);
    }
    assert_eq!(most, 5, "10/s x 0.45 s, rounded up");
}

#[test]
fn a_given_cap_replaces_it() {
    for cap in [1, 3] {
        let text = format!("rcoap:start-interval=100ms:ipi-min=100ms:in-flight={cap}");
        let mut burst = Burst::new(&text, 0.45, 1000);
        let mut most = 0;
        for step in 0..400 {
            burst.run_until(5.0 + f64::from(step) / 100.0);
            most = most.max(burst.node.ep.exchanges().open);
        }
        assert_eq!(most, cap);
    }
}

#[test]
fn a_timeout_halves_the_rate_and_the_answer_to_the_copy_restores_it_within_a_round_trip() {
    let mut burst = Burst::new(PAPER, 0.5, 1000);
    burst.fate = losing(&[10]);
    burst.run_until(5.0);
    near(burst.interval(), 0.4);
    while burst.state() == "NORMAL" {
        let now = burst.node.now.as_nanos() as f64 / 1e9;
        burst.run_until(now + 0.001);
    }
    assert_eq!(burst.state(), "LOSS_DETECTION");
    near(burst.interval(), 0.8);
    assert_eq!(burst.copies(), 1, "repeated at once");
    let began = burst.node.now.as_nanos() as f64 / 1e9;
    burst.run_until(began + 0.49);
    assert_eq!(burst.state(), "LOSS_DETECTION");
    burst.run_until(began + 0.501);
    assert_eq!(burst.state(), "NORMAL");
    near(burst.interval(), 0.4);
}

#[test]
fn after_two_losses_in_a_row_the_rate_stays_down_and_rises_step_by_step() {
    let mut burst = Burst::new(FAST, 0.2, 10_000);
    burst.run_until(20.0);
    near(burst.interval(), 0.01);
    // From now on two messages that follow each other are lost, then none.
    let mut count = 0;
    burst.fate = Box::new(move |datagram| {
        count += 1;
        if count <= 2 { None } else { answered(datagram) }
    });
    let mut slowest = 0.0f64;
    let mut restored = None;
    let mut seen = vec![burst.state()];
    for step in 0..5000 {
        let now = 20.0 + f64::from(step) / 1000.0;
        burst.run_until(now);
        slowest = slowest.max(burst.interval());
        if seen.last() != Some(&burst.state()) {
            seen.push(burst.state());
        }
        if burst.interval() < 0.0101 && slowest > 0.015 {
            restored.get_or_insert(now);
        }
    }
    assert_eq!(seen, ["NORMAL", "LOSS_DETECTION", "BACKOFF", "NORMAL"]);
    near(slowest, 0.02);
    // 50/s, and 5/s more per 0.2 s: ten round trips to 100/s.
    let restored = restored.expect("the rate recovers");
    assert!(restored > 20.2 + 10.0 * 0.2, "restored at {restored}, not step by step");
}

#[test]
fn an_overflow_that_loses_many_messages_at_once_halves_the_rate_once() {
    let mut burst = Burst::new(FAST, 0.4, 10_000);
    burst.run_until(30.0);
    near(burst.interval(), 0.01);
    // Every other one of the next forty, a whole round trip of them.
    let mut count = 0;
    burst.fate = Box::new(move |datagram| {
        count += 1;
        if count <= 40 && count % 2 == 0 { None } else { answered(datagram) }
    });
    let mut slowest = 0.0f64;
    for step in 0..3000 {
        burst.run_until(30.0 + f64::from(step) / 1000.0);
        slowest = slowest.max(burst.interval());
    }
    assert_eq!(burst.copies(), 20);
    near(slowest, 0.02);
}

#[test]
fn a_loss_at_the_halved_rate_halves_it_again() {
    let mut burst = Burst::new(FAST, 0.2, 10_000);
    burst.run_until(20.0);
    let mut count = 0;
    burst.fate = Box::new(move |datagram| {
        count += 1;
        // Two in a row, and two more 0.8 s later, which left at the halved rate.
        if matches!(count, 1 | 2 | 60 | 61) { None } else { answered(datagram) }
    });
    let mut slowest = 0.0f64;
    for step in 0..4000 {
        burst.run_until(20.0 + f64::from(step) / 1000.0);
        slowest = slowest.max(burst.interval());
    }
    assert!(slowest > 0.025, "{slowest}");
}

#[test]
fn in_backoff_the_rate_is_halved_per_round_trip_and_pings_take_the_place_of_messages() {
    let mut burst = Burst::new(FAST, 0.2, 10_000);
    burst.run_until(20.0);
    let before = burst.log.len();
    burst.fate = Box::new(|_| None);
    let mut intervals = vec![];
    for step in 0..3000 {
        burst.run_until(20.0 + f64::from(step) / 1000.0);
        let interval = burst.interval();
        if intervals.last() != Some(&interval) {
            intervals.push(interval);
        }
    }
    assert_eq!(burst.state(), "BACKOFF");
    assert_eq!(intervals[0], 0.01);
    assert!(
        intervals.windows(2).all(|pair| (pair[1] / pair[0] - 2.0).abs() < 1e-9),
        "{intervals:?}"
    );
    assert!(intervals.len() >= 7, "{intervals:?}");
    let silent = burst.log.iter().skip(before).filter(|sent| sent.at > crate::common::at(20.8));
    let (pings, messages): (Vec<_>, Vec<_>) = silent.partition(|sent| sent.is_probe());
    assert!(!pings.is_empty());
    assert!(messages.iter().all(|sent| sent.ordinal() > 0), "no new message into the silence");
    // Somebody answers a ping: NORMAL, at the rate that is left.
    burst.fate = Box::new(answered);
    let low = burst.interval();
    while burst.state() == "BACKOFF" {
        let now = burst.node.now.as_nanos() as f64 / 1e9;
        burst.run_until(now + 0.001);
    }
    assert!(burst.interval() >= low);
}

#[test]
fn a_message_backs_off_by_its_first_timeout_and_is_repeated_four_times() {
    for (round_trip, factor) in [(0.05, 3.0), (0.8, 2.0), (2.5, 1.3)] {
        let mut burst = Burst::new(FAST, round_trip, 40);
        burst.run_until(20.0 * round_trip.max(0.5));
        burst.node.take();
        let begun = burst.log.len();
        burst.left = 1;
        burst.fate =
            Box::new(|datagram| if datagram.is_probe() { answered(datagram) } else { None });
        let now = burst.node.now.as_nanos() as f64 / 1e9;
        burst.run_until(now + 300.0);
        let sent = &burst.log[begun..];
        let timeouts: Vec<f64> = sent
            .iter()
            .filter(|datagram| !datagram.is_probe())
            .map(|datagram| crate::common::float(datagram.timeout()))
            .collect();
        assert_eq!(timeouts.len(), 5, "{timeouts:?}");
        for pair in timeouts.windows(2) {
            assert!((pair[1] / pair[0] - factor).abs() < 1e-4, "{round_trip}: {timeouts:?}");
        }
        assert_eq!(burst.node.failures().len(), 1);
    }
}

#[test]
fn a_rate_that_was_not_used_for_long_is_found_out_again() {
    let mut burst = Burst::new(FAST, 0.2, 50);
    burst.run_until(20.0);
    assert_eq!(burst.node.ep.open_exchanges(), 0);
    let probes = burst.probes();
    burst.left = 1;
    burst.run_until(200.0);
    assert_eq!(burst.probes(), probes, "180 s are not long");
    burst.left = 1;
    burst.run_until(456.0);
    burst.left = 1;
    burst.run_until(457.0);
    assert!(burst.probes() > probes, "255 s are");
}

#[test]
fn a_single_request_costs_discovery_and_nothing_else() {
    let mut burst = Burst::new("rcoap", 0.1, 1);
    burst.run_until(10.0);
    assert_eq!((burst.messages(), burst.node.ep.open_exchanges()), (1, 0));
    assert!(burst.departures()[0] <= 0.5, "{:?}", burst.departures());
    burst.node.assert_free();
}
