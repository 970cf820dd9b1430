//! The judgement: which control to use in a network, and why. One rule for the terminal, the JSON
//! document and the report; `docs/verdict.md` states it.
//!
//! It reads what replications have measured and runs nothing.

mod figures;
mod outcome;
mod rule;
mod sentence;

use crate::report::Cell;
pub use figures::figures;
pub use outcome::{Demand, Outcome, Percentile, RunFigures, SHARES};
pub use rule::{Difference, Judgement, Verdict, judge};

/// A control and what it has come to in one setting.
#[derive(Copy, Clone, Debug)]
pub struct Candidate<'c> {
    /// Its name.
    pub cc: &'c str,
    /// Its figures.
    pub outcome: &'c Outcome,
}

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

/// A difference in time or in cost below this share of the smaller value decides nothing.
pub const MARGIN: f64 = 0.02;

/// More than this share of the transmissions unnecessary is a collapse.
pub const WASTE: f64 = 0.5;

/// A link that is full and delivers less than this share of its capacity has collapsed.
pub const GOODPUT: f64 = 0.5;

/// A link is full that works this share of the time.
pub const FULL: f64 = 0.9;
