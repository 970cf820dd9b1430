//! `cocoa-strong`: CoCoA without weak samples, as Californium has it (`COCOA_STRONG`, version 3.14).

use super::cocoa::{LARGE, SMALL, factor_permille, millis};
use super::estimator::{Estimator, Gains};
use super::{
    Admission, CongestionControl, Context, Load, Metrics, OutgoingMessage, Sample, Slot,
    Transmission, admit_non_at_interval,
};
use crate::time::Micros;

/// CoCoA that learns from exchanges without retransmissions only.
///
/// It differs from cocoa-03 in more than the samples: the gains of the estimator are those that SOCNE14 prints, the
/// clock's granularity is 100 ms, the backoff factor is chosen once for each exchange, and the first timeout is
/// multiplied by the number of open exchanges after samples as before them, because nothing marks the estimate as
/// measured.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CocoaStrong {
    strong: Estimator,
    /// The overall RTO; zero before the first sample.
    rto: Micros,
    /// When `rto` last received a sample or aged, in milliseconds since the epoch, modulo 2^32 (49
    /// days).
    updated_ms: u32,
}

/// Californium's maximum of the first timeout before it is dithered.
pub(super) const LONGEST_FIRST: Micros = Micros::from_millis(32_000);

impl CocoaStrong {
    /// Creates a control without a sample.
    #[must_use]
    pub const fn new() -> Self {
        Self { strong: Estimator::new(), rto: Micros::ZERO, updated_ms: 0 }
    }

    fn overall(&self, cx: &Context<'_>) -> Micros {
        if self.rto > Micros::ZERO { self.rto } else { cx.settings.initial_rto(cx.params) }
    }

    /// Ageing as in cocoa-03 section 4.3. An estimate that has aged counts as new from now on, so that what was
    /// left of the idle time is forgotten.
    fn age(&mut self, cx: &Context<'_>) {
        if self.rto == Micros::ZERO || !cx.settings.ageing {
            return;
        }
        let mut idle_ms = u64::from(millis(cx.now).wrapping_sub(self.updated_ms));
        loop {
            let (times, aged) = if self.rto < SMALL {
                (16, self.rto.scale(2, 1))
            } else if self.rto > LARGE {
                (4, SMALL.saturating_add(self.rto.scale(1, 2)))
            } else {
                return;
            };
            let after_ms = self.rto.as_micros() * times / 1000;
            if idle_ms <= after_ms {
                return;
            }
            idle_ms -= after_ms;
            self.rto = aged;
            self.updated_ms = millis(cx.now);
        }
    }
}

impl core::default::Default for CocoaStrong {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionControl for CocoaStrong {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        self.age(cx);
        admit_non_at_interval(message, load, self.overall(cx), cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        if transmission.ordinal > 0 {
            let factor = factor_permille(slot.base, [3000, 1500]);
            return cx.bounded(slot.armed.scale(factor, 1000), slot.base);
        }
        self.age(cx);
        let open = u32::from(transmission.beside) + 1;
        let initial = cx.settings.initial_rto(cx.params);
        let base = self.overall(cx).scale(open, 1).min(LONGEST_FIRST.max(initial));
        let dithered = cx.uniform(base, base.scale(cx.params.ack_random_permille, 1000));
        slot.base = dithered.max(cx.settings.floor);
        slot.base
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        if sample.retransmissions() > 0 {
            return;
        }
        self.strong.update(sample.since_first, Gains::SOCNE14, 2);
        if let Some(estimate) = self.strong.rto(4, cx.settings.granularity) {
            let sum = estimate.as_micros() + self.overall(cx).as_micros();
            self.rto = Micros::from_u64(sum / 2).max(Micros::new(1));
            self.updated_ms = millis(cx.now);
        }
    }

    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        self.overall(cx).max(cx.settings.floor)
    }

    fn metrics(&self) -> Metrics {
        let measured = self.rto > Micros::ZERO;
        Metrics {
            srtt: self.strong.srtt(),
            rttvar: self.strong.rttvar(),
            rto: measured.then_some(self.rto),
            second: None,
            interval: None,
            state: if measured { "" } else { "blind" },
        }
    }
}
