//! The judgements of a control and of a setting, and the difference between two controls.

use super::Candidate;
use super::run_figures::RunFigures;
use crate::stats::mean_and_half_width;
use serde::{Deserialize, Serialize};

/// The judgement of a control in comparison with the others in its setting.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    /// The one to use.
    Best,
    /// As good: what it delivers and when differ by no more than the interval.
    Level,
    /// Meets the requirements, at a higher cost or later.
    Meets,
    /// Misses a requirement.
    Misses,
    /// Delivers as much, but later.
    Slower,
    /// Delivers less.
    Loses,
    /// Sends at least every other packet needlessly, on a network that carries them without harm: see
    /// [`super::ControlOutcome::is_wasteful`].
    Wasteful,
    /// Fills the network with copies: see [`super::ControlOutcome::collapse`].
    Collapses,
}

impl Judgement {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Level => "level",
            Self::Meets => "meets",
            Self::Misses => "misses",
            Self::Slower => "slower",
            Self::Loses => "loses",
            Self::Wasteful => "wasteful",
            Self::Collapses => "collapses",
        }
    }
}

/// A mean difference over replications that met the same luck, and half of its 95 % confidence
/// interval; 0 for one replication, which has none.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The mean.
    pub mean: f64,
    /// Half of the interval.
    pub half: f64,
}

/// The judgement on one setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// In words: what the network can do, what to use, and what would help.
    pub sentence: String,
    /// The control to use; `None` if nothing is delivered or nothing was run.
    pub choose: Option<String>,
    /// Each control, in the order in which they were given.
    pub judgements: Vec<(String, Judgement)>,
    /// The percentile by which times were compared; `None` if they were not.
    pub percent: Option<u8>,
}

impl Verdict {
    /// The judgement on a control.
    pub fn judgement_of(&self, cc: &str) -> Option<Judgement> {
        self.judgements.iter().find(|(name, _)| name == cc).map(|(_, judgement)| *judgement)
    }
}

/// Mean difference between the figures of `one` and `other`, from pairs of replications with the
/// same number, which met the same luck. Pairs without a finite difference are left out; if no pair
/// remains, the difference is zero.
pub(super) fn difference(
    one: &Candidate<'_>,
    other: &Candidate<'_>,
    figure: &impl Fn(&RunFigures) -> f64,
) -> Difference {
    let pairs = one.outcome.runs.iter().zip(&other.outcome.runs);
    let differences = pairs.map(|(one, other)| figure(one) - figure(other));
    let differences: Vec<f64> = differences.filter(|value| value.is_finite()).collect();
    let (mean, half) = mean_and_half_width(&differences);
    if mean.is_nan() { Difference::default() } else { Difference { mean, half } }
}
