//! TCP's retransmission timer with Karn's algorithm (Karn and Partridge 1987; RFC 6298 sections 3 and 5), on CoAP
//! exchanges.

use super::{
    Admission, CongestionControl, Context, Load, Metrics, Outcome, OutgoingMessage, Sample,
    Settings, Slot, Transmission, admit_non_at_interval,
};
use crate::time::Micros;

/// An estimate of the RTO from round trips.
pub trait RtoEstimate {
    /// The RTO; `None` before the first round trip.
    fn rto(&self, settings: &Settings) -> Option<Micros>;

    /// Takes a round trip of which it is certain that it is one.
    fn update(&mut self, round_trip: Micros, settings: &Settings);

    /// The quantities that it has.
    fn metrics(&self) -> Metrics;
}

/// A timer that doubles its timeout with each expiry (RFC 6298 section 5.5), without a dither below the bound.
///
/// An answer after a retransmission may belong to either copy, so it does not give a round trip.
/// The backed-off timeout stays in force until an answer gives one.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpTimer<E> {
    estimate: E,
    /// The timeout to which an exchange has backed off; zero if there is none.
    kept: Micros,
}

impl<E: RtoEstimate> TcpTimer<E> {
    fn rto(&self, cx: &Context<'_>) -> Micros {
        self.estimate.rto(cx.settings).unwrap_or_else(|| cx.settings.initial_rto(cx.params))
    }

    fn kept(&self) -> Option<Micros> {
        (self.kept > Micros::ZERO).then_some(self.kept)
    }
}

impl<E: RtoEstimate> CongestionControl for TcpTimer<E> {
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
            cx.bounded(slot.armed.scale(2, 1), self.rto(cx))
        }
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        if sample.retransmissions() == 0 {
            self.kept = Micros::ZERO;
            self.estimate.update(sample.since_first, cx.settings);
        }
    }

    fn on_close(
        &mut self,
        slot: &Slot,
        _outcome: Outcome,
        retransmissions: u8,
        _cx: &mut Context<'_>,
    ) {
        if retransmissions > 0 {
            self.kept = slot.armed;
        }
    }

    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        self.kept().unwrap_or_else(|| self.rto(cx)).max(cx.settings.floor)
    }

    fn metrics(&self) -> Metrics {
        let state = if self.kept().is_some() { "backed-off" } else { "" };
        Metrics { second: self.kept(), state, ..self.estimate.metrics() }
    }
}
