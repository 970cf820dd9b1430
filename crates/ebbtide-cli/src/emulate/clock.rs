//! The wall clock of an emulation.

use ebbtide_core::time::Instant;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A clock that starts with the emulation, and knows the time of day of its start.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Clock {
    start: std::time::Instant,
    since_1970: Duration,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the emulator is a driver")]
    pub(crate) fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: std::time::Instant::now(), since_1970 }
    }

    /// The time now.
    #[expect(clippy::disallowed_methods, reason = "the emulator is a driver")]
    pub(crate) fn now(&self) -> Instant {
        // 584 years of nanoseconds fit.
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// The time of day, counted from 1970.
    pub(crate) fn of_day(&self, at: Instant) -> Duration {
        self.since_1970 + at.saturating_since(Instant::ZERO)
    }
}
