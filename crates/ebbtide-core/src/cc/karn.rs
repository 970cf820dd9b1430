//! Karn's algorithm, as used by TCP's timers (Karn and Partridge 1987; RFC 6298 sections 3 and 5).

use super::{Context, Sample, Slot};
use crate::time::Micros;

/// An answer after a retransmission may belong to either copy, so it does not give a round trip.
/// The backed-off timeout stays in force until an answer gives one.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Karn {
    /// The kept timeout; zero if there is none.
    kept: Micros,
}

impl Karn {
    pub(super) const fn new() -> Self {
        Self { kept: Micros::ZERO }
    }

    /// The timeout of a message's first transmission: the kept one, or otherwise the estimate, which
    /// no bound cuts; at least the control's floor.
    pub(super) fn timeout(self, estimate: Micros, cx: &Context<'_>) -> Micros {
        let timeout = self.kept().unwrap_or(estimate);
        timeout.max(cx.settings.floor)
    }

    /// The timeout of a retransmission: twice the previous one (RFC 6298 section 5.5), within the
    /// bound, which does not hold below the `estimate`.
    pub(super) fn backed_off(slot: &Slot, estimate: Micros, cx: &mut Context<'_>) -> Micros {
        cx.bounded(slot.armed.scale(2, 1), estimate)
    }

    /// The round trip of an unambiguous answer; the kept timeout is then dropped.
    pub(super) fn round_trip(&mut self, sample: &Sample) -> Option<Micros> {
        if sample.retransmissions() > 0 {
            return None;
        }
        self.kept = Micros::ZERO;
        Some(sample.since_first)
    }

    /// Keeps the timeout that a finished exchange had backed off to.
    pub(super) fn close(&mut self, slot: &Slot, retransmissions: u8) {
        if retransmissions > 0 {
            self.kept = slot.armed;
        }
    }

    pub(super) fn kept(self) -> Option<Micros> {
        (self.kept > Micros::ZERO).then_some(self.kept)
    }

    /// The name of the current state.
    pub(super) fn state(self) -> &'static str {
        if self.kept().is_some() { "backed-off" } else { "" }
    }
}
