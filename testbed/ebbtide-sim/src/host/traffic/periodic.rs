//! One request every period, each delayed by a random jitter.

use super::{DeviceClock, Traffic};
use crate::random::{CompactChaCha, uniform};

pub(super) struct Periodic {
    pub(super) period: u64,
    /// The devices start within this time or, if that is longer, within a period.
    pub(super) window: u64,
    /// How much later than its time a request is at most. It does not move those that follow.
    pub(super) jitter: u64,
}

impl Traffic for Periodic {
    fn first(&self, _: u32, rng: &mut CompactChaCha) -> u64 {
        uniform(rng, 0, self.period.max(self.window))
    }

    fn next(&self, now: u64, clock: Option<&mut DeviceClock>) -> u64 {
        let Some(clock) = clock else { return now.saturating_add(self.period) };
        let due = clock.first.saturating_add(self.period.saturating_mul(clock.times));
        due.saturating_add(uniform(&mut clock.rng, 0, self.jitter))
    }

    fn uses_clock(&self) -> bool {
        self.jitter > 0
    }
}
