//! The shell, which bounds every control.

use super::{
    Admission, Attempts, CongestionControl, Context, Controller, Expiry, Load, Marking, Metrics,
    Outcome, OutgoingMessage, ProbeReply, Sample, Slot, Transmission,
};
use crate::params::Parameters;
use crate::time::{Instant, Micros};

/// A control and the limits that the core enforces around it.
///
/// Whatever the control decides, at most [`Settings::places`](super::Settings::places) Confirmable
/// exchanges are open (NSTART), every timeout that it chooses for a transmission lies in
/// `[FLOOR, CEILING]`, no exchange has more than MAX_RETRANSMIT retransmissions, and every admitted
/// exchange is closed exactly once. Within these limits a faulty control can still overload a link.
///
/// Probes are bounded as retransmissions are. An open exchange sends at most MAX_RETRANSMIT of
/// them, each in the place of a retransmission. Every unanswered probe beyond the first counts as
/// a retransmission, so an exchange ends after at most 2 + MAX_RETRANSMIT unanswered datagrams.
/// Answered probes do not count, so a message has as many tries under a control that sends one
/// probe as without probes. No exchange is given up before [`Shell::patience`] is over, however
/// short the timeouts are. A message that waits for admission is preceded by pairs of probes that
/// are [`Shell::PROBE_GAP`] apart; when [`Load::MAX_PROBES`] of them are unanswered, the message
/// itself leaves.
///
/// A program that uses one control alone puts it into a shell of its own, so that the code of the others is not linked.
#[derive(Debug)]
pub struct Shell<C = Controller> {
    control: C,
    open: u16,
    /// No new message leaves before this instant, since the path has marked an answer.
    quiet_until: Instant,
}

impl Shell {
    /// The shortest timeout. With a shorter one, the response time of an operating system would
    /// look like loss.
    pub const FLOOR: Micros = Micros::from_millis(10);
    /// The longest timeout: no path is longer than the longest span that can be set.
    pub const CEILING: Micros = Parameters::LONGEST_SPAN;
    /// The minimum time between two pairs of probes for a waiting message. A thousand empty
    /// messages a second are 256 kbit/s with their IPv4 and UDP headers.
    pub const PROBE_GAP: Micros = Micros::from_millis(1);
}

impl<C: CongestionControl> Shell<C> {
    /// Wraps `control`, with no open exchanges.
    #[must_use]
    pub const fn new(control: C) -> Self {
        Self { control, open: 0, quiet_until: Instant::ZERO }
    }

    /// The number of Confirmable exchanges open in the scope.
    #[inline]
    #[must_use]
    pub const fn open(&self) -> u16 {
        self.open
    }

    /// Whether `message` may leave now. Overwrites `load.open` with the shell's own count.
    pub fn admit(
        &mut self,
        message: &OutgoingMessage,
        mut load: Load,
        cx: &mut Context<'_>,
    ) -> Admission {
        load.open = self.open;
        // NSTART is at least 1: zero would never send (RFC 7252 section 4.7).
        if message.confirmable && self.open >= cx.settings.places(cx.params) {
            return Admission::Blocked;
        }
        if cx.now < self.quiet_until {
            return Admission::NotBefore(self.quiet_until);
        }
        match self.control.admit(message, &load, cx) {
            // An instant that has come means consent; otherwise a caller that asks again would
            // spin.
            Admission::NotBefore(at) if at <= cx.now => Admission::Send,
            Admission::Blocked if self.open == 0 => Admission::Send,
            // Sending a Non-confirmable message as Confirmable must not circumvent NSTART either.
            Admission::SendAsConfirmable if self.open >= cx.settings.places(cx.params) => {
                Admission::Send
            }
            Admission::Probe(_) if load.probes >= Load::MAX_PROBES => Admission::Send,
            // The second probe of a pair may follow at once, because the spacing of the answers
            // shows how long the narrowest link needs for one of them.
            Admission::Probe(at) if load.probes.is_multiple_of(2) => {
                Admission::Probe(at.max(cx.now))
            }
            Admission::Probe(at) => Admission::Probe(at.max(cx.now + Shell::PROBE_GAP)),
            answer => answer,
        }
    }

    /// Opens an exchange whose original transmission is about to leave.
    #[inline]
    pub fn open_exchange(&mut self) {
        self.open = self.open.saturating_add(1);
    }

    /// A transmission of the message or of a probe leaves. The shell itself counts the other open exchanges
    /// ([`Transmission::beside`]). Returns the timeout to arm and writes it to `slot.armed`.
    #[inline]
    pub fn on_transmit(
        &mut self,
        transmission: Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        let beside = self.open.saturating_sub(1);
        let transmission = Transmission { beside, ..transmission };
        let timeout = self.control.on_transmit(&transmission, slot, cx);
        slot.armed = timeout.clamp(Shell::FLOOR, Shell::CEILING);
        slot.armed
    }

    /// The armed timeout passed. Returns what leaves next, or `None` if the exchange is to be
    /// closed as given up.
    #[inline]
    pub fn on_expire(
        &mut self,
        effort: Attempts,
        slot: &Slot,
        cx: &mut Context<'_>,
    ) -> Option<Expiry> {
        let wish = self.control.on_expire(slot, cx);
        // The original counts here, but not for MAX_RETRANSMIT (RFC 7252 section 4.2).
        let left = effort.unanswered() <= u16::from(cx.params.max_retransmit)
            && effort.transmissions < u8::MAX;
        match wish {
            _ if !left => None,
            Expiry::Probe if effort.probes >= most(cx) => Some(Expiry::Repeat),
            wish => Some(wish),
        }
    }

    /// A probe was answered. Returns the time after which the message is to be repeated, if the
    /// control wants that: at most [`Shell::CEILING`], and zero for a repetition at once.
    pub fn on_probe(
        &mut self,
        slot: &mut Slot,
        reply: &ProbeReply,
        cx: &mut Context<'_>,
    ) -> Option<Micros> {
        let wait = self.control.on_probe(slot, reply, cx).map(|wait| wait.min(Shell::CEILING));
        // A verdict does not allow a copy beyond MAX_RETRANSMIT (RFC 7252 section 4.2), whatever
        // the control says.
        wait.filter(|_| reply.transmissions <= most(cx))
    }

    /// The exchange was acknowledged or reset.
    #[inline]
    pub fn on_feedback(&mut self, slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        self.control.on_feedback(slot, sample, cx);
    }

    /// The answer to an exchange arrived with the mark Congestion Experienced. No new message leaves for as
    /// long as the control says, at most [`Shell::CEILING`]; marks that arrive until then belong to the same
    /// congestion (RFC 3168 section 6.1.2: a sender reacts at most once per round trip).
    pub fn on_congestion_experienced(&mut self, cx: &mut Context<'_>) {
        if cx.now >= self.quiet_until {
            let quiet = self.control.on_congestion_experienced(cx).min(Shell::CEILING);
            self.quiet_until = cx.now + quiet;
        }
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

    /// Replaces the control as if the peer were new; open exchanges stay open.
    pub fn replace(&mut self, control: C) {
        self.control = control;
    }

    /// The next instant at which to call [`Shell::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.control.poll_timeout()
    }

    /// The instant returned by [`Shell::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.control.handle_timeout(cx);
    }

    /// How the control wants transmissions marked.
    #[inline]
    #[must_use]
    pub fn marking(&self) -> Marking {
        self.control.marking()
    }

    /// The present state of the control.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.control.metrics()
    }
}

/// The maximum number of copies of a message, or of probes for it; they are counted in a byte.
fn most(cx: &Context<'_>) -> u8 {
    cx.params.max_retransmit.min(u8::MAX - 1)
}
