//! Four questions of an operator, each answered by one command, and compared with what can be computed without the
//! simulator. `studies/four-questions.md` compares more of them with a model of its own.

use crate::common::assert_near;
use ebbtide_sim::result::Cell;
use ebbtide_sim::run::{Campaign, Results, Until};
use ebbtide_sim::scenario::{Axis, load, parse_set};

fn axes(set: &[&str]) -> Vec<Axis> {
    set.iter().map(|text| parse_set(text).unwrap()).collect()
}

fn run(name: &str, set: &[&str], cc: &[&str], reps: u32) -> Results {
    let cc = cc.iter().map(|cc| (*cc).to_owned()).collect();
    let campaign = Campaign::plan(load(name).unwrap(), axes(set), cc, Some(reps), Some(1)).unwrap();
    campaign.run(None, None, &()).unwrap()
}

fn cells(results: &Results) -> Vec<&Cell> {
    results.cells.iter().map(|(_, result)| &result.cell).collect()
}

/// "Which control lets 99.5 % of the alarms through within 10 s, at least energy?", with losses of 10 % each way.
#[test]
fn the_alarms_in_time_under_the_default_timers_are_those_of_three_attempts() {
    let set = [
        "meters=50",
        "alarms=200",
        "class.alarms.workload.exchanges=20",
        "class.alarms.workload.deadline=10 s",
        "class.alarms.require.in_time=0.995",
        "errors=low",
        "errors.low.average=0.1",
    ];
    let results = run("alarms", &set, &["default", "fasor-token"], 3);
    let cells = cells(&results);
    // The timers of RFC 7252 expire after 2 to 3 s, 6 to 9 s and 14 s or more: three copies come in time.
    let each: f64 = 0.9 * 0.9;
    let missed = 1.0 - each;
    let found: Vec<f64> = cells.iter().map(|cell| cell.outcome.checks[0].found).collect();
    // 12,000 alarms: four deviations are 0.003.
    assert!((found[0] - (1.0 - missed * missed * missed)).abs() < 0.003, "{found:?}");
    assert!(found[0] < 0.995 && found[1] >= 0.995, "{found:?}");
    // 99.9 % are not in time under either: four copies would be 99.87 %.
    assert!(found[1] < 0.999, "{found:?}");
    // Energy: nothing is congested, so every control sends each message as often as losses demand.
    for cell in &cells {
        let sent = cell.outcome.all.transmissions_per_delivered;
        assert_near(sent, 1.0 / each, 0.02, &cell.cc);
    }
    let (_, verdict) = results.judged(Default::default()).remove(0);
    assert_eq!(verdict.choose.as_deref(), Some("fasor-token"), "{}", verdict.sentence);
}

/// "How many meters can this cell take?": all report once within 10 s, and 99 % of the reports are
/// to be answered within 1.5 s, before any timer expires.
#[test]
fn the_meters_that_a_cell_takes_are_those_of_a_queue_computed_by_hand() {
    let set = ["exchanges=1", "workload.deadline=1.5 s", "require.in_time=0.99"];
    let cc = vec!["default".to_owned()];
    let until = Until::plan("clients", load("fleet").unwrap(), axes(&set), cc, Some(3)).unwrap();
    let found = until.run(&()).unwrap();
    let found: f64 = found.points[0].meets().unwrap().value.parse().unwrap();
    // Lindley's recursion on arrivals that are evenly spread: a report of 99 bytes takes 2.112 ms.
    let service = f64::from((28 + 4 + 6 + 1 + 60) * 8) / 375e3;
    let in_time = |count: u32| {
        let (mut free, mut late) = (0.0f64, 0u32);
        for number in 0..count {
            let at = 10.0 * f64::from(number) / f64::from(count);
            free = free.max(at) + service;
            // A round trip of 140 ms on average, and an acknowledgement of 32 bytes.
            late += u32::from(free - at + 0.140 + 32.0 * 8.0 / 375e3 > 1.5);
        }
        1.0 - f64::from(late) / f64::from(count) >= 0.99
    };
    let (mut low, mut high) = (1000, 20_000);
    while high - low > 1 {
        let middle = u32::midpoint(low, high);
        if in_time(middle) { low = middle } else { high = middle }
    }
    assert_near(found, low.into(), 0.04, "meters");
}

/// "What happens at 6:00 when the power comes back?"
#[test]
fn the_exchanges_of_the_morning_are_those_that_return_and_report() {
    let results = run("morning", &["clients=1000", "rate=2 Mbit/s"], &["default"], 3);
    let cell = cells(&results)[0];
    let morning = cell.phases.iter().find(|phase| phase.phase == "power-is-back").unwrap();
    // Every meter reports on its return, 15 s after 6:00 on average, and three quarters have their report of the next
    // minute still before them.
    assert_near(morning.outcome.asked as f64, 3.0 * 1750.0, 0.02, "exchanges");
    assert_eq!(morning.outcome.all.deadline_missed, Some(0.0));
    // Four reports of each before 5:50, and the one of 6:15.
    let asked = |name: &str| {
        let phase = cell.phases.iter().find(|phase| phase.phase == name).unwrap();
        phase.outcome.asked
    };
    assert_eq!((asked("before"), asked("after")), (3 * 4000, 3 * 1000));
}

/// "What if we halve the buffer?"
#[test]
fn half_the_buffer_takes_half_of_the_reports_that_come_at_once() {
    let set = [
        "buffer=50 kB,25 kB",
        "exchanges=1",
        "window=0 s",
        "max_retransmit=0",
        "coap.ack_timeout=60 s",
    ];
    let results = run("fleet", &set, &["default"], 1);
    // One packet is on its way while the others wait: 99 bytes each, as many as the buffer holds.
    let bytes = 28 + 4 + 6 + 1 + 60;
    for (cell, buffer) in cells(&results).iter().zip([50_000, 25_000]) {
        assert_eq!(cell.number("completed") as u64, 1 + buffer / bytes, "{buffer} bytes");
    }
}
