//! Cells under the rule of [`judge`](crate::judge).

use super::Cell;
use crate::judge::{Candidate, Percentile, Verdict, judge};

/// Judges the cells of one setting.
#[must_use]
pub fn judge_cells<'c>(cells: impl Iterator<Item = &'c Cell>, percentile: Percentile) -> Verdict {
    let candidates: Vec<Candidate<'_>> =
        cells.map(|cell| Candidate { cc: &cell.cc, outcome: &cell.outcome }).collect();
    judge(&candidates, percentile)
}

/// Judges the cells of one setting for each class of clients. Returns each class's cells, and the judgement on
/// them; nothing in a scenario without classes.
#[must_use]
pub fn judge_classes<'c>(
    cells: impl Iterator<Item = &'c Cell>,
    percentile: Percentile,
) -> Vec<(Vec<&'c Cell>, Verdict)> {
    let cells: Vec<&Cell> = cells.collect();
    let count = cells.iter().map(|cell| cell.classes.len()).max().unwrap_or(0);
    let class = |index: usize| {
        let own: Vec<&Cell> = cells.iter().filter_map(|cell| cell.classes.get(index)).collect();
        let verdict = judge_cells(own.iter().copied(), percentile);
        (own, verdict)
    };
    (0..count).map(class).collect()
}
