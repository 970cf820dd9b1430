//! Cells under the rule of [`judge`](crate::judge).

use super::model::Cell;
use crate::judge::{Candidate, Percentile, Verdict, judge, judge_fixed};

/// Judges the cells of one setting.
pub fn judge_cells<'c>(cells: impl Iterator<Item = &'c Cell>, percentile: Percentile) -> Verdict {
    judge(&candidates(cells), percentile)
}

/// Judges the cells of one setting for each phase. Returns each phase's cells, and the judgement on them; nothing in
/// a scenario without phases.
pub fn judge_phases<'c>(
    cells: impl Iterator<Item = &'c Cell>,
    percentile: Percentile,
) -> Vec<(Vec<&'c Cell>, Verdict)> {
    let cells: Vec<&Cell> = cells.collect();
    let count = cells.iter().map(|cell| cell.phases.len()).max().unwrap_or(0);
    let phase = |index: usize| {
        let own: Vec<&Cell> = cells.iter().filter_map(|cell| cell.phases.get(index)).collect();
        let verdict = judge_cells(own.iter().copied(), percentile);
        (own, verdict)
    };
    (0..count).map(phase).collect()
}

fn candidates<'c>(cells: impl Iterator<Item = &'c Cell>) -> Vec<Candidate<'c>> {
    cells.map(|cell| Candidate { cc: &cell.cc, outcome: &cell.outcome }).collect()
}

/// Judges the cells of one setting for each class of clients. Returns each class's cells, and the judgement on
/// them; nothing in a scenario without classes.
pub fn judge_classes<'c>(
    cells: impl Iterator<Item = &'c Cell>,
    percentile: Percentile,
) -> Vec<(Vec<&'c Cell>, Verdict)> {
    let cells: Vec<&Cell> = cells.collect();
    let count = cells.iter().map(|cell| cell.classes.len()).max().unwrap_or(0);
    let class = |index: usize| {
        let own: Vec<&Cell> = cells.iter().filter_map(|cell| cell.classes.get(index)).collect();
        let verdict = match own.first().and_then(|first| Some((first, first.own_control.as_ref()?)))
        {
            Some((first, control)) => {
                judge_fixed(&first.class, control, &candidates(own.iter().copied()), percentile)
            }
            None => judge_cells(own.iter().copied(), percentile),
        };
        (own, verdict)
    };
    (0..count).map(class).collect()
}
