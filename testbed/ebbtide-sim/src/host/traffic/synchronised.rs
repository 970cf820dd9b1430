//! All devices at the same time, every period: on the hour, or when power is back.

use super::{DeviceClock, Traffic};
use crate::random::{CompactChaCha, uniform};

pub(super) struct Synchronised {
    pub(super) period: u64,
    /// The time within which all devices make their requests.
    pub(super) window: u64,
    /// The time over which the first requests are spread, if it is longer.
    pub(super) spread: u64,
}

impl Traffic for Synchronised {
    fn first(&self, _: u32, rng: &mut CompactChaCha) -> u64 {
        uniform(rng, 0, self.window.max(self.spread))
    }

    fn next(&self, now: u64, clock: Option<&mut DeviceClock>) -> u64 {
        let Some(clock) = clock else { return now.saturating_add(self.period) };
        let due = self.period.saturating_mul(clock.times);
        due.saturating_add(uniform(&mut clock.rng, 0, self.window))
    }

    fn uses_clock(&self) -> bool {
        self.window > 0 || self.spread > 0
    }
}
