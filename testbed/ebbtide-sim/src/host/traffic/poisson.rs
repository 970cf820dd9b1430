//! Requests at random: exponential times between them (a Poisson process).

use super::{DeviceClock, Traffic};
use crate::random::{CompactChaCha, exponential, uniform};

pub(super) struct Poisson {
    /// The mean time between two requests of a device.
    pub(super) mean: u64,
    /// The devices start within this time.
    pub(super) window: u64,
}

impl Traffic for Poisson {
    fn first(&self, _: u32, rng: &mut CompactChaCha) -> u64 {
        uniform(rng, 0, self.window).saturating_add(exponential(rng, self.mean))
    }

    fn next(&self, now: u64, clock: Option<&mut DeviceClock>) -> u64 {
        let span = clock.map_or(self.mean, |clock| exponential(&mut clock.rng, self.mean));
        now.saturating_add(span)
    }
}
