//! The round-trip estimator of RFC 6298, shared by every control that measures.

use crate::time::{Micros, divide};

/// Smoothed round trip and its variation (RFC 6298 section 2), in eight bytes.
///
/// The first sample sets both values. The size of the first variation differs between controls, so
/// it is an argument. A sample is never zero; the clock's granularity takes its place.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Estimator {
    srtt: Micros,
    rttvar: Micros,
}

/// The gains of the estimator as divisors: `1/srtt` and `1/rttvar`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Gains {
    /// 1/alpha.
    pub srtt: u32,
    /// 1/beta.
    pub rttvar: u32,
}

impl Gains {
    /// alpha = 1/8 and beta = 1/4 (RFC 6298 section 2.3).
    pub const RFC6298: Self = Self { srtt: 8, rttvar: 4 };
    /// alpha = 1/4 and beta = 1/8, as SOCNE14 prints them.
    pub const SOCNE14: Self = Self { srtt: 4, rttvar: 8 };
}

impl Estimator {
    /// Creates an estimator without a sample.
    #[must_use]
    pub const fn new() -> Self {
        Self { srtt: Micros::ZERO, rttvar: Micros::ZERO }
    }

    /// Whether there has been a sample.
    #[inline]
    #[must_use]
    pub const fn has_sample(&self) -> bool {
        self.srtt.as_micros() != 0
    }

    /// The smoothed round trip, if there has been a sample.
    #[inline]
    #[must_use]
    pub const fn srtt(&self) -> Option<Micros> {
        if self.has_sample() { Some(self.srtt) } else { None }
    }

    /// The variation, if there has been a sample.
    #[inline]
    #[must_use]
    pub const fn rttvar(&self) -> Option<Micros> {
        if self.has_sample() { Some(self.rttvar) } else { None }
    }

    /// Adds a sample. The first variation is the first sample divided by `first_divisor`: 2 in RFC
    /// 6298 section 2.2, 2K in FASOR.
    pub fn update(&mut self, sample: Micros, gains: Gains, first_divisor: u32) {
        let sample = sample.max(Micros::new(1));
        if !self.has_sample() {
            self.srtt = sample;
            self.rttvar = sample.scale(1, first_divisor);
            return;
        }
        // RFC 6298 section 2.3: the variation is updated first, with the old smoothed round trip.
        let deviation = sample.saturating_sub(self.srtt).max(self.srtt.saturating_sub(sample));
        self.rttvar = weighted(self.rttvar, deviation, gains.rttvar);
        self.srtt = weighted(self.srtt, sample, gains.srtt).max(Micros::new(1));
    }

    /// `SRTT + max(G, k * RTTVAR)` (RFC 6298 section 2.2), if there has been a sample.
    #[must_use]
    pub fn rto(&self, k: u32, granularity: Micros) -> Option<Micros> {
        self.has_sample()
            .then(|| self.srtt.saturating_add(self.rttvar.scale(k, 1).max(granularity)))
    }

    /// Moves the estimate half of the way to `target` and halves the variation (SOCNE14).
    pub fn decay_towards(&mut self, target: Micros) {
        if self.has_sample() {
            self.srtt = weighted(self.srtt, target, 2).max(Micros::new(1));
            self.rttvar = self.rttvar.scale(1, 2);
        }
    }
}

/// `(1 - 1/divisor) * old + new / divisor`.
fn weighted(old: Micros, new: Micros, divisor: u32) -> Micros {
    let divisor = u64::from(divisor.max(1));
    Micros::from_u64(divide(old.as_micros() * (divisor - 1) + new.as_micros(), divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Micros = Micros::from_millis(1);

    #[test]
    fn the_first_sample_sets_both_values() {
        let mut e = Estimator::default();
        assert_eq!(e.rto(4, G), None);
        e.update(Micros::from_millis(800), Gains::RFC6298, 2);
        assert_eq!(e.srtt(), Some(Micros::from_millis(800)));
        assert_eq!(e.rttvar(), Some(Micros::from_millis(400)));
        assert_eq!(e.rto(4, G), Some(Micros::from_millis(2400)));
    }

    #[test]
    fn later_samples_move_the_variation_with_the_old_smoothed_round_trip() {
        let mut e = Estimator::default();
        e.update(Micros::from_millis(800), Gains::RFC6298, 2);
        e.update(Micros::from_millis(1600), Gains::RFC6298, 2);
        // RTTVAR = 3/4 * 400 + 1/4 * |800 - 1600| = 500; SRTT = 7/8 * 800 + 1/8 * 1600 = 900.
        assert_eq!(e.rttvar(), Some(Micros::from_millis(500)));
        assert_eq!(e.srtt(), Some(Micros::from_millis(900)));
    }

    #[test]
    fn a_steady_path_leaves_the_granularity_as_the_margin() {
        let mut e = Estimator::default();
        for _ in 0..200 {
            e.update(Micros::from_millis(700), Gains::RFC6298, 2);
        }
        let margin = e.rto(4, G).map(|rto| rto.saturating_sub(Micros::from_millis(700)));
        assert_eq!(margin, Some(G));
    }

    #[test]
    fn extreme_samples_saturate_and_never_vanish() {
        let mut e = Estimator::default();
        e.update(Micros::ZERO, Gains::RFC6298, 2);
        assert!(e.has_sample());
        e.update(Micros::MAX, Gains::RFC6298, 2);
        e.update(Micros::MAX, Gains::RFC6298, 2);
        assert_eq!(e.rto(4, G), Some(Micros::MAX));
    }
}
