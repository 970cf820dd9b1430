//! Controls beside each other: which of them no other one beats, and which is named among equals.

use super::Candidate;
use super::judgement::difference;
use super::outcome::Percentile;
use super::run_figures::RunFigures;
use ebbtide_core::endpoint::EndpointConfig;

/// A control whose mean time is longer than that of an equal one by more than this share is not named.
const FAR_BEHIND: f64 = 0.25;

/// Those whose mean is at most [`FAR_BEHIND`] above the least one. With two or three replications the
/// interval of a difference can be wider than any difference. Of two controls that such figures cannot
/// tell apart, the one that seems to be far slower is not recommended.
pub(super) fn near(
    candidates: &[Candidate<'_>],
    among: &[usize],
    figure: &impl Fn(&RunFigures) -> f64,
) -> Vec<usize> {
    let mean_of = |one: &usize| mean(&candidates[*one], figure);
    let least = among.iter().map(mean_of).fold(f64::INFINITY, f64::min);
    among.iter().copied().filter(|one| mean_of(one) <= (1.0 + FAR_BEHIND) * least).collect()
}

pub(super) fn named(candidates: &[Candidate<'_>], equals: &[usize]) -> Option<usize> {
    named_among(equals.iter().map(|one| candidates[*one].cc)).map(|place| equals[place])
}

/// The place of the control that is named among equals. No figure decides, since with other random numbers
/// another one of them would be a little ahead: the library's default, or else the one that was given first.
pub fn named_among<'c>(equals: impl IntoIterator<Item = &'c str>) -> Option<usize> {
    let default = EndpointConfig::default().control;
    let mut equals = equals.into_iter().enumerate().peekable();
    let first = equals.peek().map(|(place, _)| *place);
    equals.find(|(_, name)| *name == default.selection.name()).map(|(place, _)| place).or(first)
}

/// The percentile that is compared: the one asked for, or the next lower one that all of them reach in
/// every replication.
pub(super) fn common(
    candidates: &[Candidate<'_>],
    among: &[usize],
    asked: Percentile,
) -> Option<usize> {
    let reach = |place: usize| {
        among.iter().all(|one| {
            let runs = &candidates[*one].outcome.runs;
            !runs.is_empty() && runs.iter().all(|run| run.delivered_by_s[place].is_some())
        })
    };
    (0..=asked.place()).rev().find(|place| reach(*place))
}

/// Those whose figure, which is to be small, no other one beats by more than the interval of their
/// difference and the margin.
pub(super) fn unbeaten(
    candidates: &[Candidate<'_>],
    among: &[usize],
    margin: f64,
    figure: impl Fn(&RunFigures) -> f64,
) -> Vec<usize> {
    let beats = |better: usize, one: usize| {
        let pair = (&candidates[one], &candidates[better]);
        let by = difference(pair.0, pair.1, &figure);
        let least = margin * mean(pair.1, &figure).abs();
        by.mean > by.half && by.mean > least
    };
    among
        .iter()
        .copied()
        .filter(|one| !among.iter().any(|other| other != one && beats(*other, *one)))
        .collect()
}

fn mean(one: &Candidate<'_>, figure: &impl Fn(&RunFigures) -> f64) -> f64 {
    let runs = &one.outcome.runs;
    runs.iter().map(figure).sum::<f64>() / runs.len() as f64
}
