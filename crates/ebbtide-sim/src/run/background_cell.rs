//! The figures of a cell with TCP in the background.

use crate::record::{BackgroundFlow, RunRecord};
use crate::report::BackgroundCell;

/// Computes a cell's figures from its replications; returns `None` without such flows.
pub(super) fn background_cell(records: &[RunRecord]) -> Option<BackgroundCell> {
    let flows = || records.iter().flat_map(|record| &record.totals.background);
    let flows_each = records.iter().map(|record| record.totals.background.len()).max()?;
    if flows_each == 0 {
        return None;
    }
    let replications = records.len() as f64;
    let sum = |field: fn(&BackgroundFlow) -> u64| {
        let rate = |flow: &BackgroundFlow| {
            let ns = flow.end_ns.saturating_sub(flow.start_ns).max(1);
            field(flow) as f64 * 8e9 / ns as f64
        };
        // A flow that delivered nothing has no time of its own.
        flows().filter(|flow| flow.delivered > 0).map(rate).sum::<f64>() / replications
    };
    Some(BackgroundCell {
        flows: u32::try_from(flows_each).unwrap_or(u32::MAX),
        offered_bps: sum(|flow| flow.offered),
        delivered_bps: sum(|flow| flow.delivered),
        retransmissions: flows().map(|flow| u64::from(flow.retransmissions)).sum(),
        unnecessary: flows().map(|flow| u64::from(flow.unnecessary)).sum(),
    })
}
