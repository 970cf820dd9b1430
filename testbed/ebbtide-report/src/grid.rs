//! How cells become figures: one figure per outer setting, one panel per inner setting, one
//! row or curve per congestion control.

use ebbtide_sim::result::{Cell, Report};

/// Cells drawn in each kind of figure; what goes beyond is named and left to its command.
const MOST_CELLS: usize = 200;

/// From so many cells on, figures are folded and drawn with less detail.
const DENSE: usize = 64;

/// Panels that share their scales.
pub(super) struct FigureCells<'a> {
    /// The outer settings in words; empty when there are none.
    pub(super) label: String,
    /// The panels, in order of appearance.
    pub(super) panels: Vec<Panel<'a>>,
}

/// The cells of one combination of settings.
pub(super) struct Panel<'a> {
    /// The settings that vary within the figure, in words; empty when there is one panel.
    pub(super) label: String,
    /// One cell per control, in the order of the run.
    pub(super) cells: Vec<&'a Cell>,
}

/// All figures of a report, and what could not be drawn.
pub(super) struct Grid<'a> {
    pub(super) figures: Vec<FigureCells<'a>>,
    /// Combinations of settings left out to keep the file small.
    pub(super) omitted: usize,
    /// Whether there are so many cells that figures should be folded.
    pub(super) dense: bool,
}

/// Distinct values in order of appearance.
pub(super) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut out: Vec<T> = Vec::new();
    for value in values {
        if !out.contains(&value) {
            out.push(value);
        }
    }
    out
}

/// Keys that take more than one value.
pub(super) fn varying(report: &Report) -> Vec<&str> {
    let keys = distinct(
        report.cells.iter().flat_map(|cell| cell.settings.iter().map(|(key, _)| key.as_str())),
    );
    keys.into_iter()
        .filter(|key| distinct(report.cells.iter().map(|cell| cell.setting(key))).len() > 1)
        .collect()
}

/// Settings in words: "clients = 400, buffer = 2500"; without those that the cell does not have.
pub(super) fn words(cell: &Cell, keys: &[&str]) -> String {
    let set = keys.iter().filter(|key| !cell.setting(key).is_empty());
    let pairs: Vec<String> =
        set.map(|key| format!("{key}\u{a0}=\u{a0}{}", cell.setting(key))).collect();
    pairs.join(", ")
}

/// Congestion controls in order of appearance.
pub(super) fn controls(report: &Report) -> Vec<&str> {
    distinct(report.cells.iter().map(|cell| cell.cc.as_str()))
}

/// Cells that have the same settings, in order of appearance.
pub(super) fn by_settings<'a>(report: &'a Report, keys: &[&str]) -> Vec<(String, Vec<&'a Cell>)> {
    let mut groups: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in &report.cells {
        push(&mut groups, words(cell, keys), cell);
    }
    groups
}

fn push<'a>(groups: &mut Vec<(String, Vec<&'a Cell>)>, label: String, cell: &'a Cell) {
    match groups.iter_mut().find(|(known, _)| *known == label) {
        Some((_, cells)) => cells.push(cell),
        None => groups.push((label, vec![cell])),
    }
}

impl<'a> Grid<'a> {
    /// Panels by `buffer` where it varies, as the papers arrange them, else by the last key.
    pub(super) fn from_report(report: &'a Report) -> Self {
        let keys = varying(report);
        let inner = keys.iter().copied().find(|key| *key == "buffer").or(keys.last().copied());
        let outer: Vec<&str> = keys.iter().copied().filter(|key| Some(*key) != inner).collect();
        let inner: Vec<&str> = inner.into_iter().collect();
        let mut drawn = 0usize;
        let mut omitted = 0usize;
        let mut figures = Vec::new();
        for (label, cells) in by_settings(report, &outer) {
            let mut groups: Vec<(String, Vec<&Cell>)> = Vec::new();
            for cell in &cells {
                push(&mut groups, words(cell, &inner), cell);
            }
            if drawn > 0 && drawn + cells.len() > MOST_CELLS {
                omitted += groups.len();
                continue;
            }
            drawn += cells.len();
            let panels = groups.into_iter().map(|(label, cells)| Panel { label, cells });
            figures.push(FigureCells { label, panels: panels.collect() });
        }
        Self { figures, omitted, dense: report.cells.len() > DENSE }
    }
}

impl<'a> FigureCells<'a> {
    /// The largest multiple of the limit among its cells.
    pub(super) fn worst(&self) -> f64 {
        self.cells().iter().filter_map(|cell| cell.multiple()).fold(0.0, f64::max)
    }

    /// All cells of the figure.
    pub(super) fn cells(&self) -> Vec<&'a Cell> {
        self.panels.iter().flat_map(|panel| panel.cells.iter().copied()).collect()
    }
}
