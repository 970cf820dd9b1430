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
use rand_core::Rng;

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
        span_of_nanos(self.0.saturating_sub(earlier.0))
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
    // On a microcontroller, once and not at each call: it is two multiplications of 64 bits.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    fn add(self, span: Duration) -> Self {
        let whole = span.as_secs().saturating_mul(1_000_000_000);
        let nanos = whole.saturating_add(span.subsec_nanos().into());
        Self(self.0.saturating_add(nanos))
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

/// A span of microseconds in four bytes, at most [`Micros::MAX`] (38 hours), since the longest span
/// that anything here may be set to is a day. A span below [`Micros::EXACT`] (35.8 minutes) is exact;
/// a longer one is rounded down to a multiple of 64 us, far below the dithering of any timeout.
/// Arithmetic saturates at both ends.
///
/// The order of the encoded words is the order of the spans: the top bit tells steps of 64 us from
/// single microseconds.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(u32);

impl Micros {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span: 2^37 - 64 us, 38 hours and 10 minutes.
    pub const MAX: Self = Self(u32::MAX);
    /// The microseconds below which a span is exact: 2^31, 35 minutes and 47.483648 s.
    pub const EXACT: u64 = 1 << 31;

    /// The bit of the encoded word that says "in steps".
    const COARSE: u32 = 1 << 31;
    /// The logarithm of the microseconds of a step.
    const STEP: u32 = 6;

    /// `micros` microseconds.
    #[inline]
    #[must_use]
    pub const fn new(micros: u32) -> Self {
        Self::from_u64(micros as u64)
    }

    /// `millis` milliseconds, saturating.
    #[inline]
    #[must_use]
    pub const fn from_millis(millis: u32) -> Self {
        Self::from_u64(millis as u64 * 1000)
    }

    /// `nanos` nanoseconds, rounded down to whole microseconds, saturating.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self::from_u64(divide(nanos, 1000))
    }

    /// `span`, rounded down to whole microseconds, saturating.
    #[inline]
    #[must_use]
    pub fn from_duration(span: Duration) -> Self {
        let whole = span.as_secs().saturating_mul(1_000_000);
        Self::from_u64(whole.saturating_add(span.subsec_micros().into()))
    }

    /// `micros` microseconds, saturating.
    #[inline]
    #[must_use]
    pub const fn from_u64(micros: u64) -> Self {
        if micros < Self::EXACT {
            return Self(micros as u32);
        }
        let steps = micros >> Self::STEP;
        if steps < Self::COARSE as u64 { Self(steps as u32 | Self::COARSE) } else { Self::MAX }
    }

    /// The count of microseconds.
    #[inline]
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        if self.0 < Self::COARSE {
            self.0 as u64
        } else {
            ((self.0 & !Self::COARSE) as u64) << Self::STEP
        }
    }

    /// The same span in seconds: of the floats near it the nearest.
    #[inline]
    #[must_use]
    pub const fn as_secs_f64(self) -> f64 {
        self.as_micros() as f64 / 1e6
    }

    /// The same span in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.as_micros() * 1000
    }

    /// The same span as a [`Duration`].
    #[inline]
    #[must_use]
    pub const fn to_duration(self) -> Duration {
        span_of_nanos(self.as_nanos())
    }

    /// A span drawn uniformly from `[low, high]`, both included; `low` if `high` is shorter.
    #[must_use]
    pub fn uniform(low: Self, high: Self, rng: &mut dyn Rng) -> Self {
        let width = high.saturating_sub(low).as_micros() + 1;
        let random = u64::from(rng.next_u32());
        // Multiply-shift: the bias of a value's probability is below 2^-32, which is negligible
        // here. A width above 2^32 us is multiplied in two parts.
        let draw = random * (width >> 32) + ((random * (width & 0xffff_ffff)) >> 32);
        low.saturating_add(Self::from_u64(draw))
    }

    /// `self + other`, saturating.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self::from_u64(self.as_micros() + other.as_micros())
    }

    /// `self - other`, zero if `other` is longer.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self::from_u64(self.as_micros().saturating_sub(other.as_micros()))
    }

    /// `self * numerator / denominator`, rounded down, saturating. A denominator of zero counts as
    /// one.
    #[cfg_attr(target_os = "none", inline(never))]
    #[cfg_attr(not(target_os = "none"), inline)]
    #[must_use]
    pub const fn scale(self, numerator: u32, denominator: u32) -> Self {
        let (micros, times) = (self.as_micros(), numerator as u64);
        let parts = if denominator == 0 { 1 } else { denominator as u64 };
        if micros <= u32::MAX as u64 {
            return Self::from_u64(divide(micros * times, parts));
        }
        // The product may exceed 64 bits: what a part holds and what remains, each for itself.
        let whole = divide(micros, parts);
        let rest = divide((micros - whole * parts) * times, parts);
        Self::from_u64(whole.saturating_mul(times).saturating_add(rest))
    }
}

/// `dividend / divisor`, where the divisor is at most 2^63.
///
/// On a microcontroller it takes a step per bit: the compiler's 64-bit division is 900 bytes of code, and here there
/// are a few divisions per message.
#[inline]
pub(crate) const fn divide(dividend: u64, divisor: u64) -> u64 {
    if cfg!(target_os = "none") { divide_by_bits(dividend, divisor) } else { dividend / divisor }
}

#[inline(never)]
const fn divide_by_bits(dividend: u64, divisor: u64) -> u64 {
    let (mut quotient, mut rest, mut bits) = (dividend, 0u64, u64::BITS);
    while bits > 0 {
        rest = rest << 1 | quotient >> (u64::BITS - 1);
        quotient <<= 1;
        if rest >= divisor {
            rest -= divisor;
            quotient |= 1;
        }
        bits -= 1;
    }
    quotient
}

/// The span of so many nanoseconds, without the compiler's division.
#[cfg_attr(target_os = "none", inline(never))]
#[cfg_attr(not(target_os = "none"), inline)]
pub(crate) const fn span_of_nanos(nanos: u64) -> Duration {
    const SECOND: u64 = 1_000_000_000;
    let seconds = divide(nanos, SECOND);
    Duration::new(seconds, (nanos - seconds * SECOND) as u32)
}

impl From<Micros> for Duration {
    fn from(span: Micros) -> Self {
        span.to_duration()
    }
}

impl fmt::Debug for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.as_micros();
        write!(f, "{}.{:06}s", micros / 1_000_000, micros % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_division_of_microcontrollers_gives_what_the_compiler_s_gives() {
        let numbers =
            (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, 0x9e37_79b9_7f4a_7c15 >> bit]);
        for dividend in numbers.clone().chain([u64::MAX]) {
            for divisor in numbers.clone().filter(|divisor| (1..=1 << 63).contains(divisor)) {
                let quotient = divide_by_bits(dividend, divisor);
                assert_eq!(quotient, dividend / divisor, "{dividend} / {divisor}");
            }
        }
    }

    #[test]
    fn spans_of_nanoseconds_are_those_of_core() {
        for nanos in [0, 999_999_999, 1_000_000_000, 247_000_000_001, u64::MAX] {
            assert_eq!(span_of_nanos(nanos), Duration::from_nanos(nanos));
        }
    }
}
