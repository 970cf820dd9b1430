//! The judgement: which control to use, how far each is from the limit, which ones collapse.

#![expect(
    clippy::disallowed_methods,
    reason = "a geometric mean that ranks and is printed to a few digits: its last bit never shows"
)]

use super::grid::{by_settings, controls, distinct, varying};
use super::model::{Cell, Report};

/// A median beyond so many times the physical limit is a collapse.
pub(super) const COLLAPSE_MULTIPLE: f64 = 3.0;

/// More than this share of the transmissions unnecessary is a collapse.
pub(super) const COLLAPSE_UNNECESSARY: f64 = 0.5;

/// More than this share of the exchanges failed is a collapse.
pub(super) const COLLAPSE_FAILED: f64 = 0.1;

/// A median this near to the best counts as equally good.
pub(super) const NEAR: f64 = 0.05;

/// Why a cell counts as collapsed, if it does.
pub(super) fn collapse(cell: &Cell) -> Option<&'static str> {
    if !cell.fct.median.is_finite() || cell.completed == 0 {
        return Some("nothing completed");
    }
    if cell.multiple().is_some_and(|multiple| multiple > COLLAPSE_MULTIPLE) {
        return Some("beyond three times the limit");
    }
    if unnecessary_share(cell).is_some_and(|share| share > COLLAPSE_UNNECESSARY) {
        return Some("most transmissions unnecessary");
    }
    (failed_share(cell) > COLLAPSE_FAILED).then_some("more than a tenth of the exchanges failed")
}

/// Share of the median client's transmissions that were unnecessary.
pub(super) fn unnecessary_share(cell: &Cell) -> Option<f64> {
    let transmissions: f64 =
        cell.by_retransmissions.iter().zip(1u32..).map(|(n, k)| *n as f64 * f64::from(k)).sum();
    let clients = f64::from(cell.clients) * f64::from(cell.reps);
    let share = cell.unnecessary.median * clients / transmissions;
    (transmissions > 0.0 && share.is_finite()).then_some(share.min(1.0))
}

/// Share of the exchanges that failed.
pub(super) fn failed_share(cell: &Cell) -> f64 {
    if cell.exchanges() == 0 { 0.0 } else { cell.failed as f64 / cell.exchanges() as f64 }
}

/// One control over all settings.
pub(super) struct Standing<'a> {
    /// Name of the control.
    pub(super) cc: &'a str,
    /// Its cells, in the order of the run.
    pub(super) cells: Vec<&'a Cell>,
    /// Settings in which it collapses, with the reason.
    pub(super) collapses: Vec<(&'a Cell, &'static str)>,
    /// Settings in which its median is within [`NEAR`] of the best.
    pub(super) near: usize,
    /// Geometric mean of median over best median of the same settings.
    pub(super) ratio: f64,
    /// The largest of those ratios.
    pub(super) worst_ratio: f64,
    /// The cell with the largest multiple of the limit.
    pub(super) worst: Option<&'a Cell>,
}

/// All controls, the best first: fewest collapses, then smallest ratio to the best.
pub(super) fn rank(report: &Report) -> Vec<Standing<'_>> {
    let keys = varying(report);
    let mut ratios: Vec<(&str, f64)> = Vec::new();
    for (_, cells) in by_settings(report, &keys) {
        let best = best_median(&cells);
        for cell in cells {
            // A collapsed cell may have a small median, because exchanges failed.
            ratios.push((&cell.cc, cell.fct.median / best));
        }
    }
    let mut standings: Vec<Standing<'_>> =
        controls(report).into_iter().map(|cc| stand(report, cc, &ratios)).collect();
    standings.sort_by(|a, b| {
        a.collapses.len().cmp(&b.collapses.len()).then(a.ratio.total_cmp(&b.ratio))
    });
    standings
}

/// The smallest median among cells that do not collapse, or among all if all do.
pub(super) fn best_median(cells: &[&Cell]) -> f64 {
    let smallest = |all: bool| {
        cells
            .iter()
            .filter(|cell| all || collapse(cell).is_none())
            .map(|cell| cell.fct.median)
            .filter(|median| median.is_finite() && *median > 0.0)
            .fold(f64::INFINITY, f64::min)
    };
    let best = smallest(false);
    if best.is_finite() { best } else { smallest(true) }
}

fn stand<'a>(report: &'a Report, cc: &'a str, ratios: &[(&str, f64)]) -> Standing<'a> {
    let cells: Vec<&Cell> = report.cells.iter().filter(|cell| cell.cc == cc).collect();
    let collapses =
        cells.iter().filter_map(|cell| collapse(cell).map(|why| (*cell, why))).collect();
    let own: Vec<f64> = ratios
        .iter()
        .filter(|(name, ratio)| *name == cc && ratio.is_finite() && *ratio > 0.0)
        .map(|(_, ratio)| *ratio)
        .collect();
    let mean = own.iter().map(|ratio| ratio.ln()).sum::<f64>() / own.len() as f64;
    let multiple = |cell: &Cell| cell.multiple().unwrap_or(0.0);
    let worst = cells
        .iter()
        .copied()
        .filter(|cell| cell.multiple().is_some())
        .reduce(|a, b| if multiple(b) > multiple(a) { b } else { a });
    Standing {
        cc,
        collapses,
        near: own.iter().filter(|ratio| **ratio <= 1.0 + NEAR).count(),
        ratio: if own.is_empty() { f64::INFINITY } else { mean.exp() },
        worst_ratio: own.iter().copied().fold(0.0, f64::max),
        worst,
        cells,
    }
}

/// The different values of replications or clients, as "20" or "20 to 40".
pub(super) fn span(values: impl Iterator<Item = u32>) -> String {
    let mut values = distinct(values);
    values.sort_unstable();
    match values.as_slice() {
        [] => String::new(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
    }
}
