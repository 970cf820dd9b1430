//! Explicit congestion notification in scenarios: packets are marked, counted, and slow their receivers down.

use crate::common::run;
use ebbtide_sim::record::{RunRecord, SparseHistogram};
use ebbtide_sim::scenario::{Scenario, Source};

fn source(queue: &str) -> Source {
    Source::new(
        "x.toml",
        format!(
            "name = \"x\"\ntitle = \"x\"\n[network]\nheader = 0\nmtu = 200\n\
             [network.up]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nbuffer = \"infinite\"\n\
             [network.down]\nrate = \"2 kbit/s\"\ndelay = \"10 ms\"\nbuffer = \"infinite\"\n\
             queue = {{ {queue} }}\n[clients]\ncount = 20\n[workload]\nkind = \"continuous\"\n\
             exchanges = 20\n[coap]\nack_timeout = \"60 s\"\n"
        ),
    )
}

fn scenario(queue: &str) -> Scenario {
    source(queue).scenario(&[]).unwrap()
}

#[test]
fn marked_packets_are_counted_and_arrive() {
    let codel = "kind = \"codel\", target = \"500 ms\", interval = \"2 s\"";
    let dropping = run(&scenario(codel), "default", 1, 0).totals.down;
    assert!(dropping.dropped_queue > 0 && dropping.marked == 0, "{dropping:?}");
    let marking = run(&scenario(&format!("{codel}, ecn = true")), "default", 1, 0);
    let (up, down) = (marking.totals.up, marking.totals.down);
    assert!(down.marked > 0 && down.dropped_queue == 0, "{down:?}");
    assert_eq!((down.delivered, up.marked), (down.sent, 0));
    assert!(marking.clients.iter().all(|client| client.completed == 20));
}

#[test]
fn the_marks_reach_the_endpoints_which_send_less() {
    let codel = "kind = \"codel\", target = \"500 ms\", interval = \"2 s\", ecn = true";
    for control in ["default", "linux-rto", "fasor-token", "ebb"] {
        let marking = run(&scenario(codel), control, 1, 0);
        // The same queue, but nobody sees what it marks: nothing is dropped either.
        let blind = run(&scenario("kind = \"tail-drop\""), control, 1, 0);
        let (seen, unseen) = (marking.totals.down, blind.totals.down);
        assert!(seen.marked > 0 && unseen.dropped_queue == 0, "{control}: {seen:?} {unseen:?}");
        let round_trip = |record: &RunRecord| {
            let SparseHistogram(counts) = &record.totals.rtt;
            let sum: f64 = counts.iter().map(|(micros, count)| (micros * count) as f64).sum();
            sum / counts.iter().map(|(_, count)| *count as f64).sum::<f64>() / 1e6
        };
        let (seen, unseen) = (round_trip(&marking), round_trip(&blind));
        assert!(
            seen < 0.8 * unseen,
            "{control}: round trips of {seen} s, without marks {unseen} s"
        );
        assert!(marking.clients.iter().all(|client| client.completed == 20), "{control}");
    }
}

#[test]
fn a_queue_without_early_drops_has_nothing_to_mark() {
    let error = source("kind = \"tail-drop\", ecn = true").scenario(&[]).unwrap_err().to_string();
    assert!(error.contains("ecn"), "{error}");
}
