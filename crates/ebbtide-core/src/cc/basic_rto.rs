//! `basic-rto`: half more than the last round trip, as Californium has it (`BASIC_RTO`, version 3.14).

use super::cocoa_strong::LONGEST_FIRST;
use super::{
    Admission, CongestionControl, Context, Load, Metrics, OutgoingMessage, Sample, Slot,
    Transmission, admit_non_at_interval,
};
use crate::time::Micros;

/// A timeout of 1.5 times the last round trip, doubled with each expiry and never dithered.
///
/// The round trip counts from the original transmission, and an answer after one or two retransmissions is a sample
/// as well.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BasicRto {
    /// Zero before the first sample.
    rto: Micros,
}

/// The maximum number of retransmissions of an exchange that gives a sample.
const MOST_RETRANSMISSIONS: u8 = 2;

impl BasicRto {
    /// Creates a control without a sample.
    #[must_use]
    pub const fn new() -> Self {
        Self { rto: Micros::ZERO }
    }
}

impl core::default::Default for BasicRto {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionControl for BasicRto {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        admit_non_at_interval(message, load, self.original_timeout(cx), cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        if transmission.ordinal == 0 {
            slot.base = self.original_timeout(cx);
            slot.base
        } else {
            cx.bounded(slot.armed.scale(2, 1), slot.base)
        }
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, _cx: &mut Context<'_>) {
        if sample.retransmissions() <= MOST_RETRANSMISSIONS {
            self.rto = sample.since_first.scale(3, 2).max(Micros::new(1));
        }
    }

    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        let initial = cx.settings.initial_rto(cx.params);
        let rto = if self.rto > Micros::ZERO { self.rto } else { initial };
        rto.min(LONGEST_FIRST.max(initial)).max(cx.settings.floor)
    }

    fn metrics(&self) -> Metrics {
        Metrics { rto: (self.rto > Micros::ZERO).then_some(self.rto), ..Metrics::default() }
    }
}
