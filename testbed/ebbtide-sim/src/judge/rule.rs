//! The rule: who does not collapse, who delivers, who is fast, what it costs.

use super::judgement::{Judgement, Verdict, difference};
use super::outcome::{Percentile, RunFigures, SHARES};
use super::{Candidate, MARGIN, sentence};
use ebbtide_core::endpoint::EndpointConfig;

/// A control whose mean time is longer than that of an equal one by more than this share is not named.
const FAR_BEHIND: f64 = 0.25;

/// Judges the controls that were run in one setting.
#[must_use]
pub fn judge(candidates: &[Candidate<'_>], percentile: Percentile) -> Verdict {
    let all: Vec<usize> = (0..candidates.len()).collect();
    // Safety comes first: what a control delivers does not excuse the collapse of the network.
    let safe = without(&all, |one| {
        let outcome = candidates[one].outcome;
        outcome.collapse().is_some() || outcome.all.delivered == 0.0
    });
    let delivering = unbeaten(candidates, &safe, 0.0, |figures| -figures.delivered);
    let sound = without(&delivering, |one| candidates[one].outcome.is_wasteful());
    let place = common(candidates, &sound, percentile);
    let time = |figures: &RunFigures| place.and_then(|place| figures.delivered_by_s[place]);
    let fast = match place {
        Some(_) => {
            unbeaten(candidates, &sound, MARGIN, |figures| time(figures).unwrap_or(f64::INFINITY))
        }
        None => sound.clone(),
    };
    let cheap = unbeaten(candidates, &fast, MARGIN, |figures| figures.transmissions_per_delivered);
    let near = not_far_behind(candidates, &cheap, &|figures| time(figures).unwrap_or(0.0));
    let best = named(candidates, &near);
    let judgement = |one: usize| {
        let outcome = candidates[one].outcome;
        let is_nothing = outcome.asked > 0 && outcome.all.delivered == 0.0;
        if outcome.collapse().is_some() {
            Judgement::Collapses
        } else if outcome.is_wasteful() && !is_nothing {
            Judgement::Wasteful
        } else if is_nothing {
            Judgement::Loses
        } else if Some(one) == best {
            Judgement::Best
        } else if !delivering.contains(&one) {
            Judgement::Loses
        } else if !fast.contains(&one) {
            Judgement::Slower
        } else {
            Judgement::Level
        }
    };
    let best = best.filter(|one| candidates[*one].outcome.all.delivered > 0.0);
    let judgements: Vec<(String, Judgement)> =
        all.iter().map(|one| (candidates[*one].cc.to_owned(), judgement(*one))).collect();
    Verdict {
        sentence: sentence::sentence(candidates, best, &judgements, place),
        choose: best.map(|one| candidates[one].cc.to_owned()),
        judgements,
        percent: place.map(|place| SHARES[place]),
    }
}

/// Those without a fault, or all if all have it.
fn without(among: &[usize], has_fault: impl Fn(usize) -> bool) -> Vec<usize> {
    let sound: Vec<usize> = among.iter().copied().filter(|one| !has_fault(*one)).collect();
    if sound.is_empty() { among.to_vec() } else { sound }
}

/// Those whose mean is at most [`FAR_BEHIND`] above the least one. With two or three replications the
/// interval of a difference can be wider than any difference. Of two controls that such figures cannot
/// tell apart, the one that seems to be far slower is not recommended.
fn not_far_behind(
    candidates: &[Candidate<'_>],
    among: &[usize],
    figure: &impl Fn(&RunFigures) -> f64,
) -> Vec<usize> {
    let mean_of = |one: &usize| mean(&candidates[*one], figure);
    let least = among.iter().map(mean_of).fold(f64::INFINITY, f64::min);
    among.iter().copied().filter(|one| mean_of(one) <= (1.0 + FAR_BEHIND) * least).collect()
}

fn named(candidates: &[Candidate<'_>], equals: &[usize]) -> Option<usize> {
    named_among(equals.iter().map(|one| candidates[*one].cc)).map(|place| equals[place])
}

/// The place of the control that is named among equals. No figure decides, since with other random numbers
/// another one of them would be a little ahead: the library's default, or else the one that was given first.
#[must_use]
pub fn named_among<'c>(equals: impl IntoIterator<Item = &'c str>) -> Option<usize> {
    let default = EndpointConfig::default().control;
    let mut equals = equals.into_iter().enumerate().peekable();
    let first = equals.peek().map(|(place, _)| *place);
    equals.find(|(_, name)| *name == default.selection.name()).map(|(place, _)| place).or(first)
}

/// Judges a class of clients that has this control of its own, whatever the others use.
#[must_use]
pub(crate) fn judge_fixed(
    class: &str,
    own: &str,
    candidates: &[Candidate<'_>],
    percentile: Percentile,
) -> Verdict {
    let mut verdict = judge(candidates, percentile);
    if candidates.len() < 2 {
        return verdict;
    }
    let is_good = |found: Judgement| matches!(found, Judgement::Best | Judgement::Level);
    let is_alike = verdict.judgements.iter().all(|(_, found)| is_good(*found));
    for (_, found) in &mut verdict.judgements {
        if is_good(*found) {
            *found = Judgement::Level;
        }
    }
    verdict.choose = None;
    verdict.sentence = sentence::fixed(class, own, candidates, is_alike);
    verdict
}

/// The percentile that is compared: the one asked for, or the next lower one that all of them reach in
/// every replication.
fn common(candidates: &[Candidate<'_>], among: &[usize], asked: Percentile) -> Option<usize> {
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
fn unbeaten(
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
