//! The rule where requirements are stated: the cheapest of the controls that meet them.

use super::compare::{common, named, near, unbeaten};
use super::judgement::{Judgement, Verdict};
use super::outcome::{Percentile, SHARES};
use super::requirement::RequirementCheck;
use super::run_figures::RunFigures;
use super::wording::{enumerate, percent, significant};
use super::{Candidate, MARGIN};

/// Controls named with their figures at most.
const MOST_LISTED: usize = 6;

impl Candidate<'_> {
    /// The requirements that it misses.
    fn missed(&self) -> impl Iterator<Item = &RequirementCheck> {
        self.outcome.checks.iter().filter(|check| !check.met().is_met())
    }

    fn is_safe(&self) -> bool {
        self.outcome.collapse().is_none() && self.outcome.all.delivered > 0.0
    }

    /// The largest distance to a bound that is missed, as a share of it.
    fn shortfall(&self) -> f64 {
        let of = |check: &RequirementCheck| -check.margin() / check.requirement.wanted;
        self.missed().map(of).fold(0.0, f64::max)
    }
}

/// Judges the controls by the requirements of a setting.
pub(super) fn judge(candidates: &[Candidate<'_>], percentile: Percentile) -> Verdict {
    let meets = |one: &usize| candidates[*one].is_safe() && candidates[*one].missed().count() == 0;
    let meeting: Vec<usize> = (0..candidates.len()).filter(meets).collect();
    let cheap = unbeaten(candidates, &meeting, MARGIN, |run| run.transmissions_per_delivered);
    let place = common(candidates, &cheap, percentile);
    let time = |run: &RunFigures| place.and_then(|place| run.delivered_by_s[place]);
    let fast = unbeaten(candidates, &cheap, MARGIN, |run| time(run).unwrap_or(f64::INFINITY));
    let equals = near(candidates, &fast, &|run| time(run).unwrap_or(0.0));
    let best = named(candidates, &equals);
    let judgement = |(place, one): (usize, &Candidate<'_>)| {
        let found = match one {
            _ if one.outcome.collapse().is_some() => Judgement::Collapses,
            _ if !meeting.contains(&place) => Judgement::Misses,
            _ if Some(place) == best => Judgement::Best,
            _ if fast.contains(&place) => Judgement::Level,
            _ => Judgement::Meets,
        };
        (one.cc.to_owned(), found)
    };
    Verdict {
        sentence: sentence(candidates, &meeting, best, place),
        choose: best.map(|one| candidates[one].cc.to_owned()),
        judgements: candidates.iter().enumerate().map(judgement).collect(),
        percent: place.map(|place| SHARES[place]),
    }
}

fn sentence(
    candidates: &[Candidate<'_>],
    meeting: &[usize],
    best: Option<usize>,
    place: Option<usize>,
) -> String {
    let Some(first) = candidates.first() else { return String::new() };
    let texts: Vec<String> = first.outcome.checks.iter().map(RequirementCheck::text).collect();
    let verb = if texts.len() == 1 { "is" } else { "are" };
    let mut parts = vec![format!("Required {verb} {}.", enumerate(&texts))];
    match best {
        Some(best) => {
            parts.push(choice(&candidates[best], candidates.len(), meeting.len(), place));
            parts.extend(others(candidates, meeting, best));
        }
        None => parts.push(nearest(candidates)),
    }
    parts.extend(missing(candidates, meeting, best.is_some()));
    parts.join(" ")
}

/// The recommendation, with its figures.
fn choice(best: &Candidate<'_>, compared: usize, meeting: usize, place: Option<usize>) -> String {
    let all = &best.outcome.all;
    let found: Vec<String> =
        best.outcome.checks.iter().map(RequirementCheck::found_words).collect();
    let time = place.and_then(|place| Some((SHARES[place], all.delivered_by_s[place]?)));
    let time = time.map_or_else(String::new, |(share, time)| {
        let what = if share == 100 { "all".to_owned() } else { format!("{share} %") };
        format!(", and delivers {what} within {} s", significant(time))
    });
    let (name, found) = (best.cc, enumerate(&found));
    let cost = format!("{:.2}", all.transmissions_per_delivered);
    let with = format!("with {cost} transmissions per delivered exchange{time}");
    match (compared, meeting) {
        (1, _) => format!("{name} meets this: {found} {with}."),
        (_, 1) => format!("Use {name}: it alone meets this ({found}), {with}."),
        _ => format!(
            "Use {name}: of the controls that meet this it needs the fewest transmissions, {cost} for each delivered \
             exchange{time} ({found})."
        ),
    }
}

/// Those that meet the requirements as well.
fn others(candidates: &[Candidate<'_>], meeting: &[usize], best: usize) -> Option<String> {
    let each = meeting.iter().filter(|one| **one != best).map(|one| {
        let one = &candidates[*one];
        format!("{} ({:.2} transmissions)", one.cc, one.outcome.all.transmissions_per_delivered)
    });
    let each: Vec<String> = each.collect();
    let verb = if each.len() == 1 { "meets" } else { "meet" };
    (!each.is_empty()).then(|| format!("{} {verb} it too.", enumerate(&each)))
}

/// No control meets the requirements: the one that misses them by least.
fn nearest(candidates: &[Candidate<'_>]) -> String {
    let safe = candidates.iter().filter(|one| one.is_safe());
    let nearest = safe.min_by(|a, b| a.shortfall().total_cmp(&b.shortfall()));
    match (nearest, candidates.len()) {
        (None, _) => "No control meets this: each of them collapses.".to_owned(),
        (Some(one), 1) => format!("{} does not meet this.", one.cc),
        (Some(one), _) => format!("No control meets this; {} comes nearest.", one.cc),
    }
}

/// Which requirement each of the others misses, and by how much.
fn missing(candidates: &[Candidate<'_>], meeting: &[usize], is_any_met: bool) -> Option<String> {
    let mut missing: Vec<&Candidate<'_>> = candidates
        .iter()
        .enumerate()
        .filter(|(place, _)| !meeting.contains(place))
        .map(|(_, one)| one)
        .collect();
    missing.sort_by(|a, b| a.shortfall().total_cmp(&b.shortfall()));
    let rest = missing.len().saturating_sub(MOST_LISTED);
    let detail = |one: &&Candidate<'_>| {
        if let Some(why) = one.outcome.collapse() {
            let share = percent(one.outcome.all.unnecessary_share);
            return format!("{} collapses ({why}; {share} unnecessary)", one.cc);
        }
        let each: Vec<String> = one.missed().map(RequirementCheck::found_words).collect();
        format!("{} {}", one.cc, enumerate(&each))
    };
    let mut each: Vec<String> = missing.iter().take(MOST_LISTED).map(detail).collect();
    if rest > 0 {
        each.push(format!("{rest} more"));
    }
    let head = if is_any_met { "Not enough" } else { "Reached" };
    (!each.is_empty()).then(|| format!("{head}: {}.", each.join("; ")))
}
