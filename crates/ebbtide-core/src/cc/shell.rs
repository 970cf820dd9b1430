//! The shell that no control escapes.

use super::{
    Admission, CongestionControl, Context, Controller, Departure, Load, Marking, Metrics, Outcome,
    Sample, Slot, Transmission,
};
use crate::time::{Instant, Micros};

/// A control and what the core enforces around it.
///
/// Whatever the control answers, at most NSTART Confirmable exchanges are open, every timeout lies
/// in `[FLOOR, CEILING]`, no exchange has more than MAX_RETRANSMIT retransmissions, and every
/// exchange that was admitted is closed exactly once. A wrong control may be slow; it cannot be
/// unsafe.
#[derive(Debug)]
pub struct Shell {
    control: Controller,
    open: u16,
}

impl Shell {
    /// The shortest timeout. Below it the turnaround of an operating system would look like loss.
    pub const FLOOR: Micros = Micros::from_millis(10);
    /// The longest timeout: above any estimate that the studies report, so that it interferes with
    /// none, and short enough that a broken estimate is noticed within a quarter of an hour.
    pub const CEILING: Micros = Micros::from_millis(900_000);

    /// A shell around `control` with nothing open.
    #[must_use]
    pub const fn new(control: Controller) -> Self {
        Self { control, open: 0 }
    }

    /// Confirmable exchanges open in the scope.
    #[inline]
    #[must_use]
    pub const fn open(&self) -> u16 {
        self.open
    }

    /// Whether `message` may leave now. `load.open` is overwritten with what the shell knows.
    pub fn admit(
        &mut self,
        message: &Departure,
        mut load: Load,
        cx: &mut Context<'_>,
    ) -> Admission {
        load.open = self.open;
        // NSTART is at least 1: zero would never send (RFC 7252 section 4.7).
        if message.confirmable && self.open >= cx.settings.nstart(cx.params) {
            return Admission::Blocked;
        }
        match self.control.admit(message, &load, cx) {
            // An instant that has come is a consent, or a caller that asks again would spin.
            Admission::NotBefore(at) if at <= cx.now => Admission::Send,
            Admission::Blocked if self.open == 0 => Admission::Send,
            // A Non-confirmable message is no way around NSTART either.
            Admission::SendAsConfirmable if self.open >= cx.settings.nstart(cx.params) => {
                Admission::Send
            }
            answer => answer,
        }
    }

    /// An exchange opens: its original is about to leave.
    #[inline]
    pub fn open_exchange(&mut self) {
        self.open = self.open.saturating_add(1);
    }

    /// A transmission leaves: the timeout to arm, also written to `slot.armed`.
    #[inline]
    pub fn on_transmit(&mut self, ordinal: u8, slot: &mut Slot, cx: &mut Context<'_>) -> Micros {
        let transmission = Transmission { ordinal, beside: self.open.saturating_sub(1) };
        let timeout = self.control.on_transmit(&transmission, slot, cx);
        slot.armed = timeout.clamp(Self::FLOOR, Self::CEILING);
        slot.armed
    }

    /// The armed timeout passed. Whether the exchange may be transmitted once more; if not, it is
    /// to be closed as given up.
    #[inline]
    pub fn on_expire(&mut self, transmissions: u8, slot: &Slot, cx: &mut Context<'_>) -> bool {
        self.control.on_expire(slot, cx);
        // `transmissions` counts the original, MAX_RETRANSMIT does not (RFC 7252 section 4.2).
        transmissions <= cx.params.max_retransmit && transmissions < u8::MAX
    }

    /// The exchange was acknowledged or reset.
    #[inline]
    pub fn on_feedback(&mut self, slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        self.control.on_feedback(slot, sample, cx);
    }

    /// An exchange ends and frees its place, whatever the reason.
    #[inline]
    pub fn close_exchange(
        &mut self,
        slot: &Slot,
        outcome: Outcome,
        retransmissions: u8,
        cx: &mut Context<'_>,
    ) {
        debug_assert!(self.open > 0, "an exchange closes that was not open");
        self.open = self.open.saturating_sub(1);
        self.control.on_close(slot, outcome, retransmissions, cx);
    }

    /// Replaces the control, as if the peer were new; open exchanges stay open.
    pub fn replace(&mut self, control: Controller) {
        self.control = control;
    }

    /// When [`Shell::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.control.poll_timeout()
    }

    /// The instant that [`Shell::poll_timeout`] gave has come.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.control.handle_timeout(cx);
    }

    /// How the control wants transmissions marked.
    #[inline]
    #[must_use]
    pub fn marking(&self) -> Marking {
        self.control.marking()
    }

    /// What the control knows.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.control.metrics()
    }
}
