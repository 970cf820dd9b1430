//! `rfc6298`: TCP's retransmission timer as its RFC has it, on CoAP exchanges.

use super::karn::Karn;
use super::{
    Admission, CongestionControl, Context, Estimator, Gains, Load, Metrics, Outcome,
    OutgoingMessage, Sample, Slot, Transmission, admit_non_at_interval,
};
use crate::time::Micros;

/// K, the weight of the variation (RFC 6298 section 2.2).
const K: u32 = 4;

/// SRTT + max(G, 4 RTTVAR), at least 1 s and at first 1 s (RFC 6298 sections 2.1 to 2.4), doubled with
/// each expiry (section 5.5). There is no dither below the maximum of 60 s (section 2.5), at which timeouts
/// are drawn from 54 to 60 s ([`Context::bounded`]).
///
/// Samples come only from exchanges without a retransmission, and the doubled timeout stays until
/// there is one (section 3).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Rfc6298 {
    estimator: Estimator,
    karn: Karn,
}

impl Rfc6298 {
    /// Creates a control without a sample.
    #[must_use]
    pub const fn new() -> Self {
        Self { estimator: Estimator::new(), karn: Karn::new() }
    }

    fn estimate(&self, cx: &Context<'_>) -> Micros {
        let initial = || cx.settings.initial_rto(cx.params);
        self.estimator.rto(K, cx.settings.granularity).unwrap_or_else(initial)
    }
}

impl CongestionControl for Rfc6298 {
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
            self.original_timeout(cx)
        } else {
            Karn::backed_off(slot, self.estimate(cx), cx)
        }
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, _cx: &mut Context<'_>) {
        if let Some(round_trip) = self.karn.round_trip(sample) {
            self.estimator.update(round_trip, Gains::RFC6298, 2);
        }
    }

    fn on_close(
        &mut self,
        slot: &Slot,
        _outcome: Outcome,
        retransmissions: u8,
        _cx: &mut Context<'_>,
    ) {
        self.karn.close(slot, retransmissions);
    }

    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        self.karn.timeout(self.estimate(cx), cx)
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            srtt: self.estimator.srtt(),
            rttvar: self.estimator.rttvar(),
            rto: self.estimator.rto(K, Micros::ZERO),
            second: self.karn.kept(),
            interval: None,
            state: self.karn.state(),
        }
    }
}
