//! One fixed colour and dash per congestion control, the same in every figure.
//!
//! A family shares a hue, its members differ in lightness and dash, so that no pair is told
//! apart by hue alone. The colours themselves are in `style.css`, classes `k0` and on.

use super::model::Report;

/// The controls that have a colour of their own, in the order of the classes.
const KNOWN: [&str; 20] = [
    "default",
    "default-b",
    "default-fb1",
    "default-fb2",
    "cocoa",
    "cocoa-01",
    "cocoa-plus",
    "cocoa-fb1",
    "cocoa-fb2",
    "fasor",
    "fasor-token",
    "fasor-option",
    "fasor-k4",
    "slow",
    "fast-slow",
    "linux-rto",
    "peak-hopper",
    "tcp",
    "rcoap",
    "ebb",
];

/// Classes kept for controls that are not built in; they repeat when used up.
const EXTRA: usize = 6;

/// Which class each control of a report has.
pub(super) struct Palette {
    extra: Vec<String>,
}

impl Palette {
    /// Known controls have their place; others take the spare ones in order of appearance.
    pub(super) fn of(report: &Report) -> Self {
        let mut extra: Vec<String> = Vec::new();
        let published = report.published.iter().map(|comparison| &comparison.cc);
        for cc in report.cells.iter().map(|cell| &cell.cc).chain(published) {
            if !KNOWN.contains(&cc.as_str()) && !extra.contains(cc) {
                extra.push(cc.clone());
            }
        }
        Self { extra }
    }

    /// The class that gives `currentColor` and `--dash`.
    pub(super) fn class(&self, cc: &str) -> String {
        let spare = || self.extra.iter().position(|name| name == cc).unwrap_or(0) % EXTRA;
        let place = KNOWN.iter().position(|name| *name == cc);
        format!("k{}", place.unwrap_or_else(|| KNOWN.len() + spare()))
    }
}
