//! Congestion control: one interface, every control that has been proposed for CoAP.
//!
//! CoAP is no byte stream: what is decided is when a *message* may leave and how long to wait for
//! its answer before it is repeated. A control lives per *scope* (by default the remote transport
//! address, draft-ietf-core-cocoa-03 section 3) and is asked through [`CongestionControl`]:
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
//! A control may ask before it repeats: in the place of a retransmission ([`Expiry::Probe`]), or of a
//! message that wants to leave ([`Admission::Probe`]), the endpoint then sends a CoAP ping and tells
//! of its answer with `on_probe`. A probe belongs to the exchange that it was sent for and is
//! forgotten with it. A message that nothing answers the probes for is refused ([`Admission::GiveUp`]).
//!
//! No control reads a clock or makes randomness: both come in a [`Context`]. No control can hurt
//! the network beyond slowness: it lives in a [`Shell`] that bounds what it answers.
//!
//! The names, constants and sources of every control are in [`Algorithm`]; how one is chosen and
//! tuned by text is in [`Config`].

mod cocoa;
mod config;
mod controller;
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
mod custom;
mod default;
mod ebb;
mod estimator;
mod fasor;
mod full_backoff;
mod karn;
mod keys;
mod linux_rto;
mod patience;
mod peak_hopper;
mod rcoap;
mod settings;
mod shell;

pub use cocoa::{Cocoa, Cocoa01, CocoaFullBackoff};
pub use config::{Algorithm, Config, ConfigError, Selection};
pub use controller::Controller;
#[cfg(feature = "alloc")]
pub use controller::OtherControl;
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
pub use custom::{ControlFactory, Custom, NameError, Registry, SettingError};
pub use default::Default;
pub use ebb::Ebb;
pub use estimator::Estimator;
pub use fasor::Fasor;
pub use full_backoff::FullBackoff;
pub use linux_rto::LinuxRto;
pub use peak_hopper::PeakHopper;
pub use rcoap::Rcoap;
pub use settings::{InFlight, Settings};
pub use shell::Shell;

use crate::params::Parameters;
use crate::time::{Instant, Micros};
use rand_core::Rng;

/// What every call to a control comes with.
pub struct Context<'a> {
    /// The time of the call.
    pub now: Instant,
    /// RFC 7252's parameters as set for this endpoint.
    pub params: &'a Parameters,
    /// The control's own settings.
    pub settings: &'a Settings,
    /// The only randomness a control may use; seeded by the driver.
    pub rng: &'a mut dyn Rng,
}

impl Context<'_> {
    /// A span drawn uniformly from `[low, high]`, both included; `low` if `high` is shorter.
    pub fn uniform(&mut self, low: Micros, high: Micros) -> Micros {
        let width = u64::from(high.saturating_sub(low).get()) + 1;
        // Multiply-shift: the bias is below 2^-32 of the width times the width, here never more
        // than a microsecond's worth of probability in 4 billion.
        let draw = (u64::from(self.rng.next_u32()) * width) >> 32;
        low.saturating_add(Micros::from_u64(draw))
    }
}

/// What a control fixes for one exchange at a transmission and needs again at a later one. It is
/// stored in the exchange; the control of the scope is shared by all its exchanges.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The timeout armed last, as the shell bounded it. Zero before the first transmission.
    pub armed: Micros,
    /// The timeout of the original transmission, or the base of the series.
    pub base: Micros,
    /// What the algorithm makes of it: FASOR's state at the start of the series.
    pub tag: u8,
}

/// What leaves on behalf of an exchange.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The message itself.
    Message,
    /// A probe: an empty Confirmable message with an ID of its own, a CoAP ping, which every
    /// endpoint answers with a Reset at once (RFC 7252 section 4.3).
    Probe,
}

/// A transmission about to leave.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// The message or a probe for it.
    pub kind: Kind,
    /// Which of its kind in the exchange: for the message 0 is the original, 1 the first
    /// retransmission, and so on; probes are counted by themselves.
    pub ordinal: u8,
    /// Confirmable exchanges that are open in the scope beside this one.
    pub beside: u16,
}

/// A message that asks to leave.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Whether the message is Confirmable and so opens an exchange.
    pub confirmable: bool,
    /// Its length in bytes, CoAP header included.
    pub bytes: u16,
}

/// What is under way in the scope when a message asks to leave.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Open Confirmable exchanges.
    pub open: u16,
    /// When the last Non-confirmable message left, if one has.
    pub last_non: Option<Instant>,
    /// Non-confirmable messages that have left since the last Confirmable one.
    pub nons_since_con: u8,
    /// Bytes of Non-confirmable messages sent since the peer was last heard from, as far as
    /// PROBING_RATE has not paid for them when the next one left.
    pub unanswered_bytes: u32,
    /// When the first of those bytes left. Meaningless if there are none.
    pub unanswered_since: Instant,
    /// Probes that have been sent for the message that asks and were not answered.
    pub probes: u16,
}

/// The answer to a [`Departure`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may leave now.
    Send,
    /// It may leave now if it is made Confirmable: a control that learns only from
    /// acknowledgements asks for one in some of the Non-confirmable messages.
    SendAsConfirmable,
    /// It may not leave before this instant; ask again then.
    NotBefore(Instant),
    /// It may not leave before an open exchange ends; ask again then.
    Blocked,
    /// A probe is to leave in its place. Ask again when a probe is answered, or at this instant.
    Probe(Instant),
    /// The peer does not answer: this message fails, and so do all that wait behind it, once this
    /// one has waited for [`Shell::patience`]; before that it is asked about again ACK_TIMEOUT later.
    /// What is admitted afterwards finds the control as it leaves itself here.
    GiveUp,
}

/// What follows an expired timeout.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// The message is transmitted once more.
    #[default]
    Repeat,
    /// A probe is sent instead. Its answer tells that the path carries messages and how long it
    /// takes; whether the message is to be repeated then, `on_probe` says.
    Probe,
}

/// What an acknowledgement told. All spans end at the same instant, the acknowledgement's arrival.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Since the original transmission.
    pub since_first: Micros,
    /// Since the last transmission; equal to `since_first` when there was one only.
    pub since_last: Micros,
    /// How many transmissions there were, at least 1. The papers' r is one less.
    pub transmissions: u8,
    /// Which transmission was answered and how long ago it left, if a mark told. The endpoint has
    /// checked that it was sent.
    pub answered: Option<Answered>,
}

impl Sample {
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

/// What the answer to a probe told. All spans end at its arrival.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ProbeReply {
    /// Since the probe left.
    pub since: Micros,
    /// Since the last transmission of the message that it was sent for; if that is less than
    /// `since`, the probe left before it and tells nothing about it. Zero before the first one.
    pub since_last: Micros,
    /// How many transmissions of the message there were; none if it waits for admission.
    pub transmissions: u8,
}

/// What an exchange has sent, as far as MAX_RETRANSMIT is concerned.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Transmissions of the message, the original included.
    pub transmissions: u8,
    /// Probes sent for it.
    pub probes: u8,
    /// How many of the probes were answered.
    pub answered_probes: u8,
}

impl Effort {
    /// What went out without an answer so far. One probe is free: a message has as many tries as
    /// without it.
    #[must_use]
    pub const fn unanswered(self) -> u16 {
        let probes = self.probes.saturating_sub(self.answered_probes);
        self.transmissions as u16 + probes.saturating_sub(1) as u16
    }
}

/// How an exchange ended, as far as congestion control is concerned.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged, with a response or without; `on_feedback` came before.
    Acknowledged,
    /// Answered by a Reset; `on_feedback` came before, since a Reset measures the path as well.
    Reset,
    /// Given up after MAX_RETRANSMIT retransmissions.
    GaveUp,
    /// Cancelled by the caller, or the datagram could not be sent.
    Cancelled,
}

/// Whether transmissions of one exchange are told apart on the wire, and how.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Marking {
    /// They are the same bytes.
    #[default]
    None,
    /// The first byte of the token is the ordinal (Thesis19 section 7.3).
    Token,
    /// The original carries the plain token; in a retransmission the ordinal stands before it. Costs
    /// nothing until a message is repeated.
    CopyToken,
    /// The elective option Rexmit-Cnt holds the ordinal (draft-ietf-core-fasor-02).
    Option,
}

/// What a control knows now, for traces and metrics. `None` where it has no such notion.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Smoothed round trip.
    pub srtt: Option<Micros>,
    /// Round-trip variation.
    pub rttvar: Option<Micros>,
    /// The base of the next timeout, before dithering.
    pub rto: Option<Micros>,
    /// A second estimate: CoCoA's weak one, FASOR's slow RTO.
    pub second: Option<Micros>,
    /// The time from one paced message to the next: 1/R of a control that keeps a rate.
    pub interval: Option<Micros>,
    /// The name of the state that the algorithm is in; empty if it has none.
    pub state: &'static str,
}

/// A congestion control for one scope.
///
/// The endpoint calls it through a [`Shell`], in this order for every Confirmable message:
/// `admit`, then for each transmission `on_transmit`, between two of them `on_expire` or `on_probe`,
/// then at most one `on_feedback`, and last exactly one `on_close`. Calls for several exchanges of
/// the scope interleave when NSTART is above one.
pub trait CongestionControl {
    /// Whether a message may leave now. Called for every new message and again when what an
    /// earlier answer waited for has come to pass. The shell has already checked that
    /// `load.open` is below [`Settings::places`] if the message is Confirmable.
    fn admit(&mut self, message: &Departure, load: &Load, cx: &mut Context<'_>) -> Admission {
        let _ = (message, load, cx);
        Admission::Send
    }

    /// A transmission leaves now: how long to wait for its answer. The shell bounds the reply and
    /// writes it to `slot.armed` afterwards, so that `slot.armed` holds the previous timeout here.
    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros;

    /// The armed timeout passed without an answer: what is to leave next. `on_transmit`, for the
    /// message even if a probe was asked for but may not leave, or `on_close` follows at once.
    fn on_expire(&mut self, slot: &Slot, cx: &mut Context<'_>) -> Expiry {
        let _ = (slot, cx);
        Expiry::Repeat
    }

    /// A probe was answered, and the message that it was sent for was not: after how long the
    /// message is repeated if nothing arrives before. `None` leaves the armed timeout as it is.
    /// Called at most once per probe, and not after the exchange was closed.
    fn on_probe(
        &mut self,
        slot: &mut Slot,
        reply: &ProbeReply,
        cx: &mut Context<'_>,
    ) -> Option<Micros> {
        let _ = (slot, reply, cx);
        None
    }

    /// The exchange was acknowledged or reset for the first time. Later answers to it never come
    /// here.
    fn on_feedback(&mut self, slot: &Slot, sample: &Sample, cx: &mut Context<'_>);

    /// The exchange is over. `retransmissions` is how many it took.
    fn on_close(
        &mut self,
        slot: &Slot,
        outcome: Outcome,
        retransmissions: u8,
        cx: &mut Context<'_>,
    ) {
        let _ = (slot, outcome, retransmissions, cx);
    }

    /// When `handle_timeout` wants to be called; for rate epochs only. Ageing is computed from
    /// the time of the next call instead. Asked after every other call; heeded only while the
    /// scope has exchanges, so that idle peers cost no timers.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The instant that `poll_timeout` gave has come. Messages that wait are asked about again
    /// afterwards. If the instant is not moved on, the next call comes no sooner than
    /// [`Shell::FLOOR`] later.
    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// How transmissions are to be marked. Constant for the life of the control.
    fn marking(&self) -> Marking {
        Marking::None
    }

    /// What the control knows now.
    fn metrics(&self) -> Metrics;
}

/// Whether a Non-confirmable message may leave under a rate of one message per `interval`, of
/// which every eighth is sent as Confirmable to measure the path. Every eighth is the leaky bucket
/// of SOCNE14, and satisfies "two of any sixteen" of cocoa-03 as well. PROBING_RATE is always
/// allowed (RFC 7252 section 4.7).
fn admit_non_at_interval(
    message: &Departure,
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
        // Without unanswered bytes there is nothing that PROBING_RATE could be counted from.
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

/// When the bytes sent since the peer was last heard from amount to PROBING_RATE on average
/// (RFC 7252 section 4.7).
pub(crate) fn probing_instant(load: &Load, params: &Parameters) -> Instant {
    let rate = u64::from(params.probing_rate.max(1));
    let nanos = u64::from(load.unanswered_bytes).saturating_mul(1_000_000_000) / rate;
    Instant::from_nanos(load.unanswered_since.as_nanos().saturating_add(nanos))
}
