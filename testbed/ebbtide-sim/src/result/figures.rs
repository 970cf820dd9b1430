//! The figures of a cell by name.

use crate::stats::Summary;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The value of a figure in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// A whole number, summed over replications.
    Count(u64),
    /// A number over all replications.
    Number(f64),
    /// The mean over replications, and half of its 95 % confidence interval.
    Mean(f64, f64),
    /// Order statistics over clients, exchanges or packets.
    Spread(Summary),
    /// How many there were of the first kind, of the second, and so on.
    Counts(Vec<u64>),
    /// Equally spaced quantiles.
    Quantiles(Vec<f64>),
}

impl Value {
    /// The value as one number: the mean, or the median; NaN for lists.
    pub fn number(&self) -> f64 {
        match self {
            Self::Count(count) => *count as f64,
            Self::Number(number) => *number,
            Self::Mean(mean, _) => *mean,
            Self::Spread(summary) => summary.median,
            Self::Counts(_) | Self::Quantiles(_) => f64::NAN,
        }
    }
}

/// The figures of a cell by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<Cow<'static, str>, Value>);

impl Figures {
    /// The value of a figure; `None` if the cell has none.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Sets a figure.
    pub fn set(&mut self, name: &'static str, value: Value) {
        self.0.insert(name.into(), value);
    }

    /// Removes a figure.
    pub(super) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}

impl<const N: usize> From<[(&'static str, Value); N]> for Figures {
    fn from(figures: [(&'static str, Value); N]) -> Self {
        Self(figures.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}
