//! What goes into an endpoint and comes out of it.

use crate::cc::Sample;
use crate::exchange::ExchangeId;
use crate::time::{Instant, Micros};
use crate::wire::{Code, EncodeError, Message, MessageId, Token, Type};
use core::fmt;
use core::net::SocketAddr;

/// Whether a message is repeated until it is acknowledged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// CON (RFC 7252 section 4.2).
    Confirmable,
    /// NON (RFC 7252 section 4.3).
    NonConfirmable,
}

/// A request that arrived; kept by the application until it responds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Who asked.
    pub remote: SocketAddr,
    /// The message ID of the request.
    pub id: MessageId,
    /// The token, which the response repeats.
    pub token: Token,
    /// Whether the request was Confirmable: then the response can ride on its acknowledgement.
    pub kind: Type,
    /// The method.
    pub code: Code,
    /// Whether a duplicate is processed as well.
    pub(super) idempotent: bool,
    /// Whether it was sent to a group: then nothing refuses it.
    pub(super) to_group: bool,
    /// Whether an empty ACK has been sent, so that the response must be separate.
    pub(super) acknowledged: bool,
    /// What the option Rexmit-Cnt said, to be echoed.
    pub(super) rexmit_count: Option<u8>,
}

impl Incoming {
    /// The request as it is once [`Endpoint::acknowledge`](super::Endpoint::acknowledge) was called
    /// for a copy of this: its response is a separate one. Nothing changes if it is Non-confirmable.
    #[must_use]
    pub fn after_acknowledgement(self) -> Self {
        Self { acknowledged: self.acknowledged || self.kind == Type::Confirmable, ..self }
    }

    /// Whether doing it twice is doing it once (RFC 7252 section 5.1), so that it need not be
    /// remembered.
    #[must_use]
    pub const fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    /// Whether it was sent to a group, as [`Arrival::to_group`] said.
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

/// How a datagram arrived.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who sent it.
    pub from: SocketAddr,
    /// Whether it was sent to a group: its destination was a multicast address, or the broadcast
    /// address. Then nothing but a request is heeded, and nothing is rejected (RFC 7252 section 8.1).
    pub to_group: bool,
}

impl From<SocketAddr> for Arrival {
    /// It was sent to this endpoint alone.
    fn from(from: SocketAddr) -> Self {
        Self { from, to_group: false }
    }
}

/// What a datagram turned out to be.
#[derive(Debug)]
pub enum Received<'d> {
    /// A request for the application, which answers with
    /// [`Endpoint::respond`](super::Endpoint::respond).
    Request(Incoming, Message<'d>),
    /// The response to a request of ours. Its exchange is over.
    Response {
        /// The request.
        exchange: ExchangeId,
        /// What congestion control learnt, if this was also the acknowledgement.
        sample: Option<Sample>,
        /// The response.
        message: Message<'d>,
    },
    /// A response after which more may come: a notification to a request that registered as an
    /// observer (RFC 7641 section 3), one member's answer to a request that was sent to a group
    /// (RFC 7252 section 8.2), or one to a
    /// [`request_block`](super::Endpoint::request_block). The exchange stays open: an observation until it is cancelled or a
    /// [`Received::Response`] ends it, a group's until it fails with
    /// [`Failure::NoResponse`] after `response_timeout`.
    Notification {
        /// The request.
        exchange: ExchangeId,
        /// What congestion control learnt, if this was also the acknowledgement.
        sample: Option<Sample>,
        /// The notification.
        message: Message<'d>,
    },
    /// A message of ours was acknowledged without a response. A request goes on waiting for its
    /// separate response; a response of ours has arrived and its exchange is over.
    Acknowledged {
        /// Which message.
        exchange: ExchangeId,
        /// What congestion control learnt.
        sample: Sample,
    },
    /// A message of ours was answered by a Reset. Its exchange is over. For a ping that is success.
    Reset {
        /// Which message.
        exchange: ExchangeId,
        /// What congestion control learnt, if the message had been Confirmable.
        sample: Option<Sample>,
    },
    /// Nothing for the application; the endpoint did what had to be done and counted it.
    Ignored(Ignored),
}

/// Why a datagram is of no interest to the application.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// Not a CoAP message (RFC 7252 sections 3 and 4.2).
    Malformed,
    /// An empty Confirmable message, answered with a Reset (RFC 7252 section 4.3).
    Ping,
    /// The answer to a probe that congestion control had sent.
    Probe,
    /// A copy of a request that has been processed or is being processed.
    DuplicateRequest,
    /// An answer to an exchange that is over or never was: a duplicate, late, or forged.
    UnknownExchange,
    /// An answer whose token or mark belongs to no transmission of its exchange.
    WrongToken,
    /// A message with a critical option that nobody knows (RFC 7252 section 5.4.1).
    UnknownCriticalOption,
    /// A request that is not idempotent, while there is no room to remember it.
    NoRoom,
}

/// Something that happened without a datagram arriving.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An exchange ended without its answer.
    Failed {
        /// Which one.
        exchange: ExchangeId,
        /// Why.
        reason: Failure,
    },
}

/// Why an exchange ended without its answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// MAX_RETRANSMIT retransmissions went unanswered (RFC 7252 section 4.2): the path or the peer.
    GaveUp,
    /// The response to an acknowledged or Non-confirmable request did not come in time: the peer.
    NoResponse,
    /// The response had a critical option that nobody here knows (RFC 7252 section 5.4.1).
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

/// What an endpoint wants.
#[derive(Debug)]
pub enum Output<'e> {
    /// Send these bytes.
    Transmit(Transmit<'e>),
    /// Tell the application.
    Event(Event),
    /// Nothing more now. Call [`Endpoint::handle_timeout`](super::Endpoint::handle_timeout) at that
    /// instant, if there is one and nothing arrives before.
    Timeout(Option<Instant>),
}

/// A datagram to send.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Transmit<'e> {
    /// To whom.
    pub to: SocketAddr,
    /// The bytes.
    pub datagram: &'e [u8],
    /// Why, for traces.
    pub what: Sent,
}

/// Why a datagram is sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A transmission of an exchange of ours.
    Exchange {
        /// Which exchange.
        exchange: ExchangeId,
        /// 0 for the original, 1 for the first retransmission, and so on.
        ordinal: u8,
        /// The timeout that was armed for it; zero for a Non-confirmable message.
        timeout: Micros,
    },
    /// A probe of congestion control for an exchange of ours: a CoAP ping.
    Probe {
        /// The exchange that it is sent for.
        exchange: ExchangeId,
        /// The timeout that was armed for it; zero if the exchange waits for admission.
        timeout: Micros,
    },
    /// An answer to what arrived: a piggybacked or Non-confirmable response, an ACK, a Reset.
    Reply,
}

/// Why a message was not accepted for sending. Nothing was sent or queued.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The message cannot be encoded.
    Encode(EncodeError),
    /// The message is longer than [`Limits::message_bytes`](super::Limits::message_bytes): use
    /// block-wise transfer.
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The code is not a request's, or not a response's, as it should be.
    WrongCode(Code),
    /// As many messages to this scope wait as
    /// [`Limits::queue_per_peer`](super::Limits::queue_per_peer) allows. Wait until one ends.
    QueueFull,
    /// As many exchanges exist as [`Limits::exchanges`](super::Limits::exchanges) allows.
    TooManyExchanges,
    /// All [`Limits::peers`](super::Limits::peers) have open exchanges.
    TooManyPeers,
    /// The driver does not fetch what is to be sent:
    /// [`Limits::outbox_bytes`](super::Limits::outbox_bytes).
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

/// What an endpoint has counted since it was made.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
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
    /// Datagrams that were no CoAP message.
    pub malformed: u64,
    /// Pings answered.
    pub pings: u64,
    /// Copies of requests that were recognized.
    pub duplicates: u64,
    /// Answers to nothing that is open.
    pub unknown_answers: u64,
    /// Answers with a wrong token or the mark of a transmission that never was.
    pub wrong_tokens: u64,
    /// Messages with unknown critical options.
    pub bad_options: u64,
    /// Requests refused because there was no room to remember them.
    pub refused: u64,
    /// Responses that could not be stored for duplicates.
    pub unstored: u64,
    /// Messages that a full queue or table turned away.
    pub queue_full: u64,
    /// Times that a message had to wait because all message IDs for its peer had been used within
    /// EXCHANGE_LIFETIME (RFC 7252 section 4.4).
    pub id_waits: u64,
    /// Datagrams dropped because the driver does not fetch them.
    pub outbox_full: u64,
    /// Scopes whose state was dropped before its retention was over, for want of room.
    pub peers_evicted_early: u64,
}
