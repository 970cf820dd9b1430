//! The figures of a cell of replications with a Wi-Fi cell.

use crate::record::{RunRecord, StationRecord, WifiRecord};
use crate::report::WifiCell;

/// Computes a cell's figures from its replications; returns `None` for other networks.
pub(super) fn wifi_cell(records: &[RunRecord]) -> Option<WifiCell> {
    let runs: Vec<(&RunRecord, &WifiRecord)> =
        records.iter().filter_map(|record| Some((record, record.totals.wifi.as_ref()?))).collect();
    let mut total = StationRecord::default();
    let mut busy = 0.0;
    for (record, wifi) in &runs {
        let all = wifi.total();
        total.frames += all.frames;
        total.overflows += all.overflows;
        total.peak_queue = total.peak_queue.max(all.peak_queue);
        // What is still in a queue when the last client is done counts no more.
        busy += (wifi.busy_ns as f64 / record.totals.done_ns.max(1) as f64).min(1.0);
    }
    let frames = total.frames;
    let cell = WifiCell {
        packets: frames.accepted + total.overflows,
        overflows: total.overflows,
        given_up: frames.no_ack,
        transmitted: frames.transmitted,
        collided: frames.collided + frames.deaf,
        faded: frames.faded,
        acks_lost: frames.acks_lost,
        peak_queue: total.peak_queue,
        busy: busy / runs.len() as f64,
    };
    (!runs.is_empty()).then_some(cell)
}
