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

/// How a control is drawn on the page: the colours as CSS has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Its colour on light ground.
    pub light: String,
    /// Its colour on dark ground.
    pub dark: String,
    /// The lengths of its dashes and gaps; empty for a solid line.
    pub dash: String,
}

/// The look of each cell's control, in the order of the cells.
pub fn looks(report: &Report) -> Vec<Look> {
    const STYLE: &str = include_str!("style.css");
    let palette = Palette::for_report(report);
    // The style sheet has the colours of the light scheme first.
    let value = |name: &str, nth: usize| {
        let after = STYLE.split(name).nth(nth + 1).unwrap_or_default();
        after.split([';', '}']).next().unwrap_or_default().trim().to_owned()
    };
    let look = |cc: &str| {
        let class = palette.class(cc);
        let rule = value(&format!(".{class} {{ color: var(--{class});"), 0);
        let dash = rule.strip_prefix("--dash:").unwrap_or_default().trim().to_owned();
        let colour = format!("--{class}:");
        Look { light: value(&colour, 0), dark: value(&colour, 1), dash }
    };
    report.cells.iter().map(|cell| look(&cell.cc)).collect()
}

/// The control's name without its settings.
fn base(cc: &str) -> &str {
    cc.split(':').next().unwrap_or(cc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_sim::result::Cell;

    #[test]
    fn every_control_has_two_colours_of_its_own() {
        let names = KNOWN.iter().copied().chain(["a", "b", "c", "d", "e", "f"]);
        let cell = |cc: &str| Cell { cc: cc.to_owned(), ..Cell::default() };
        let report = Report { cells: names.map(cell).collect(), ..Report::default() };
        let found = looks(&report);
        assert_eq!(
            found[0],
            Look { light: "#cf4f00".into(), dark: "#ff8a3d".into(), dash: String::new() }
        );
        assert_eq!(found[1].dash, "7 3");
        let is_colour = |text: &str| text.len() == 7 && text.starts_with('#');
        assert!(
            found.iter().all(|look| is_colour(&look.light) && is_colour(&look.dark)),
            "{found:?}"
        );
        let mut all: Vec<&str> = found.iter().map(|look| look.light.as_str()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), found.len());
    }
}
