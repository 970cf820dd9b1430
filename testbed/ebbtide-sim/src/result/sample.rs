//! The replications of a cell, and the ways in which a figure is made of them.

use super::figures::Value;
use super::pooled;
use crate::record::{ClientRecord, RunRecord, SparseHistogram};
use crate::stats::{mean_and_half_width, summary};

/// All replications of a cell, in order.
#[derive(Copy, Clone, Debug)]
pub(super) struct Replications<'s> {
    pub(super) records: &'s [RunRecord],
}

impl<'s> Replications<'s> {
    /// All clients of all replications.
    pub(super) fn clients(&self) -> impl Iterator<Item = &'s ClientRecord> {
        self.records.iter().flat_map(|record| &record.clients)
    }

    /// Order statistics over all clients.
    pub(super) fn over_clients(&self, field: fn(&ClientRecord) -> f64) -> Option<Value> {
        Some(Value::Spread(summary(&mut self.clients().map(field).collect::<Vec<f64>>())))
    }

    /// The sum over all clients.
    pub(super) fn of_clients(&self, field: fn(&ClientRecord) -> u32) -> Option<Value> {
        Some(Value::Count(self.clients().map(|client| u64::from(field(client))).sum()))
    }

    /// Order statistics over all replications' values, which are histograms of microseconds.
    pub(super) fn pooled(&self, which: fn(&RunRecord) -> &SparseHistogram) -> Option<Value> {
        Some(Value::Spread(pooled::pool(self.records.iter().map(which))))
    }

    /// The sum over the replications that have such a count; `None` without one.
    pub(super) fn sum(&self, count: fn(&RunRecord) -> Option<u64>) -> Option<Value> {
        self.records.iter().filter_map(count).reduce(|sum, one| sum + one).map(Value::Count)
    }

    /// The mean over the replications that have such a number; `None` without one.
    pub(super) fn mean(&self, number: fn(&RunRecord) -> Option<f64>) -> Option<Value> {
        let values: Vec<f64> = self.records.iter().filter_map(number).collect();
        let mean = || values.iter().sum::<f64>() / values.len() as f64;
        (!values.is_empty()).then(|| Value::Number(mean()))
    }

    /// The mean of one value per replication, and half of its confidence interval.
    pub(super) fn interval(&self, values: Vec<f64>) -> Option<Value> {
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let (mean, half) = mean_and_half_width(&finite);
        (!values.is_empty()).then_some(Value::Mean(mean, half))
    }
}
