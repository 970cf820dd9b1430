//! Sums, shares and order statistics over the replications of a cell.

use super::model::PacketCounts;
use crate::record::{DirectionCounts, Handshakes, RunRecord, SparseHistogram};
use crate::stats::{Summary, weighted_summary};

pub(super) fn handshakes(records: &[RunRecord]) -> Option<Handshakes> {
    records.iter().filter_map(|record| record.totals.security).reduce(|mut all, one| {
        all += &one;
        all
    })
}

pub(super) fn by_retransmissions(records: &[RunRecord]) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for record in records {
        let counts = &record.totals.by_retransmissions;
        if counts.len() > sums.len() {
            sums.resize(counts.len(), 0);
        }
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    sums
}

pub(super) fn packets(
    records: &[RunRecord],
    side: fn(&RunRecord) -> &DirectionCounts,
) -> PacketCounts {
    records.iter().map(|record| *side(record)).sum()
}

/// The share of the time until the last client was done that a link worked, at most 1: what is
/// still in the queue then counts no more.
pub(super) fn utilisation_of(
    records: &[RunRecord],
    side: impl Fn(&RunRecord) -> DirectionCounts,
) -> f64 {
    let shares = records
        .iter()
        .map(|record| (side(record).busy_ns as f64 / record.totals.done_ns.max(1) as f64).min(1.0));
    shares.sum::<f64>() / records.len().max(1) as f64
}

/// Each percent, 0 to 100, of several histograms of microseconds together, in seconds; empty if
/// there is nothing in them.
pub(super) fn percentiles(
    records: &[RunRecord],
    which: fn(&RunRecord) -> &SparseHistogram,
) -> Vec<f64> {
    let SparseHistogram(counts) = SparseHistogram::together(records.iter().map(which));
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let mut below = 0;
    let mut percentiles = Vec::new();
    for (micros, count) in counts {
        below += count;
        while percentiles.len() <= 100
            && below as f64 > percentiles.len() as f64 / 100.0 * total.saturating_sub(1) as f64
        {
            percentiles.push(micros as f64 / 1e6);
        }
    }
    percentiles
}

/// The order statistics of several histograms of microseconds together, in seconds.
pub(super) fn pool<'h>(histograms: impl Iterator<Item = &'h SparseHistogram>) -> Summary {
    let SparseHistogram(counts) = SparseHistogram::together(histograms);
    let values: Vec<(f64, u64)> =
        counts.into_iter().map(|(micros, count)| (micros as f64 / 1e6, count)).collect();
    weighted_summary(&values)
}
