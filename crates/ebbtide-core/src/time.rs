//! Instants and spans as integers.
//!
//! Nothing in this crate reads a clock; the driver passes an [`Instant`] to every call. An
//! `Instant` is a count of nanoseconds since an epoch of the driver's choosing (the start of the
//! program, of the simulation, of the device), so it is the same type on a microcontroller, in the
//! simulator and under tokio. Spans at the interface are [`Duration`]s. Inside the congestion
//! controls they are [`Micros`], four bytes each, since state is kept per peer.

use core::fmt;
use core::ops::{Add, Sub};
pub use core::time::Duration;

/// A point in time: nanoseconds since the driver's epoch.
///
/// Arithmetic saturates: the far future stays the far future (`u64::MAX` ns is 584 years).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);
    /// The end of time; never reached.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to `self`, zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The span from `earlier` to `self` in microseconds, zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> Micros {
        Micros::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Add<Micros> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, span: Micros) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }
}

impl Sub for Instant {
    type Output = Duration;
    /// Saturates at zero.
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A span in whole microseconds, at most [`Micros::MAX`] (4294.967295 s, longer than any timeout
/// or round trip that CoAP's parameters allow). Arithmetic saturates at both ends.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(u32);

impl Micros {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span: 71 minutes and 34.967295 s.
    pub const MAX: Self = Self(u32::MAX);

    /// `micros` microseconds.
    #[inline]
    #[must_use]
    pub const fn new(micros: u32) -> Self {
        Self(micros)
    }

    /// `millis` milliseconds, saturating.
    #[inline]
    #[must_use]
    pub const fn from_millis(millis: u32) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// `nanos` nanoseconds, rounded down to whole microseconds, saturating.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self::from_u64(nanos / 1000)
    }

    /// `span`, rounded down to whole microseconds, saturating.
    #[inline]
    #[must_use]
    pub fn from_duration(span: Duration) -> Self {
        Self(u32::try_from(span.as_micros()).unwrap_or(u32::MAX))
    }

    /// `micros` microseconds, saturating.
    #[inline]
    #[must_use]
    pub const fn from_u64(micros: u64) -> Self {
        if micros > u32::MAX as u64 { Self::MAX } else { Self(micros as u32) }
    }

    /// The count of microseconds.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The same span in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0 as u64 * 1000
    }

    /// The same span as a [`Duration`].
    #[inline]
    #[must_use]
    pub const fn to_duration(self) -> Duration {
        Duration::from_micros(self.0 as u64)
    }

    /// `self + other`, saturating.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// `self - other`, zero if `other` is longer.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self * numerator / denominator`, rounded down, saturating. A denominator of zero counts as
    /// one.
    #[inline]
    #[must_use]
    pub const fn scale(self, numerator: u32, denominator: u32) -> Self {
        let denominator = if denominator == 0 { 1 } else { denominator };
        Self::from_u64(self.0 as u64 * numerator as u64 / denominator as u64)
    }
}

impl From<Micros> for Duration {
    fn from(span: Micros) -> Self {
        span.to_duration()
    }
}

impl fmt::Debug for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}
