//! Several requests at once every period: a device that collects readings and sends them together.

use super::{DeviceClock, Traffic};
use crate::random::{CompactChaCha, uniform};

pub(super) struct Bursts {
    pub(super) period: u64,
    /// The devices start within this time or, if that is longer, within a period.
    pub(super) window: u64,
}

impl Traffic for Bursts {
    fn first(&self, _: u32, rng: &mut CompactChaCha) -> u64 {
        uniform(rng, 0, self.period.max(self.window))
    }

    fn next(&self, now: u64, _: Option<&mut DeviceClock>) -> u64 {
        now.saturating_add(self.period)
    }

    fn uses_clock(&self) -> bool {
        false
    }
}
