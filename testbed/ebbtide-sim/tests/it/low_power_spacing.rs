//! The wait of Contiki's CSMA between two frames for the same neighbour.

use crate::common::run;
use ebbtide_sim::record::RunRecord;
use ebbtide_sim::scenario::{Override, Source, load};

/// One client, one mote next to the border router, no losses: one request of one frame, and its
/// response.
fn one_exchange(response: &str, spacing: &str, duty_cycle: &str) -> RunRecord {
    let text = load("lln-cloud").unwrap().text;
    let (start, rest) = text.split_once("motes = [").unwrap();
    let (_, end) = rest.split_once("]\n\n").unwrap();
    let text = format!("{start}motes = [[6.0, 15.0]]\n\n{end}").replace("\nroutes = 10\n", "\n");
    let source = Source::new("mine.toml", text);
    let changes = [
        ("exchanges", "1"),
        ("errors", "none"),
        ("workload.response_payload", response),
        ("network.mesh.csma.spacing", spacing),
        ("duty_cycle", duty_cycle),
    ];
    let changes: Vec<Override> = changes
        .iter()
        .map(|(key, value)| Override { key: (*key).to_owned(), value: (*value).to_owned() })
        .collect();
    run(&source.scenario(&changes).unwrap(), "default", 1, 0)
}

/// How long it took, ns, and how many frames were handed to the MAC.
fn took(record: &RunRecord) -> (u64, u64) {
    let mesh = record.totals.mesh.as_ref().unwrap();
    (mesh.measured_ns, mesh.nodes.iter().map(|node| node.frames.accepted).sum())
}

#[test]
fn a_frame_that_is_queued_waits_for_the_time_since_the_one_before() {
    let (plain, frames) = took(&one_exchange("300", "0 s", "off"));
    assert!(frames >= 4, "{frames}");
    for millis in [50, 125] {
        let (spaced, same) = took(&one_exchange("300", &format!("{millis} ms"), "off"));
        assert_eq!(same, frames);
        // Before each fragment of the response but the first; the request is one frame.
        let waits = (frames - 2) * millis * 1_000_000;
        let more = spaced - plain;
        // The interframe spacing is spent within the wait.
        assert!((waits - (frames - 2) * 700_000..=waits).contains(&more), "{more} {waits}");
    }
}

#[test]
fn a_frame_that_finds_no_other_does_not_wait() {
    let plain = took(&one_exchange("20", "0 s", "off"));
    assert_eq!(plain.1, 2);
    assert_eq!(took(&one_exchange("20", "125 ms", "off")), plain);
}

#[test]
fn with_duty_cycling_queued_frames_follow_in_a_burst() {
    for duty_cycle in ["contikimac", "contikimac-phase-lock", "contiki"] {
        let plain = took(&one_exchange("300", "0 s", duty_cycle));
        assert_eq!(took(&one_exchange("300", "125 ms", duty_cycle)), plain, "{duty_cycle}");
    }
}
