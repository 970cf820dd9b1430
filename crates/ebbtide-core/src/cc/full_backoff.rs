//! `default-fb1` and `default-fb2`: Full Backoff on top of RFC 7252 (ANRW18 section 4.2).

use super::default::{admit_non_at_probing_rate, doubled, initial_timeout};
use super::{
    Admission, CongestionControl, Context, Load, Metrics, Outcome, OutgoingMessage, Sample, Slot,
    Transmission,
};
use crate::time::Micros;

/// RFC 7252's backoff, kept beyond the end of the exchange.
///
/// The last armed timeout of an exchange with a retransmission is the initial timeout of the next
/// one, without a new dither. After an exchange without a retransmission, `default-fb1` returns to
/// the random initial timeout at once, and `default-fb2` halves the timeout.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FullBackoff {
    /// The timeout kept for the next exchange; zero if there is none.
    kept: Micros,
    halves: bool,
}

impl FullBackoff {
    /// `default-fb1`: one exchange without a retransmission forgets the backoff.
    #[must_use]
    pub const fn forgetting() -> Self {
        Self { kept: Micros::ZERO, halves: false }
    }

    /// `default-fb2`: each exchange without a retransmission halves the backoff.
    #[must_use]
    pub const fn halving() -> Self {
        Self { kept: Micros::ZERO, halves: true }
    }
}

impl CongestionControl for FullBackoff {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        admit_non_at_probing_rate(message, load, cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        match transmission.ordinal {
            0 if self.kept > Micros::ZERO => self.kept,
            0 => initial_timeout(cx),
            _ => doubled(slot.armed, cx),
        }
    }

    fn on_feedback(&mut self, _slot: &Slot, _sample: &Sample, _cx: &mut Context<'_>) {}

    fn on_close(
        &mut self,
        slot: &Slot,
        outcome: Outcome,
        retransmissions: u8,
        cx: &mut Context<'_>,
    ) {
        if retransmissions > 0 {
            self.kept = slot.armed;
        } else if outcome != Outcome::Cancelled {
            let initial_range_ends =
                cx.settings.ack_timeout(cx.params).scale(cx.params.ack_random_permille, 1000);
            let half = self.kept.scale(1, 2);
            self.kept = if self.halves && half > initial_range_ends { half } else { Micros::ZERO };
        }
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            rto: (self.kept > Micros::ZERO).then_some(self.kept),
            state: if self.kept > Micros::ZERO { "backed-off" } else { "fresh" },
            ..Metrics::default()
        }
    }
}
