//! The shell that no control escapes.

use super::{
    Admission, CongestionControl, Context, Controller, Departure, Effort, Expiry, Kind, Load,
    Marking, Metrics, Outcome, ProbeReply, Sample, Slot, Transmission,
};
use crate::time::{Instant, Micros};

/// A control and what the core enforces around it.
///
/// Whatever the control answers, at most [`Settings::places`](super::Settings::places), NSTART, of
/// Confirmable exchanges are open, every timeout lies
/// in `[FLOOR, CEILING]`, no exchange has more than MAX_RETRANSMIT retransmissions, and every
/// exchange that was admitted is closed exactly once. A wrong control may be slow; it cannot be
/// unsafe.
///
/// Probes are bounded as retransmissions are. An open exchange sends at most MAX_RETRANSMIT of them,
/// each in the place of a retransmission. Of those that nothing answers all but one count as one, so
/// that an exchange ends after 2 + MAX_RETRANSMIT datagrams without an answer; the answered ones and
/// that one are given back: under a control that asks once a message has as many tries as without
/// probes. No exchange is given up before [`Shell::patience`] is over, however short the timeouts.
/// A message that waits
/// for admission is preceded by pairs of probes that are [`Shell::PROBE_GAP`] apart, and at most
/// [`Shell::PROBES`] of them are unanswered: then it leaves itself.
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
    /// The least time between two pairs of probes for a message that waits. A thousand empty messages
    /// a second are 256 kbit/s with their IPv4 and UDP headers.
    pub const PROBE_GAP: Micros = Micros::from_millis(1);
    /// How many probes for a message that waits may be unanswered: 32 kB on the way at most, and as
    /// many entries of 24 bytes in the exchange.
    pub const PROBES: u16 = 1024;

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
        if message.confirmable && self.open >= cx.settings.places(cx.params) {
            return Admission::Blocked;
        }
        match self.control.admit(message, &load, cx) {
            // An instant that has come is a consent, or a caller that asks again would spin.
            Admission::NotBefore(at) if at <= cx.now => Admission::Send,
            Admission::Blocked if self.open == 0 => Admission::Send,
            // A Non-confirmable message is no way around NSTART either.
            Admission::SendAsConfirmable if self.open >= cx.settings.places(cx.params) => {
                Admission::Send
            }
            Admission::Probe(_) if load.probes >= Self::PROBES => Admission::Send,
            // The second of a pair may follow at once: the spacing of their answers is what the
            // narrowest link needs for one of them.
            Admission::Probe(at) if load.probes.is_multiple_of(2) => {
                Admission::Probe(at.max(cx.now))
            }
            Admission::Probe(at) => Admission::Probe(at.max(cx.now + Self::PROBE_GAP)),
            answer => answer,
        }
    }

    /// An exchange opens: its original is about to leave.
    #[inline]
    pub fn open_exchange(&mut self) {
        self.open = self.open.saturating_add(1);
    }

    /// A transmission leaves, the message or a probe for it: the timeout to arm, also written to
    /// `slot.armed`.
    #[inline]
    pub fn on_transmit(
        &mut self,
        (kind, ordinal): (Kind, u8),
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        let transmission = Transmission { kind, ordinal, beside: self.open.saturating_sub(1) };
        let timeout = self.control.on_transmit(&transmission, slot, cx);
        slot.armed = timeout.clamp(Self::FLOOR, Self::CEILING);
        slot.armed
    }

    /// The armed timeout passed: what leaves next. `None` if the exchange is to be closed as given
    /// up.
    #[inline]
    pub fn on_expire(
        &mut self,
        effort: Effort,
        slot: &Slot,
        cx: &mut Context<'_>,
    ) -> Option<Expiry> {
        let wish = self.control.on_expire(slot, cx);
        // The original counts here, for MAX_RETRANSMIT it does not (RFC 7252 section 4.2).
        let left = effort.unanswered() <= u16::from(cx.params.max_retransmit)
            && effort.transmissions < u8::MAX;
        match wish {
            _ if !left => None,
            Expiry::Probe if effort.probes >= Self::most(cx) => Some(Expiry::Repeat),
            wish => Some(wish),
        }
    }

    /// A probe was answered: after how long the message is to be repeated, if the control says so.
    pub fn on_probe(
        &mut self,
        slot: &mut Slot,
        reply: &ProbeReply,
        cx: &mut Context<'_>,
    ) -> Option<Micros> {
        let wait = self.control.on_probe(slot, reply, cx).map(|wait| wait.min(Self::CEILING));
        // A verdict buys no copy beyond MAX_RETRANSMIT (RFC 7252 section 4.2), whatever the control
        // says.
        wait.filter(|_| reply.transmissions <= Self::most(cx))
    }

    /// How many copies of a message, or probes for it, may leave: they are counted in a byte.
    fn most(cx: &Context<'_>) -> u8 {
        cx.params.max_retransmit.min(u8::MAX - 1)
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
