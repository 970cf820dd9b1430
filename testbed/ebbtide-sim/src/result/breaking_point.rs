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
