//! The interface of a control: its decisions, and what it is called with.

use super::settings::Settings;
use super::traffic::{Load, Marking, OutgoingMessage, ProbeReply, Sample, Transmission};
use crate::params::Parameters;
use crate::time::{Instant, Micros};
use rand_core::Rng;

/// The arguments common to all calls to a control.
pub struct Context<'a> {
    /// The time of the call.
    pub now: Instant,
    /// RFC 7252's parameters as configured for this endpoint.
    pub params: &'a Parameters,
    /// The control's own settings.
    pub settings: &'a Settings,
    /// The only randomness that a control may use; the driver seeds it.
    pub rng: &'a mut dyn Rng,
}

impl Context<'_> {
    /// A span drawn uniformly from `[low, high]`, both included; `low` if `high` is shorter.
    pub fn uniform(&mut self, low: Micros, high: Micros) -> Micros {
        Micros::uniform(low, high, self.rng)
    }

    /// `timeout` as the control's bound ([`Settings::bound`]) leaves it. `measured` is the timeout that the
    /// control derives from measured round trips, with its margin; zero if there is none.
    ///
    /// A timeout below the round trip repeats every message forever, and the copies lengthen the
    /// queue that made it too short. No bound therefore holds below `measured`, nor below four times the
    /// first timeout: before a round trip is measured, that timeout is all that is known of the
    /// path, and two doublings tell whether the path is longer than this timeout supposes. A timeout that
    /// is cut is drawn from the last tenth below the bound, and never below `measured`, because a
    /// fleet whose timeouts are all equal repeats in step.
    pub fn bounded(&mut self, timeout: Micros, measured: Micros) -> Micros {
        let Some(bound) = self.settings.bound else { return timeout };
        let first = self.settings.first_timeout(self.params);
        let bound = bound.max(first.scale(4, 1)).max(measured.scale(10, 9));
        if timeout <= bound {
            return timeout;
        }
        self.uniform(bound.scale(9, 10).max(measured), bound)
    }
}

/// Per-exchange state of a control, kept from one transmission to the next. The exchange stores
/// it; the control itself is shared by all exchanges of its scope.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The timeout armed last, as bounded by the shell. Zero before the first transmission.
    pub armed: Micros,
    /// The timeout of the original transmission, or the base of the series.
    pub base: Micros,
    /// A value that the algorithm defines, such as FASOR's state at the start of the series.
    pub tag: u8,
}

/// A control's decision on a [`OutgoingMessage`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may leave now.
    Send,
    /// It may leave now if it is made Confirmable. A control that learns only from
    /// acknowledgements uses this for some of the Non-confirmable messages.
    SendAsConfirmable,
    /// It may not leave before this instant; ask again then.
    NotBefore(Instant),
    /// It may not leave before an open exchange ends; ask again then.
    Blocked,
    /// A probe leaves first. Ask again when a probe is answered, or at this instant.
    Probe(Instant),
    /// The peer does not answer. The message fails once it has waited for
    /// [`Shell::patience`](super::Shell::patience), and so do all messages that wait behind it;
    /// until then the control is asked again after each ACK_TIMEOUT. Messages admitted afterwards
    /// find the control in the state in which it returned this.
    GiveUp,
}

/// A control's decision after an expired timeout.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// The message is transmitted once more.
    #[default]
    Repeat,
    /// A probe is sent instead. Its answer shows that the path carries messages, and how long it
    /// takes; `on_probe` then decides whether the message is repeated.
    Probe,
}

/// How an exchange ended, as far as congestion control is concerned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged, with or without a response; `on_feedback` was called before.
    Acknowledged,
    /// Answered by a Reset; `on_feedback` was called before, since a Reset measures the path as
    /// well.
    Reset,
    /// Given up after MAX_RETRANSMIT retransmissions.
    GaveUp,
    /// Cancelled by the caller, or the datagram could not be sent.
    Cancelled,
}

/// The present knowledge of a control, for traces and metrics. A field is `None` if the control
/// has no such quantity.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Smoothed round trip.
    pub srtt: Option<Micros>,
    /// Round-trip variation.
    pub rttvar: Option<Micros>,
    /// The base of the next timeout, before dithering.
    pub rto: Option<Micros>,
    /// A second estimate: CoCoA's weak one, FASOR's slow RTO.
    pub second: Option<Micros>,
    /// The time between two paced messages: 1/R of a control that keeps a rate.
    pub interval: Option<Micros>,
    /// The name of the algorithm's state; empty if it has none.
    pub state: &'static str,
}

impl Metrics {
    /// The same knowledge with this smoothed round trip.
    #[must_use]
    pub const fn with_srtt(self, srtt: Option<Micros>) -> Self {
        Self { srtt, ..self }
    }

    /// The same knowledge with this base of the next timeout.
    #[must_use]
    pub const fn with_rto(self, rto: Option<Micros>) -> Self {
        Self { rto, ..self }
    }
}

/// The congestion control of one scope.
///
/// The endpoint calls it through a [`Shell`](super::Shell). For every Confirmable message the order is: `admit`;
/// then `on_transmit` for each transmission, with `on_expire` or `on_probe` between two of them;
/// then at most one `on_feedback`; and finally exactly one `on_close`. Calls for several exchanges
/// of the scope interleave if NSTART is above one.
pub trait CongestionControl {
    /// Decides whether a message may leave now. Called for every new message, and again when the
    /// condition of an earlier decision is met. For a Confirmable message, the shell has already
    /// checked that `load.open` is below [`Settings::places`].
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        let _ = (message, load, cx);
        Admission::Send
    }

    /// A transmission leaves now; returns how long to wait for its answer. The shell bounds the
    /// returned timeout and then writes it to `slot.armed`. During the call, `slot.armed` still
    /// holds the previous timeout. The last waits of a short series are made longer, so that no
    /// exchange is given up before MAX_TRANSMIT_SPAN.
    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros;

    /// The armed timeout passed without an answer; returns what leaves next. `on_transmit` or
    /// `on_close` follows at once. If a probe was chosen but may not leave, `on_transmit` is
    /// called for the message instead.
    fn on_expire(&mut self, slot: &Slot, cx: &mut Context<'_>) -> Expiry {
        let _ = (slot, cx);
        Expiry::Repeat
    }

    /// A probe was answered before its message was. Returns the time after which the message is
    /// repeated unless an answer arrives earlier; `None` leaves the armed timeout as it is. Called
    /// at most once per probe, and never after the exchange was closed.
    fn on_probe(
        &mut self,
        slot: &mut Slot,
        reply: &ProbeReply,
        cx: &mut Context<'_>,
    ) -> Option<Micros> {
        let _ = (slot, reply, cx);
        None
    }

    /// The exchange was acknowledged or reset for the first time. Later answers to it are not
    /// reported.
    fn on_feedback(&mut self, slot: &Slot, sample: &Sample, cx: &mut Context<'_>);

    /// The exchange ended after this many `retransmissions`.
    fn on_close(
        &mut self,
        slot: &Slot,
        outcome: Outcome,
        retransmissions: u8,
        cx: &mut Context<'_>,
    ) {
        let _ = (slot, outcome, retransmissions, cx);
    }

    /// The answer to an exchange arrived with the mark Congestion Experienced (RFC 3168 section 5): a queue on
    /// the path is growing, and the packet would have been dropped without ECN. Called after `on_feedback`.
    /// Returns for how long no new message leaves; zero if the control reacts by other means. Until then it is
    /// not called again, so that a sender reacts at most once to the marks of one round trip.
    ///
    /// By default it is [`original_timeout`](Self::original_timeout): a sender whose window is one message sends
    /// the next one when its retransmission timer expires (RFC 3168 section 6.1.2). A sender that uses ECN has to
    /// react to marks (RFC 8085 section 3.1.7).
    fn on_congestion_experienced(&mut self, cx: &mut Context<'_>) -> Micros {
        self.original_timeout(cx)
    }

    /// The timeout that an original transmission would have now. By default it is the RTO of `metrics`, or else the
    /// first timeout as it is set; a control that bounds or keeps timeouts says its own. One that draws them from a
    /// range returns the RTO from which the range is computed, or the longest timeout if it has no RTO.
    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        self.metrics().rto.unwrap_or_else(|| cx.settings.first_timeout(cx.params))
    }

    /// The next instant at which to call `handle_timeout`; intended for rate epochs only. Ageing
    /// is computed at the time of the next call instead. Queried after every other call, and
    /// ignored while the scope has no exchanges, so that idle peers need no timers.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The instant returned by `poll_timeout` has come. Waiting messages ask for admission again
    /// afterwards. If `poll_timeout` still returns a past instant, the next call comes no sooner
    /// than [`Shell::FLOOR`](super::Shell::FLOOR) later.
    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// How transmissions are marked. Constant for the life of the control.
    fn marking(&self) -> Marking {
        Marking::None
    }

    /// The present state of the control.
    fn metrics(&self) -> Metrics {
        Metrics::default()
    }
}
