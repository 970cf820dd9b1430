//! The rule: who does not collapse, who delivers, who is fast, what it costs.

use super::compare::{common, named, near, unbeaten};
use super::judgement::{Judgement, Verdict};
use super::outcome::{Percentile, SHARES};
use super::run_figures::RunFigures;
use super::{Candidate, MARGIN, required, sentence};

/// Judges the controls that were run in one setting.
pub fn judge(candidates: &[Candidate<'_>], percentile: Percentile) -> Verdict {
    if candidates.iter().any(|one| !one.outcome.checks.is_empty()) {
        return required::judge(candidates, percentile);
    }
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
    let near = near(candidates, &cheap, &|figures| time(figures).unwrap_or(0.0));
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

/// Judges a class of clients that has this control of its own, whatever the others use.
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
    if candidates.iter().any(|one| !one.outcome.checks.is_empty()) {
        return verdict;
    }
    verdict.sentence = sentence::fixed(class, own, candidates, is_alike);
    verdict
}
