//! When a timer of a Linux host expires.

use ebbtide_core::time::Instant;

/// The wheel that Linux keeps its timers on: `kernel/time/timer.c`, from version 4.8 on.
///
/// A timer that is due in up to 63 ticks expires at a tick. Each further level reaches eight times as
/// far, at eight times the distance between expiries, and a timer expires at the next of them.
/// So all timers of seconds expire together at few instants, late by up to an eighth of their time,
/// and what they send meets in the buffer. With a tick of 4 ms (`CONFIG_HZ=250`, the
/// distributions' choice) the instants are 32 ms apart up to 2 s, 256 ms up to 16 s and 2 s beyond.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct TimerWheel {
    /// Nanoseconds of a tick; zero: timers expire when they are due.
    tick: u64,
}

impl TimerWheel {
    pub(super) const fn new(tick: u64) -> Self {
        Self { tick }
    }

    /// When a timer expires that is armed at `now` and due at `due`.
    pub(super) fn expiry(self, now: Instant, due: Instant) -> Instant {
        /// Ticks that the first level reaches.
        const REACH: u64 = 63;
        /// Each level has an eighth of the resolution of the one before.
        const SHIFT: u32 = 3;
        /// The last level.
        const LAST: u32 = 8;
        if self.tick == 0 || due <= now {
            return due;
        }
        // A timer is armed in whole ticks, rounded up, counted from the last one.
        let clock = now.as_nanos() / self.tick;
        let ticks = (due.as_nanos() - now.as_nanos()).div_ceil(self.tick);
        let level = (0..LAST).find(|level| ticks < REACH << (level * SHIFT)).unwrap_or(LAST);
        let shift = level * SHIFT;
        let slot = ((clock + ticks) >> shift) + 1;
        Instant::from_nanos((slot << shift).saturating_mul(self.tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_expires_with_the_others_of_its_level_and_never_early() {
        let wheel = TimerWheel::new(4_000_000);
        let ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        for (now, due, expected) in [
            (0, 1, 8),          // a tick, and the one after it
            (0, 200, 204),      // up to 63 ticks
            (1000, 2000, 2016), // 32 ms apart
            (0, 2100, 2304),    // 256 ms apart
            (3, 2310, 2560),
            (0, 17_000, 18_432), // 2048 ms apart
        ] {
            assert_eq!(wheel.expiry(ms(now), ms(due)), ms(expected), "{now} {due}");
        }
        assert_eq!(TimerWheel::new(0).expiry(ms(0), ms(2100)), ms(2100));
        assert_eq!(wheel.expiry(ms(5), ms(5)), ms(5), "due at once");
    }
}
