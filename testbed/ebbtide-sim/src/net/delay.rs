//! Propagation and other delays.

use crate::random::uniform;
use crate::units::TimeRange;
use rand_core::Rng;

/// A delay drawn per packet, uniform between two ends in nanoseconds; fixed if they are equal.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// The shortest, ns.
    pub low: u64,
    /// The longest, ns.
    pub high: u64,
}

impl Delay {
    /// Always `ns`.
    pub const fn fixed(ns: u64) -> Self {
        Self { low: ns, high: ns }
    }

    /// The delay of one packet, ns. A fixed delay draws no random number.
    #[inline]
    pub fn draw(self, rng: &mut impl Rng) -> u64 {
        if self.low >= self.high { self.low } else { uniform(rng, self.low, self.high) }
    }
}

impl TimeRange {
    /// The delay model that draws from the range.
    pub const fn delay(self) -> Delay {
        let (low, high) = self.ends();
        Delay { low, high }
    }
}
