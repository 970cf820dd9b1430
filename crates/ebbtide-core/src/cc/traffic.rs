//! The traffic of a scope, as its control sees it.

use crate::time::{Instant, Micros};

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
