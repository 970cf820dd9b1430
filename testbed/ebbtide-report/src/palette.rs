//! One fixed colour and dash per congestion control, the same in every figure.
//!
//! The members of a family share a hue and differ in lightness and dash, so that no two controls
//! differ by hue alone. The colours themselves are in `style.css`, classes `k0` and on.

use ebbtide_sim::result::Report;

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
    /// Controls with settings of their own that have their control's place, since nothing else does.
    lent: Vec<String>,
}

impl Palette {
    /// Known controls have their place; others take the spare ones in order of appearance.
    pub(super) fn for_report(report: &Report) -> Self {
        let published = report.published.iter().map(|comparison| comparison.cc.as_str());
        let cells = report.cells.iter().map(|cell| cell.cc.as_str());
        let all = super::grid::distinct(cells.chain(published));
        let others = all.iter().filter(|cc| !KNOWN.contains(cc));
        let is_alone = |cc: &&&str| {
            !cc.contains('+')
                && KNOWN.contains(&base(cc))
                && !all.iter().any(|other| other != *cc && base(other) == base(cc))
        };
        let (lent, extra): (Vec<&str>, Vec<&str>) = others.partition(is_alone);
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        Self { extra: owned(extra), lent: owned(lent) }
    }

    /// The class that gives `currentColor` and `--dash`.
    pub(super) fn class(&self, cc: &str) -> String {
        let name = if self.lent.iter().any(|name| name == cc) { base(cc) } else { cc };
        let spare = || self.extra.iter().position(|name| name == cc).unwrap_or(0) % EXTRA;
        let place = KNOWN.iter().position(|known| *known == name);
        format!("k{}", place.unwrap_or_else(|| KNOWN.len() + spare()))
    }
}

/// The control's name without its settings.
fn base(cc: &str) -> &str {
    cc.split(':').next().unwrap_or(cc)
}
