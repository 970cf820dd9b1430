//! Where a control stops meeting the requirements as one key changes.

use crate::judge::RequirementCheck;
use serde::{Deserialize, Serialize};

/// The values of a key that were tried for one control.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BreakingPoint {
    /// The control.
    pub cc: String,
    /// The key.
    pub key: String,
    /// The requirements in words; empty if only a collapse counts.
    pub required: Vec<String>,
    /// The values, ascending.
    pub points: Vec<UntilPoint>,
}

/// One value of the key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UntilPoint {
    /// The value as `--set` takes it.
    pub value: String,
    /// Its number, in s, bit/s or B if it has a unit.
    pub place: f64,
    /// Whether the control meets the requirements there.
    pub is_met: bool,
    /// Whether that holds beyond the confidence interval.
    pub is_sure: bool,
    /// The requirements beside the figures.
    pub checks: Vec<RequirementCheck>,
}

/// The side on which the requirements are met.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetSide {
    /// Up to a value of the key.
    Below,
    /// From a value of the key on.
    Above,
    /// At every value that was tried.
    Everywhere,
    /// At none of them.
    Nowhere,
}

/// The answer of a search in one sentence: how far the best of the controls goes. Empty without a value.
#[must_use]
pub fn answer(points: &[BreakingPoint]) -> String {
    let Some(first) = points.iter().find(|one| !one.points.is_empty()) else {
        return String::new();
    };
    let key = &first.key;
    let of = |side: MetSide| points.iter().filter(move |one| one.side() == side);
    let names = |best: &dyn Fn(&BreakingPoint) -> bool| -> String {
        let all: Vec<String> =
            points.iter().filter(|one| best(one)).map(|one| one.cc.clone()).collect();
        crate::judge::enumerate(&all)
    };
    let place = |one: &BreakingPoint| one.meets().map_or(f64::NAN, |met| met.place);
    let at = |one: &BreakingPoint| one.meets().map_or(String::new(), |met| met.value.clone());
    // Without requirements only a collapse counts.
    let has_requirements = !first.required.is_empty();
    let is_met = if has_requirements { "The requirements are met" } else { "There is no collapse" };
    if of(MetSide::Everywhere).next().is_some() {
        let names = names(&|one| one.side() == MetSide::Everywhere);
        let each = if has_requirements { "every" } else { "any" };
        return format!("{is_met} at {each} value of {key} that was tried, under {names}.");
    }
    let below = of(MetSide::Below).max_by(|a, b| place(a).total_cmp(&place(b)));
    let above = of(MetSide::Above).min_by(|a, b| place(a).total_cmp(&place(b)));
    match (below, above) {
        (Some(best), _) => {
            let names = names(&|one| one.side() == MetSide::Below && place(one) == place(best));
            format!("{is_met} with {key} up to {}, under {names}.", at(best))
        }
        (None, Some(best)) => {
            let names = names(&|one| one.side() == MetSide::Above && place(one) == place(best));
            format!("{is_met} with {key} from {} on, under {names}.", at(best))
        }
        (None, None) if !has_requirements => {
            format!("Every control collapses at every value of {key} that was tried.")
        }
        (None, None) => {
            format!("No control meets the requirements at any value of {key} that was tried.")
        }
    }
}

impl BreakingPoint {
    /// The side of the breaking point on which the requirements are met.
    pub fn side(&self) -> MetSide {
        let ends = self.points.first().zip(self.points.last());
        match ends.map(|(first, last)| (first.is_met, last.is_met)) {
            Some((true, true)) => MetSide::Everywhere,
            Some((true, false)) => MetSide::Below,
            Some((false, true)) => MetSide::Above,
            Some((false, false)) | None => MetSide::Nowhere,
        }
    }

    /// The points from the side that meets the requirements to the other one.
    fn best_first(&self) -> Vec<&UntilPoint> {
        match self.side() {
            MetSide::Above => self.points.iter().rev().collect(),
            _ => self.points.iter().collect(),
        }
    }

    /// The last value that meets the requirements; `None` if none does.
    pub fn meets(&self) -> Option<&UntilPoint> {
        self.best_first().into_iter().take_while(|point| point.is_met).last()
    }

    /// The last value up to which they are met beyond the confidence interval.
    pub fn surely_meets(&self) -> Option<&UntilPoint> {
        self.best_first().into_iter().take_while(|point| point.is_met && point.is_sure).last()
    }

    /// The first value from which they are missed beyond the confidence interval.
    pub fn surely_misses(&self) -> Option<&UntilPoint> {
        let worst_first = self.best_first().into_iter().rev();
        worst_first.take_while(|point| !point.is_met && point.is_sure).last()
    }
}
