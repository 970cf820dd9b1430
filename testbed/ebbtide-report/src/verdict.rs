//! The controls over all settings of a report: how often each is best, level, slower, loses, is wasteful,
//! collapses. The judgement on a setting is that of [`ebbtide_sim::judge`].

#![expect(
    clippy::disallowed_methods,
    reason = "a geometric mean that ranks and is printed to a few digits: its last bit never shows"
)]

use super::grid::{by_settings, controls, distinct, varying};
use ebbtide_sim::judge::{Judgement, SHARES, Verdict, named_among};
use ebbtide_sim::result::judge_cells;
use ebbtide_sim::result::{Cell, Report};

/// A setting of a report, with the judgement on it.
pub(super) struct Setting<'a> {
    /// The settings that vary, in words.
    pub(super) label: String,
    /// One cell per control.
    pub(super) cells: Vec<&'a Cell>,
    /// Which control to use in it.
    pub(super) verdict: Verdict,
}

/// One control over all settings.
pub(super) struct ControlSummary<'a> {
    /// Name of the control.
    pub(super) cc: &'a str,
    /// Its cells, in the order of the run, with the judgement on each.
    pub(super) cells: Vec<(&'a Cell, Judgement)>,
    /// Geometric mean of its time over that of the chosen control, where it delivers as much.
    pub(super) ratio: f64,
}

impl ControlSummary<'_> {
    /// In how many settings this is the judgement.
    pub(super) fn times(&self, judgement: Judgement) -> usize {
        self.cells.iter().filter(|(_, found)| *found == judgement).count()
    }

    /// In how many settings nothing is better.
    pub(super) fn leads(&self) -> usize {
        self.times(Judgement::Best) + self.times(Judgement::Level)
    }

    /// Its faults: collapses first, then requirements that it misses, losses, waste, time, and cost.
    fn faults(&self) -> [usize; 6] {
        let worst_first = [
            Judgement::Collapses,
            Judgement::Misses,
            Judgement::Loses,
            Judgement::Wasteful,
            Judgement::Slower,
            Judgement::Meets,
        ];
        worst_first.map(|one| self.times(one))
    }
}

/// Every setting, judged.
pub(super) fn settings(report: &Report) -> Vec<Setting<'_>> {
    let groups = by_settings(report, &varying(report)).into_iter();
    let judged = groups.map(|(label, cells)| {
        let verdict = judge_cells(cells.iter().copied(), report.percentile);
        Setting { label, cells, verdict }
    });
    judged.collect()
}

/// All controls, the best first: fewest collapses, then missed requirements, then losses, then
/// waste, then settings in which it is slower. Among those with the same faults the library's
/// default is first, or else the control that was given first, as in a single setting; the time
/// orders the others.
pub(super) fn rank<'a>(report: &'a Report, settings: &[Setting<'a>]) -> Vec<ControlSummary<'a>> {
    let mut standings: Vec<ControlSummary<'a>> =
        controls(report).into_iter().map(|cc| stand(settings, cc)).collect();
    let first = match settings {
        // What is chosen in the only setting is the first one, whatever the ratios are.
        [only] => only.verdict.choose.clone(),
        _ => {
            let least = standings.iter().map(ControlSummary::faults).min();
            let equals: Vec<&str> = standings
                .iter()
                .filter(|one| Some(one.faults()) == least)
                .map(|one| one.cc)
                .collect();
            named_among(equals.iter().copied()).map(|place| equals[place].to_owned())
        }
    };
    standings.sort_by(|a, b| a.faults().cmp(&b.faults()).then(a.ratio.total_cmp(&b.ratio)));
    if let Some(place) = standings.iter().position(|one| Some(one.cc) == first.as_deref()) {
        let chosen = standings.remove(place);
        standings.insert(0, chosen);
    }
    standings
}

fn stand<'a>(settings: &[Setting<'a>], cc: &'a str) -> ControlSummary<'a> {
    let mut cells = Vec::new();
    let mut logarithms = Vec::new();
    for setting in settings {
        let of = |name: &str| setting.cells.iter().copied().find(|cell| cell.cc == name);
        let Some((cell, judgement)) = of(cc).zip(setting.verdict.judgement_of(cc)) else {
            continue;
        };
        cells.push((cell, judgement));
        let chosen = setting.verdict.choose.as_deref().and_then(of);
        let time = |cell: &Cell| time_of(cell, setting.verdict.percent?);
        if let Some((own, best)) = time(cell).zip(chosen.and_then(time))
            && !matches!(judgement, Judgement::Loses | Judgement::Collapses)
        {
            logarithms.push((own / best).ln());
        }
    }
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    let ratio = if logarithms.is_empty() { f64::INFINITY } else { mean.exp() };
    ControlSummary { cc, cells, ratio }
}

/// When a share of a cell's exchanges was delivered, s.
pub(super) fn time_of(cell: &Cell, percent: u8) -> Option<f64> {
    let place = SHARES.iter().position(|share| *share == percent)?;
    cell.outcome.all.delivered_by_s[place]
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
