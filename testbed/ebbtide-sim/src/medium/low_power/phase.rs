//! A sender's memory of its neighbours' wake-ups.
//!
//! Contiki's phase lock (`core/net/mac/phase.c` of 2.6, 2.7 and 3.0, on by default there) remembers when
//! the last strobe began that was acknowledged, and forgets it after misses.

use ebbtide_core::time::{Duration, Instant};

/// How senders remember their neighbours' wake-ups.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum PhaseLock {
    /// Nothing: every frame is strobed for a period, until it is acknowledged.
    #[default]
    Off,
    /// After the first acknowledgement the exact phase, for good.
    Exact,
    /// As Contiki has it: when the last acknowledged strobe began. Strobes for a known neighbour begin
    /// 12.8 ms before and last 16.7 ms; after 16 frames in a row that were not
    /// acknowledged, or with one of them 30 s after the first, the neighbour is forgotten.
    Contiki,
}

/// GUARD_TIME: ten times CHECK_TIME, which is 42 ticks of 32768 Hz.
pub(super) const GUARD: u64 = 420 * 1_000_000_000 / 32_768;
/// MAX_PHASE_STROBE_TIME, 1/60 s.
pub(super) const KNOWN_STROBES: u64 = 1_000_000_000 / 60;
/// MAX_NOACKS.
const MOST_MISSES: u8 = 16;
/// MAX_NOACKS_TIME.
const FORGET_AFTER: Duration = Duration::from_secs(30);

/// One station's memory of a neighbour's phase.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WakePhase {
    /// When a strobe began that it acknowledged.
    met: Option<Instant>,
    misses: u8,
    first_miss: Instant,
}

impl WakePhase {
    /// When the neighbour is known to have been awake, if it is known.
    pub(super) const fn met(&self) -> Option<Instant> {
        self.met
    }

    /// The neighbour acknowledged a strobe that began at `at`.
    pub(super) const fn hit(&mut self, at: Instant) {
        *self = Self { met: Some(at), misses: 0, first_miss: Instant::ZERO };
    }

    /// All strobes of a frame remained without an acknowledgement.
    pub(super) fn miss(&mut self, now: Instant) {
        if self.met.is_none() {
            return;
        }
        if self.misses == 0 {
            self.first_miss = now;
        }
        self.misses += 1;
        if self.misses >= MOST_MISSES || now >= self.first_miss + FORGET_AFTER {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_neighbour_is_forgotten_after_16_misses_in_a_row() {
        let mut phase = WakePhase::default();
        phase.miss(at(0));
        assert_eq!(
            phase,
            WakePhase::default(),
            "a miss of an unknown neighbour counts for nothing"
        );
        phase.hit(at(1));
        for miss in 0..15 {
            phase.miss(at(2));
            assert_eq!(phase.met(), Some(at(1)), "{miss}");
        }
        phase.hit(at(3));
        phase.miss(at(4));
        assert_eq!(phase.met(), Some(at(3)), "an acknowledgement begins the count again");
        for _ in 0..15 {
            phase.miss(at(4));
        }
        assert_eq!(phase.met(), None);
    }

    #[test]
    fn a_neighbour_is_forgotten_with_a_miss_30_seconds_after_the_first() {
        let mut phase = WakePhase::default();
        phase.hit(at(1));
        phase.miss(at(10));
        phase.miss(at(39));
        assert_eq!(phase.met(), Some(at(1)));
        phase.miss(at(40));
        assert_eq!(phase.met(), None);
    }
}
