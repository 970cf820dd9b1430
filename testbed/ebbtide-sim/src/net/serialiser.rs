//! The sending end of a link.

use super::Schedule;
use ebbtide_core::time::Instant;
use std::sync::Arc;

/// The sending end of a link: packets leave one after another, at a fixed rate or by a schedule, exactly.
#[derive(Clone, Debug)]
pub struct Serialiser {
    bits_per_second: u64,
    /// When the last packet accepted so far will have left.
    pub(super) free_at: u64,
    /// The remainder of rounding to nanoseconds, so that it never accumulates within a busy period. At a
    /// fixed rate: the fraction of a nanosecond that `free_at` leaves out, in units of
    /// `1 / bits_per_second`. By a schedule: what `free_at` could have carried beyond, in bits times
    /// nanoseconds per second.
    remainder: u64,
    schedule: Option<Arc<Schedule>>,
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Serialiser {
    /// A serialiser of this rate, at least 1 bit/s.
    pub const fn new(bits_per_second: u64) -> Self {
        let bits_per_second = if bits_per_second == 0 { 1 } else { bits_per_second };
        Self { bits_per_second, free_at: 0, remainder: 0, schedule: None }
    }

    /// A serialiser whose rate follows a schedule.
    pub const fn scheduled(schedule: Arc<Schedule>) -> Self {
        Self { bits_per_second: 1, free_at: 0, remainder: 0, schedule: Some(schedule) }
    }

    /// Accepts a packet at `now`: when its first bit leaves, and when its last one has.
    #[inline]
    pub fn accept(&mut self, now: Instant, bytes: u32) -> (Instant, Instant) {
        let now = now.as_nanos();
        if self.free_at < now {
            self.free_at = now;
            self.remainder = 0;
        }
        if self.schedule.is_some() {
            return self.accept_scheduled(bytes);
        }
        let start = self.free_at;
        // 2^32 bytes are 2^35 bits, times 10^9 ns below 2^65: 128 bits only for giants.
        let scaled = u128::from(bytes) * 8 * NANOS_PER_SECOND + u128::from(self.remainder);
        let rate = u128::from(self.bits_per_second);
        let (ns, remainder) = match u64::try_from(scaled) {
            Ok(scaled) => (scaled / self.bits_per_second, scaled % self.bits_per_second),
            Err(_) => (
                u64::try_from(scaled / rate).unwrap_or(u64::MAX),
                u64::try_from(scaled % rate).unwrap_or(0),
            ),
        };
        self.free_at = start.saturating_add(ns);
        self.remainder = remainder;
        (Instant::from_nanos(start), Instant::from_nanos(self.free_at))
    }

    #[inline(never)]
    fn accept_scheduled(&mut self, bytes: u32) -> (Instant, Instant) {
        let Some(schedule) = &self.schedule else { return (Instant::ZERO, Instant::ZERO) };
        let start = schedule.opens_at(self.free_at);
        let need = u128::from(bytes) * 8 * NANOS_PER_SECOND;
        let need = need.saturating_sub(u128::from(self.remainder));
        (self.free_at, self.remainder) = schedule.transmit(start, need);
        (Instant::from_nanos(start), Instant::from_nanos(self.free_at))
    }
}
