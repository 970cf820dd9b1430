//! Rates over time, in a bounded number of points.

use ebbtide_core::time::Instant;

/// Most points of a series.
pub(super) const POINTS: usize = 600;

pub(super) fn seconds(now: Instant) -> f64 {
    now.as_nanos() as f64 / 1e9
}

/// Bytes per stretch of time, as a rate.
#[derive(Debug)]
pub(super) struct Rate {
    width_ns: u64,
    bytes: Vec<u64>,
}

impl Rate {
    /// Rates over less than a second are noise at the rates of the papers' links.
    pub(super) const fn new() -> Self {
        Self { width_ns: 1_000_000_000, bytes: Vec::new() }
    }

    pub(super) fn add(&mut self, now: Instant, bytes: u64) {
        let mut index = usize::try_from(now.as_nanos() / self.width_ns).unwrap_or(usize::MAX);
        while index >= POINTS {
            self.bytes = self.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.width_ns *= 2;
            index /= 2;
        }
        if index >= self.bytes.len() {
            self.bytes.resize(index + 1, 0);
        }
        self.bytes[index] += bytes;
    }

    /// The length of a stretch, s, and what was added in each.
    pub(super) fn counts(&self) -> (f64, &[u64]) {
        (self.width_ns as f64 / 1e9, &self.bytes)
    }

    pub(super) fn points(&self) -> Vec<(f64, f64)> {
        let width = self.width_ns as f64 / 1e9;
        let rate = |bytes: u64| bytes as f64 * 8.0 / width;
        self.bytes.iter().enumerate().map(|(i, b)| (i as f64 * width, rate(*b))).collect()
    }
}
