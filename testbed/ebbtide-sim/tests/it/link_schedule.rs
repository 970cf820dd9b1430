//! Links whose rate and delay change: outages, handovers.

use crate::common::run;
use ebbtide_core::time::Instant;
use ebbtide_sim::net::{Delay, RateStep, Schedule, ScheduleError, Serialiser};
use ebbtide_sim::scenario::{Scenario, Source};
use proptest::prelude::*;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;

fn step(from: u64, bits_per_second: u64) -> RateStep {
    RateStep { from, bits_per_second, delay: Delay::fixed(0) }
}

fn serialiser(steps: &[RateStep], period: Option<u64>) -> Serialiser {
    Serialiser::scheduled(Arc::new(Schedule::new(steps.to_vec(), period).unwrap()))
}

fn accept(serialiser: &mut Serialiser, now: u64, bytes: u32) -> (u64, u64) {
    let (start, left) = serialiser.accept(Instant::from_nanos(now), bytes);
    (start.as_nanos(), left.as_nanos())
}

#[test]
fn a_packet_is_transmitted_partly_at_the_old_and_partly_at_the_new_rate() {
    let mut link = serialiser(&[step(0, 8_000), step(SECOND, 16_000)], None);
    // 1000 bytes in the first second, 1000 in half of the next.
    assert_eq!(accept(&mut link, 0, 2_000), (0, 3 * SECOND / 2));
}

#[test]
fn in_an_outage_packets_wait_and_the_one_under_way_goes_on_after_it() {
    let steps = [step(0, 8_000), step(SECOND / 2, 0), step(3 * SECOND, 8_000)];
    let mut link = serialiser(&steps, None);
    assert_eq!(accept(&mut link, 0, 1_000), (0, 7 * SECOND / 2));
    let mut link = serialiser(&steps, None);
    // One that comes in the outage starts at its end.
    assert_eq!(accept(&mut link, SECOND, 1_000), (3 * SECOND, 4 * SECOND));
}

#[test]
fn a_schedule_with_a_period_begins_anew() {
    let mut link = serialiser(&[step(0, 8_000), step(SECOND, 0)], Some(2 * SECOND));
    assert_eq!(accept(&mut link, 0, 2_500), (0, 4 * SECOND + SECOND / 2));
    assert_eq!(accept(&mut link, 11 * SECOND, 1), (12 * SECOND, 12 * SECOND + SECOND / 1_000));
}

#[test]
fn steps_that_make_no_schedule_are_refused() {
    let refused = |steps: &[RateStep], period| Schedule::new(steps.to_vec(), period).unwrap_err();
    assert_eq!(refused(&[], None), ScheduleError::OutOfOrder);
    assert_eq!(refused(&[step(5, 1)], None), ScheduleError::OutOfOrder);
    assert_eq!(refused(&[step(0, 1), step(0, 2)], None), ScheduleError::OutOfOrder);
    assert_eq!(refused(&[step(0, 1), step(9, 2)], Some(9)), ScheduleError::ShortPeriod);
    assert_eq!(refused(&[step(0, 1), step(9, 0)], None), ScheduleError::NeverTransmits);
    assert_eq!(refused(&[step(0, 0)], Some(9)), ScheduleError::NeverTransmits);
}

proptest! {
    /// Packets back to back take as long as all their bytes at once: no rounding accumulates.
    #[test]
    fn a_busy_period_takes_as_long_as_its_bytes(
        rates in prop::collection::vec((1u64..5_000_000_000, 0u64..2_000_000), 1..6),
        last in 1u64..2_000_000,
        is_periodic: bool,
        lengths in prop::collection::vec(1u32..2000, 1..50),
    ) {
        let mut from = 0;
        let mut steps = Vec::new();
        for (span, rate) in rates {
            steps.push(step(from, rate));
            from += span;
        }
        steps.push(step(from, last));
        let period = is_periodic.then_some(from + SECOND);
        let total: u32 = lengths.iter().sum();
        let whole = accept(&mut serialiser(&steps, period), 0, total).1;
        let mut link = serialiser(&steps, period);
        let mut left = 0;
        for bytes in lengths {
            let (start, end) = accept(&mut link, 0, bytes);
            prop_assert!(start >= left && end >= start);
            left = end;
        }
        prop_assert!(left.abs_diff(whole) <= 1, "{left} for {whole}");
    }

    /// A schedule of one rate is that rate.
    #[test]
    fn a_constant_schedule_is_the_rate(
        rate in 1u64..10_000_000,
        lengths in prop::collection::vec((0u64..SECOND, 1u32..2000), 1..30),
    ) {
        let (mut fixed, mut scheduled) = (Serialiser::new(rate), serialiser(&[step(0, rate)], None));
        let mut now = 0;
        for (gap, bytes) in lengths {
            now += gap;
            let (a, b) = (accept(&mut fixed, now, bytes), accept(&mut scheduled, now, bytes));
            prop_assert!(a.0.abs_diff(b.0) <= 1 && a.1.abs_diff(b.1) <= 1, "{a:?} {b:?}");
        }
    }
}

const OUTAGE: &str = r#"
name = "outage"
title = "One client through an outage"
[network]
[network.up]
rate = "100 kbit/s"
delay = "10 ms"
buffer = "infinite"
[[network.up.schedule]]
at = "1 s"
rate = 0
[[network.up.schedule]]
at = "31 s"
rate = "100 kbit/s"
delay = "200 ms"
[network.down]
rate = "100 kbit/s"
delay = "10 ms"
buffer = "infinite"
[clients]
count = 1
[workload]
kind = "continuous"
exchanges = 100
"#;

fn scenario(text: &str) -> Scenario {
    Source::new("outage.toml", text).scenario(&[]).unwrap()
}

fn with(change: &str, by: &str) -> String {
    assert!(OUTAGE.contains(change));
    OUTAGE.replacen(change, by, 1)
}

#[test]
fn a_client_gets_everything_through_an_outage() {
    let scenario = scenario(OUTAGE);
    let record = run(&scenario, "fasor-token", 1, 0);
    let client = &record.clients[0];
    assert_eq!((client.completed, client.failed), (100, 0));
    // Some thirty exchanges before, thirty seconds of silence, the rest at 210 ms each.
    let seconds = client.fct.as_nanos() as f64 / 1e9;
    assert!((40.0..60.0).contains(&seconds), "{seconds} s");
}

#[test]
fn an_invalid_schedule_names_the_key() {
    for (change, by, key) in [
        ("at = \"31 s\"", "at = \"1 s\"", "in the order of time"),
        (
            "at = \"31 s\"\nrate = \"100 kbit/s\"\ndelay = \"200 ms\"",
            "at = \"31 s\"",
            "a rate or a delay",
        ),
        ("rate = 0", "rate = 5", "not a rate"),
        ("delay = \"200 ms\"", "delay = \"25 h\"", "delays of at most a day"),
        ("at = \"31 s\"\nrate = \"100 kbit/s\"", "at = \"31 s\"", "outage"),
        (
            "buffer = \"infinite\"",
            "buffer = \"infinite\"\nschedule_period = \"20 s\"",
            "schedule_period",
        ),
    ] {
        let error = Source::new("outage.toml", with(change, by)).scenario(&[]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("network.up.schedule") || text.contains("rate"), "{text}");
        assert!(text.contains(key), "{text}");
    }
}

#[test]
fn an_invalid_queue_names_the_key() {
    for (queue, says) in [
        ("kind = \"codell\"", "codel"),
        ("kind = \"codel\"\ntarget = \"0 s\"", "network.up.queue.target"),
        ("kind = \"codel\"\nmin = 5", "min"),
        ("kind = \"red\"\nmin = 10\nmax = 5", "network.up.queue.max"),
        ("kind = \"fq-codel\"\nqueues = 0", "network.up.queue.queues"),
    ] {
        let text = with("[network.down]", &format!("[network.up.queue]\n{queue}\n[network.down]"));
        let error = Source::new("queue.toml", text).scenario(&[]).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_scenario_runs_under_every_queue_discipline_and_short_waits_come_of_those_that_manage() {
    let measure = |queue: &str| {
        let text = with("count = 1", "count = 40")
            .replace("[network.down]", &format!("[network.up.queue]\n{queue}\n[network.down]"))
            .replace("exchanges = 100", "exchanges = 20");
        let record = run(&scenario(&text), "default", 1, 0);
        let done: u32 = record.clients.iter().map(|client| client.completed + client.failed).sum();
        assert_eq!(done, 800, "{queue}");
        let round_trips = &record.totals.rtt.0;
        let count: u64 = round_trips.iter().map(|(_, count)| count).sum();
        let mean = round_trips.iter().map(|(micros, count)| micros * count).sum::<u64>() / count;
        (mean, record.totals.up.dropped_queue)
    };
    let (tail_drop, dropped) = measure("kind = \"tail-drop\"");
    assert_eq!(dropped, 0, "an infinite buffer");
    for queue in ["kind = \"codel\"", "kind = \"pie\"", "kind = \"red\"\nmin = 500\nmax = 3000"] {
        let (mean, dropped) = measure(queue);
        assert!(dropped > 0, "{queue} dropped nothing");
        assert!(mean < tail_drop, "{queue}: {mean} us for {tail_drop}");
    }
    // One request of each client waits at most: no flow has a standing queue.
    assert_eq!(measure("kind = \"fq-codel\"").1, 0);
}
