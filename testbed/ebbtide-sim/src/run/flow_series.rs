//! Flows over time, in a bounded number of points.

use super::rate::{Rate, seconds};
use crate::record::FlowSeries;
use ebbtide_core::time::Instant;

/// Flows that are kept, at most.
const FLOWS: usize = 8;
/// Changes of a rate that are kept, at most: then every other one is, from the beginning.
const CHANGES: usize = 4000;

/// The flows of the first clients over time.
#[derive(Debug, Default)]
pub(super) struct Flows(Vec<One>);

#[derive(Debug)]
struct One {
    begins: Option<f64>,
    /// The control's rate whenever it changed.
    rate: Vec<(f64, f64)>,
    /// First copies that arrived.
    arriving: Rate,
}

impl Flows {
    fn series_of(&mut self, client: u32) -> Option<&mut One> {
        let place = client as usize;
        if place >= FLOWS {
            return None;
        }
        if place >= self.0.len() {
            let new = || One { begins: None, rate: Vec::new(), arriving: Rate::new() };
            self.0.resize_with(place + 1, new);
        }
        self.0.get_mut(place)
    }

    /// The first message left.
    pub(super) fn begins(&mut self, now: Instant, client: u32) {
        if let Some(one) = self.series_of(client) {
            one.begins = Some(seconds(now));
        }
    }

    /// A first copy arrived.
    pub(super) fn delivered(&mut self, now: Instant, client: u32) {
        if let Some(one) = self.series_of(client) {
            one.arriving.add(now, 1);
        }
    }

    /// The rate of a control is this now, messages/s.
    pub(super) fn rate(&mut self, now: Instant, client: u32, rate: f64) {
        let Some(one) = self.series_of(client) else { return };
        if one.rate.last().is_some_and(|(_, last)| *last == rate) {
            return;
        }
        if one.rate.len() >= CHANGES {
            let mut keep = false;
            one.rate.retain(|_| {
                keep = !keep;
                keep
            });
        }
        one.rate.push((seconds(now), rate));
    }

    /// Returns the recorded flows for the report.
    pub(super) fn series(self) -> Vec<FlowSeries> {
        let flows = self.0.into_iter().zip(0u32..);
        flows.map(|(one, client)| one.series(client)).collect()
    }
}

impl One {
    fn series(self, client: u32) -> FlowSeries {
        let (width, counts) = self.arriving.counts();
        let mut sum = 0;
        let mut delivered = vec![(0.0, 0.0)];
        let mut arriving = Vec::new();
        for (place, count) in counts.iter().enumerate() {
            sum += count;
            arriving.push((place as f64 * width, *count as f64 / width));
            delivered.push(((place + 1) as f64 * width, sum as f64));
        }
        FlowSeries { client, begins: self.begins, rate: self.rate, arriving, delivered }
    }
}
