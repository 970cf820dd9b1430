//! The input and output types of an endpoint.

use crate::cc::Sample;
use crate::exchange::ExchangeId;
use crate::peer::PeerId;
use crate::peer_token::PeerToken;
use crate::time::{Duration, Instant, Micros};
use crate::wire::{Code, EncodeError, Message, MessageId, Type};
use core::fmt;

/// Whether a message is retransmitted until it is acknowledged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// CON (RFC 7252 section 4.2).
    Confirmable,
    /// NON (RFC 7252 section 4.3).
    NonConfirmable,
}

/// A received request, which the application keeps until it responds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Incoming {
    /// The sender of the request.
    pub remote: PeerId,
    /// The message ID of the request.
    pub id: MessageId,
    /// The token, which the response repeats.
    pub token: PeerToken,
    /// Whether the request was Confirmable, so that the response can be piggybacked on its
    /// acknowledgement.
    pub kind: Type,
    /// The method.
    pub code: Code,
    /// Whether duplicates may be processed as well.
    pub(super) idempotent: bool,
    /// Whether it was sent to a group, in which case it is never rejected.
    pub(super) to_group: bool,
    /// Whether an empty ACK has been sent, so that the response must be separate.
    pub(crate) acknowledged: bool,
    /// Whether the application has deferred its answer.
    pub(super) deferred: bool,
    /// The value of the option Rexmit-Cnt, to be echoed.
    pub(super) rexmit_count: Option<u8>,
}

impl Incoming {
    /// The request in the state that it has after
    /// [`Endpoint::acknowledge`](super::Endpoint::acknowledge) was called for a copy of it, in
    /// which its response is a separate one. Returns a Non-confirmable request unchanged.
    #[must_use]
    pub fn after_acknowledgement(self) -> Self {
        Self { acknowledged: self.acknowledged || self.kind == Type::Confirmable, ..self }
    }

    /// Whether the request is idempotent (RFC 7252 section 5.1) and therefore need not be
    /// remembered.
    #[must_use]
    pub const fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    /// Whether it was sent to a group, as [`Arrival::to_group`] stated.
    #[must_use]
    pub const fn is_to_group(&self) -> bool {
        self.to_group
    }
}

/// How a request that must not be processed twice is remembered, so that its copies are duplicates.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Remember {
    /// By its message ID (RFC 7252 section 4.5).
    Yes,
    /// By its message ID. It makes a request again that was challenged, as the message with this other ID,
    /// and was not remembered. If a late copy of that message has been processed in the meantime, this one
    /// gets the same response. Later copies are duplicates.
    After(MessageId),
    /// Not at all.
    No,
}

/// The origin and destination of a datagram.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The sender.
    pub from: PeerId,
    /// Whether its destination was a group, that is, a multicast address or the broadcast address.
    /// Then only requests are processed, and nothing is rejected (RFC 7252 section 8.1).
    pub to_group: bool,
    /// Whether its IP header carried the mark Congestion Experienced (RFC 3168 section 5). If it answers an
    /// exchange of this endpoint, congestion control reacts.
    pub congestion_experienced: bool,
}

impl<P: Into<PeerId>> From<P> for Arrival {
    /// An arrival without a mark at this endpoint's own address, not at a group.
    fn from(from: P) -> Self {
        Self { from: from.into(), to_group: false, congestion_experienced: false }
    }
}

/// The meaning of a datagram.
#[derive(Debug)]
pub enum Received<'d> {
    /// A request. The application answers it with [`Endpoint::respond`](super::Endpoint::respond).
    Request(Incoming, Message<'d>),
    /// The response to a request of ours. Its exchange is over.
    Response {
        /// The request.
        exchange: ExchangeId,
        /// The measurements for congestion control, if this was also the acknowledgement.
        sample: Option<Sample>,
        /// The response.
        message: Message<'d>,
    },
    /// A response after which more may follow: a notification to a request that registered as an
    /// observer (RFC 7641 section 3), one member's response to a request that was sent to a group
    /// (RFC 7252 section 8.2), or one response to a
    /// [`request_block`](super::Endpoint::request_block). The exchange stays open. An observation
    /// stays open until it is cancelled or a [`Received::Response`] ends it. A request to a group
    /// stays open until it fails with [`Failure::NoResponse`] after `response_timeout`.
    Notification {
        /// The request.
        exchange: ExchangeId,
        /// The measurements for congestion control, if this was also the acknowledgement.
        sample: Option<Sample>,
        /// The notification.
        message: Message<'d>,
    },
    /// A message of ours was acknowledged without a response. A request continues to wait for its
    /// separate response; for a response of ours, the exchange has ended.
    Acknowledged {
        /// The acknowledged message.
        exchange: ExchangeId,
        /// The measurements for congestion control.
        sample: Sample,
    },
    /// A message of ours was answered by a Reset. Its exchange has ended. For a ping this means
    /// success.
    Reset {
        /// The message that was reset.
        exchange: ExchangeId,
        /// The measurements for congestion control, if the message was Confirmable.
        sample: Option<Sample>,
    },
    /// A datagram that does not concern the application; the endpoint has handled and counted it.
    Ignored(Ignored),
}

/// The reason why a datagram does not concern the application.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ignored {
    /// Not a CoAP message (RFC 7252 sections 3 and 4.2).
    Malformed,
    /// An empty Confirmable message, answered with a Reset (RFC 7252 section 4.3).
    Ping,
    /// The answer to a probe that congestion control had sent.
    Probe,
    /// A copy of a request that has been processed or is being processed.
    DuplicateRequest,
    /// An answer to an exchange that has ended or never existed: a duplicate, late, or forged.
    UnknownExchange,
    /// An answer whose token or mark belongs to no transmission of its exchange.
    WrongToken,
    /// A message with a critical option that is not understood (RFC 7252 section 5.4.1).
    UnknownCriticalOption,
    /// A request whose token is longer than [`Limits::token_bytes`](super::Limits::token_bytes), answered
    /// with 4.00 (RFC 8974 section 2.2.2).
    TokenTooLong,
    /// A non-idempotent request that arrived while there was no room to remember it.
    NoRoom,
}

/// An event that is not caused by a datagram.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// An exchange ended without its answer.
    Failed {
        /// The exchange.
        exchange: ExchangeId,
        /// The reason.
        reason: Failure,
    },
    /// All message IDs for a peer were used within EXCHANGE_LIFETIME (RFC 7252 section 4.4), so
    /// what is sent to it waits. Reported once, when the first message begins to wait.
    NoMessageId {
        /// The peer.
        remote: PeerId,
        /// Until a part of the IDs is free again.
        wait: Duration,
    },
}

/// The reason why an exchange ended without its answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// MAX_RETRANSMIT retransmissions went unanswered (RFC 7252 section 4.2). The path or the peer
    /// is at fault.
    GaveUp,
    /// The response to an acknowledged or Non-confirmable request did not arrive in time. The peer
    /// is at fault.
    NoResponse,
    /// The response had a critical option that is not understood (RFC 7252 section 5.4.1).
    BadOption,
    /// The driver could not send the datagram.
    SendError,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GaveUp => "no acknowledgement after all retransmissions",
            Self::NoResponse => "no response in time",
            Self::BadOption => "the response has a critical option that is not understood",
            Self::SendError => "the datagram could not be sent",
        })
    }
}

impl core::error::Error for Failure {}

/// The next action of the driver.
#[derive(Debug)]
pub enum Output<'e> {
    /// Send these bytes.
    Transmit(Transmit<'e>),
    /// Report this event to the application.
    Event(Event),
    /// There is nothing more to do now. Call
    /// [`Endpoint::handle_timeout`](super::Endpoint::handle_timeout) at this instant, if there is
    /// one and nothing arrives earlier.
    Timeout(Option<Instant>),
}

/// A datagram to send.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Transmit<'e> {
    /// The destination.
    pub to: PeerId,
    /// The bytes.
    pub datagram: &'e [u8],
    /// The reason for sending it, for traces.
    pub what: Sent,
}

/// The reason for sending a datagram.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A transmission of an exchange of ours.
    Exchange {
        /// The exchange.
        exchange: ExchangeId,
        /// 0 for the original, 1 for the first retransmission, and so on.
        ordinal: u8,
        /// The timeout armed for it; zero for a Non-confirmable message.
        timeout: Micros,
    },
    /// A probe of congestion control for an exchange of ours: a CoAP ping.
    Probe {
        /// The exchange for which it is sent.
        exchange: ExchangeId,
        /// The timeout armed for it; zero if the exchange waits for admission.
        timeout: Micros,
    },
    /// A reply to a received datagram: a piggybacked or Non-confirmable response, an ACK, or a
    /// Reset.
    Reply,
}

/// The reason why a message was not accepted for sending. Nothing was sent or queued.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The message cannot be encoded.
    Encode(EncodeError),
    /// The message is longer than [`Limits::message_bytes`](super::Limits::message_bytes): use
    /// block-wise transfer.
    TooLong {
        /// The message's length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The code is not a request code, or not a response code, as required.
    WrongCode(Code),
    /// The number of messages that wait for this scope has reached
    /// [`Limits::queue_per_peer`](super::Limits::queue_per_peer). Wait until one of them ends.
    QueueFull,
    /// The number of exchanges has reached [`Limits::exchanges`](super::Limits::exchanges).
    TooManyExchanges,
    /// All [`Limits::peers`](super::Limits::peers) scopes have open exchanges.
    TooManyPeers,
    /// The endpoint already uses 256 different controls.
    TooManyControls,
    /// The driver does not fetch outgoing datagrams, and
    /// [`Limits::outbox_bytes`](super::Limits::outbox_bytes) is reached.
    OutboxFull,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encode(error) => write!(f, "the message cannot be encoded: {error}"),
            Self::TooLong { bytes, limit } => {
                write!(f, "a message of {bytes} bytes exceeds the limit of {limit}: use blocks")
            }
            Self::WrongCode(code) => write!(f, "code {code} cannot be sent this way"),
            Self::QueueFull => f.write_str("too many messages wait for this peer"),
            Self::TooManyExchanges => f.write_str("too many exchanges are open"),
            Self::TooManyPeers => f.write_str("too many peers have open exchanges"),
            Self::TooManyControls => {
                f.write_str("too many different congestion controls are in use")
            }
            Self::OutboxFull => f.write_str("too many datagrams wait to be sent"),
        }
    }
}

impl core::error::Error for SendError {}

impl From<EncodeError> for SendError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

/// An endpoint's counters since its creation.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Datagrams that arrived.
    pub received: u64,
    /// Datagrams handed to the driver, or queued for it.
    pub sent: u64,
    /// Retransmissions among them.
    pub retransmissions: u64,
    /// Probes of congestion control among them (CoAP pings, RFC 7252 section 4.3).
    pub probes: u64,
    /// Probes that were answered.
    pub probes_answered: u64,
    /// Expired timeouts of Confirmable messages and of the probes for them.
    pub timeouts: u64,
    /// Exchanges given up.
    pub gave_up: u64,
    /// Datagrams that were not CoAP messages.
    pub malformed: u64,
    /// Pings answered.
    pub pings: u64,
    /// Copies of requests that were recognized.
    pub duplicates: u64,
    /// Answers that belonged to no open exchange.
    pub unknown_answers: u64,
    /// Answers with a wrong token, or with the mark of a transmission that was never sent.
    pub wrong_tokens: u64,
    /// Answers with the mark Congestion Experienced.
    pub congestion_experienced: u64,
    /// Messages with unknown critical options.
    pub bad_options: u64,
    /// Requests refused because there was no room to remember them.
    pub refused: u64,
    /// Responses that could not be stored for duplicates, and deferred requests whose duplicates cannot
    /// be recognized.
    pub unstored: u64,
    /// Messages rejected because a queue or table was full.
    pub queue_full: u64,
    /// How often messages to a peer began to wait because all message IDs for it had been used within
    /// EXCHANGE_LIFETIME (RFC 7252 section 4.4).
    pub id_waits: u64,
    /// Datagrams dropped because the driver did not fetch them.
    pub outbox_full: u64,
    /// Scopes whose state was dropped before its retention was over, for lack of room.
    pub peers_evicted_early: u64,
}
