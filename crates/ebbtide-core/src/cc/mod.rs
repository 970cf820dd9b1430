//! Congestion control: twenty-three controls for CoAP behind one interface.
//!
//! CoAP does not transport a byte stream. A control decides when a *message* may leave, and how
//! long to wait for its answer before the message is repeated. There is one control per *scope*
//! (by default the remote transport address, draft-ietf-core-cocoa-03 section 3), called through
//! [`CongestionControl`]:
//!
//! ```text
//!   message ready ──► admit ──► Send ─────► on_transmit (ordinal 0) ── timeout ─► armed
//!                        │                        ▲                                 │
//!                        └► NotBefore / Blocked   │        expires                  │ answer
//!                                                 └── on_expire ◄───────────────────┤
//!                                                                                   ▼
//!                                                            on_feedback (a sample), on_close
//! ```
//!
//! A control may probe the path before it repeats a message. In the place of a retransmission
//! ([`Expiry::Probe`]), or of a message that is ready to leave ([`Admission::Probe`]), the
//! endpoint sends a CoAP ping and reports its answer with `on_probe`. A probe belongs to the
//! exchange for which it was sent and ends with it. A message whose probes all stay unanswered is
//! refused ([`Admission::GiveUp`]).
//!
//! No control reads a clock or generates randomness; a [`Context`] supplies both. Each control runs
//! in a [`Shell`], which enforces NSTART, MAX_RETRANSMIT and the bounds of a timeout. Within these
//! limits a faulty control can still overload a link.
//!
//! [`Algorithm`] lists the name and source of every control; [`ControlConfig`] selects and tunes a
//! control by text.

mod basic_rto;
mod cocoa;
mod cocoa_strong;
mod config;
mod config_error;
mod controls;
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
mod custom;
mod default;
mod ebb;
mod ecoap;
mod eifel;
mod estimator;
mod fasor;
mod full_backoff;
mod karn;
mod keys;
mod linux_rto;
mod patience;
mod peak_hopper;
mod rcoap;
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
mod registry;
mod rfc6298;
mod schedule;
mod settings;
mod shell;
mod span;

pub use basic_rto::BasicRto;
pub use cocoa::{Cocoa, Cocoa01, CocoaFullBackoff};
pub use cocoa_strong::CocoaStrong;
pub use config::{ControlConfig, Selection};
pub use config_error::ConfigError;
#[cfg(feature = "alloc")]
pub use controls::DynControl;
pub use controls::{Algorithm, Controller};
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
pub use custom::{ControlFactory, Custom, SettingError};
pub use default::Default;
pub use ebb::Ebb;
pub use ecoap::{Ecoap, EcoapRpl};
pub use eifel::Eifel;
pub use estimator::{Estimator, Gains};
pub use fasor::Fasor;
pub use full_backoff::FullBackoff;
pub use keys::SettingKey;
pub use linux_rto::LinuxRto;
pub use peak_hopper::PeakHopper;
pub use rcoap::Rcoap;
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
pub use registry::{NameError, Registry};
pub use rfc6298::Rfc6298;
pub use schedule::TimeoutSchedule;
pub use settings::{
    CocoaCode, CocoaSettings, EbbSettings, EcoapSettings, InFlight, RcoapSettings, Settings,
};
pub use shell::Shell;

use crate::params::Parameters;
use crate::time::{Instant, Micros, divide};
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

/// The kind of datagram that leaves on behalf of an exchange.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The message itself.
    Message,
    /// A probe: an empty Confirmable message with a message ID of its own, that is, a CoAP ping.
    /// Every endpoint answers it with a Reset at once (RFC 7252 section 4.3).
    Probe,
    /// A message for which no probe may leave: a ping, which is one itself, or a flight of a DTLS
    /// handshake. When its timeout expires, it is repeated, whatever the control would rather do, so
    /// the timeout must be long enough for a copy.
    Unprobed,
}

/// A transmission that is about to leave.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transmission {
    /// The message or a probe.
    pub kind: Kind,
    /// The ordinal within its kind in the exchange: for the message, 0 is the original and 1 the
    /// first retransmission. Probes have a count of their own.
    pub ordinal: u8,
    /// The number of other Confirmable exchanges that are open in the scope.
    pub beside: u16,
    /// The time within which copies of the message may still leave: until the end of
    /// EXCHANGE_LIFETIME, or MAX_LATENCY earlier if the request is not idempotent (RFC 7252 section
    /// 4.8.2). An exchange whose timeout expires later is given up, whatever tries are left.
    /// [`Micros::MAX`] stands for any longer time as well.
    pub remaining: Micros,
}

impl Transmission {
    /// A transmission with this ordinal, beside no other exchange and without a limit on its time.
    #[must_use]
    pub const fn new(kind: Kind, ordinal: u8) -> Self {
        Self { kind, ordinal, beside: 0, remaining: Micros::MAX }
    }
}

/// A message that is ready to leave and asks for admission.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// Whether the message is Confirmable and therefore opens an exchange.
    pub confirmable: bool,
    /// Its length in bytes, CoAP header included.
    pub bytes: u16,
}

/// The traffic that is under way in the scope when a message asks for admission.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// The number of open Confirmable exchanges.
    pub open: u16,
    /// When the last Non-confirmable message left; `None` if none has.
    pub last_non: Option<Instant>,
    /// Non-confirmable messages that have left since the last Confirmable one.
    pub nons_since_con: u8,
    /// The bytes of Non-confirmable messages sent since the peer last responded, less those that
    /// PROBING_RATE already covered when a later one left.
    pub unanswered_bytes: u32,
    /// When the first of those bytes left. Meaningless if there are no such bytes.
    pub unanswered_since: Instant,
    /// The number of unanswered probes that were sent for the message that asks.
    pub probes: u16,
}

impl Load {
    /// The maximum number of unanswered probes for a waiting message: at most 32 kB on the way,
    /// and as many entries of 24 bytes in the exchange.
    pub const MAX_PROBES: u16 = 1024;
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
    /// The peer does not answer. The message fails once it has waited for [`Shell::patience`], and
    /// so do all messages that wait behind it; until then the control is asked again after each
    /// ACK_TIMEOUT. Messages admitted afterwards find the control in the state in which it
    /// returned this.
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

/// The measurements of an acknowledgement. All spans end when it arrives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// The time since the original transmission.
    pub since_first: Micros,
    /// The time since the last transmission; equal to `since_first` if there was only one.
    pub since_last: Micros,
    /// The number of transmissions, at least 1. It is one more than r in the papers.
    pub transmissions: u8,
    /// The transmission that was answered and how long ago it left, if a mark identifies it. The
    /// endpoint has checked that it was sent.
    pub answered: Option<Answered>,
}

impl Sample {
    /// The answer to one of `transmissions`, of which no mark says which.
    #[must_use]
    pub const fn new(since_first: Micros, since_last: Micros, transmissions: u8) -> Self {
        Self { since_first, since_last, transmissions, answered: None }
    }

    /// The same answer, with the transmission that a mark identifies.
    #[must_use]
    pub const fn with_answered(self, answered: Option<Answered>) -> Self {
        Self { answered, ..self }
    }

    /// The number of retransmissions, the papers' r.
    #[inline]
    #[must_use]
    pub const fn retransmissions(&self) -> u8 {
        self.transmissions.saturating_sub(1)
    }
}

/// The transmission that an answer belongs to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its ordinal.
    pub ordinal: u8,
    /// The time since it left.
    pub since: Micros,
}

/// The measurements of an answer to a probe. All spans end when it arrives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ProbeReply {
    /// The time since the probe left.
    pub since: Micros,
    /// The time since the last transmission of the probe's message; zero before the first one. If
    /// it is less than `since`, the probe left before that transmission and gives no information
    /// about it.
    pub since_last: Micros,
    /// The number of transmissions of the message; zero if the message waits for admission.
    pub transmissions: u8,
}

/// The transmissions of an exchange, as counted for MAX_RETRANSMIT.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// Transmissions of the message, the original included.
    pub transmissions: u8,
    /// Probes sent for it.
    pub probes: u8,
    /// The number of answered probes.
    pub answered_probes: u8,
}

impl Attempts {
    /// The number of unanswered transmissions so far. One probe is not counted, so that a message
    /// has as many tries as without probes.
    #[must_use]
    pub const fn unanswered(self) -> u16 {
        let probes = self.probes.saturating_sub(self.answered_probes);
        self.transmissions as u16 + probes.saturating_sub(1) as u16
    }
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

/// How the transmissions of one exchange are distinguished on the wire.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Marking {
    /// All transmissions are the same bytes.
    #[default]
    None,
    /// The first byte of the token is the ordinal (Thesis19 section 7.3).
    Token,
    /// The original carries the plain token; a retransmission has its ordinal in front of it. The
    /// mark costs nothing until a message is repeated.
    CopyToken,
    /// The elective option Rexmit-Cnt holds the ordinal (draft-ietf-core-fasor-02).
    Option,
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
/// The endpoint calls it through a [`Shell`]. For every Confirmable message the order is: `admit`;
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
    /// than [`Shell::FLOOR`] later.
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

/// Decides whether a Non-confirmable message may leave at a rate of one message per `interval`.
/// Every eighth message is sent as Confirmable to measure the path: this is the leaky bucket of
/// SOCNE14, and it satisfies "two of any sixteen" of cocoa-03 as well. PROBING_RATE is always
/// allowed (RFC 7252 section 4.7).
fn admit_non_at_interval(
    message: &OutgoingMessage,
    load: &Load,
    interval: Micros,
    cx: &Context<'_>,
) -> Admission {
    const CONFIRMABLE_EVERY: u8 = 8;
    if message.confirmable {
        return Admission::Send;
    }
    if let Some(last) = load.last_non {
        let mut earliest = last + interval;
        // Without unanswered bytes, PROBING_RATE has no starting point.
        if load.unanswered_bytes > 0 {
            earliest = earliest.min(probing_instant(load, cx.params));
        }
        if cx.now < earliest {
            return Admission::NotBefore(earliest);
        }
    }
    if load.nons_since_con >= CONFIRMABLE_EVERY - 1 && load.open < cx.settings.places(cx.params) {
        return Admission::SendAsConfirmable;
    }
    Admission::Send
}

/// The instant at which the bytes sent since the peer last responded average PROBING_RATE (RFC
/// 7252 section 4.7).
pub(crate) fn probing_instant(load: &Load, params: &Parameters) -> Instant {
    let rate = u64::from(params.probing_rate.max(1));
    let nanos = divide(u64::from(load.unanswered_bytes).saturating_mul(1_000_000_000), rate);
    Instant::from_nanos(load.unanswered_since.as_nanos().saturating_add(nanos))
}
