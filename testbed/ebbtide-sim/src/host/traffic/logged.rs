//! Requests at recorded instants.

use super::{DeviceClock, Traffic};
use crate::random::{CompactChaCha, uniform};
use crate::scenario::RequestLog;

pub(super) struct Logged {
    pub(super) log: RequestLog,
    /// Each device is late by a part of this time, drawn uniformly.
    pub(super) window: u64,
}

impl Traffic for Logged {
    fn first(&self, device: u32, rng: &mut CompactChaCha) -> u64 {
        let recorded = self.log.instants(device).first().copied().unwrap_or(0);
        recorded.saturating_add(uniform(rng, 0, self.window))
    }

    fn next(&self, now: u64, clock: Option<&mut DeviceClock>) -> u64 {
        let Some(clock) = clock else { return now };
        let instants = self.log.instants(clock.device);
        let late = clock.first - instants.first().copied().unwrap_or(0);
        let recorded = instants.get(clock.times as usize).copied().unwrap_or(0);
        recorded.saturating_add(late).max(now)
    }
}
