//! What goes into a connection and comes out of it.

use super::requests::RequestId;
use crate::time::Duration;
use crate::wire::{Code, EncodeError, FormatError, Frame, OptionNumber, Release, Token};
use core::fmt;

/// What [`Connection::handle_input`](super::Connection::handle_input) took.
#[derive(Debug)]
pub struct Taken<'i> {
    /// How many bytes of the input; what follows them is to be offered again.
    pub bytes: usize,
    /// What they were.
    pub received: Received<'i>,
}

/// What a message turned out to be.
#[derive(Debug)]
pub enum Received<'i> {
    /// A request for the application, which answers with
    /// [`Connection::respond`](super::Connection::respond) or lets it be with
    /// [`Connection::dismiss`](super::Connection::dismiss).
    Request(Incoming, Frame<'i>),
    /// The response to a request of ours, which is over.
    Response {
        /// The request.
        request: RequestId,
        /// The response.
        message: Frame<'i>,
    },
    /// A notification: more may come (RFC 7641 section 3; RFC 8323 section 7). They come in the
    /// order in which they were sent.
    Notification {
        /// The request that registered the observation.
        request: RequestId,
        /// The notification.
        message: Frame<'i>,
    },
    /// The peer said what it is capable of (RFC 8323 section 5.3).
    Capabilities(Capabilities),
    /// The answer to our Ping (section 5.4).
    Pong {
        /// Since it was queued.
        round_trip: Duration,
        /// Whether the peer says that it has processed all that came before it.
        custody: bool,
    },
    /// The peer wants the connection to end (section 5.5): no more requests are accepted for it,
    /// and it closes when all that are open have been answered.
    Release(Release<'i>),
    /// The peer gave up the connection (section 5.6). Its diagnostic is for people.
    Abort(&'i [u8]),
    /// Nothing for the application; the connection did what had to be done and counted it.
    Ignored(Ignored),
}

/// Why a message is of no interest to the application.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// Empty: a sign of life (RFC 8323 section 3.4).
    Empty,
    /// A Ping; its Pong is on its way (section 5.4).
    Ping,
    /// A Pong that nobody waits for.
    UnexpectedPong,
    /// A signal that has no meaning yet.
    UnknownSignal(Code),
    /// A response whose token belongs to no open request: late, or never asked for.
    UnknownToken,
    /// The response to a request that was cancelled.
    Cancelled,
    /// A request or response with a critical option that nobody knows (RFC 7252 section 5.4.1).
    UnknownCriticalOption,
    /// It broke a rule, and the connection is being aborted: see [`Event::Closed`].
    Violation,
    /// The connection is over.
    AfterEnd,
}

/// A request that arrived; kept by the application until it responds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The token, which the response repeats.
    pub token: Token,
    /// The method.
    pub code: Code,
    /// How many Pings with Custody came before it.
    pub(super) epoch: u32,
}

/// What the peer is capable of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The most bytes of a message that it takes; 1152 until it says something else (RFC 8323
    /// section 5.3.1).
    pub max_message_size: u32,
    /// Whether it says that it knows block-wise transfer (section 5.3.2).
    pub block_wise_transfer: bool,
}

impl Capabilities {
    /// Whether it takes BERT blocks: "If a Max-Message-Size Option is indicated with a value that
    /// is greater than 1152, the Block-Wise-Transfer Option also indicates support for BERT" (RFC
    /// 8323 section 5.3.2).
    #[must_use]
    pub const fn bert(&self) -> bool {
        self.block_wise_transfer && self.max_message_size > crate::wire::BASE_MAX_MESSAGE_SIZE
    }
}

/// Something that happened without a message arriving.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request of ours ended without its response.
    Failed {
        /// Which one.
        request: RequestId,
        /// Why.
        reason: Failure,
    },
    /// The connection is over and has nothing left to send: the transport is to be closed. Comes
    /// once, and nothing after it.
    Closed(Closed),
}

/// Why a request ended without its response.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection ended first.
    Closed(Closed),
    /// The response did not come in time.
    NoResponse,
    /// The response had a critical option that nobody here knows (RFC 7252 section 5.4.1).
    BadOption,
}

/// How a connection ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// In good order: either side sent a Release, and nothing was left open.
    Released,
    /// The peer closed the transport without a Release.
    ByPeer,
    /// The transport failed.
    Lost,
    /// We aborted it, for this reason.
    Aborted(Fault),
    /// The peer aborted it; the option of our CSM that it did not understand, if it says that.
    AbortedByPeer(Option<OptionNumber>),
}

/// Why a connection is aborted by us (RFC 8323 section 5.6). Its text is the diagnostic payload of
/// the Abort.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The first message was not a CSM but this.
    CsmMissing(Code),
    /// No CSM came in time.
    CsmLate,
    /// A signal had a critical option: none is defined, so none can be understood (section 5.2).
    CriticalOption {
        /// The signal's code.
        signal: Code,
        /// The option.
        option: OptionNumber,
    },
    /// A message is longer than our Max-Message-Size.
    TooLong {
        /// Its length.
        bytes: u64,
        /// Our Max-Message-Size.
        limit: u32,
    },
    /// Not a message.
    Malformed(FormatError),
    /// A message that had begun did not come to its end in time.
    SlowMessage,
    /// The transport took nothing for too long. The peer does not get this Abort.
    WriteStalled,
    /// No Pong came in time: the peer is gone, or the path.
    Silent,
    /// The application wants it so.
    Application,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CsmMissing(code) => {
                write!(f, "the first message must be a CSM (RFC 8323 section 5.3), it was {code}")
            }
            Self::CsmLate => f.write_str("no CSM in time (RFC 8323 section 5.3)"),
            Self::CriticalOption { signal, option } => {
                write!(f, "critical option {} of signal {signal} is not understood", option.0)
            }
            Self::TooLong { bytes, limit } => {
                write!(f, "a message of {bytes} bytes exceeds Max-Message-Size {limit}")
            }
            Self::Malformed(error) => write!(f, "not a message: {error}"),
            Self::SlowMessage => f.write_str("a message took too long to arrive"),
            Self::WriteStalled => f.write_str("nothing could be sent for too long"),
            Self::Silent => f.write_str("no Pong in time"),
            Self::Application => f.write_str("given up by the application"),
        }
    }
}

impl core::error::Error for Fault {}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released => f.write_str("the connection was released"),
            Self::ByPeer => f.write_str("the peer closed the connection"),
            Self::Lost => f.write_str("the connection was lost"),
            Self::Aborted(fault) => write!(f, "the connection was aborted: {fault}"),
            Self::AbortedByPeer(None) => f.write_str("the peer aborted the connection"),
            Self::AbortedByPeer(Some(option)) => {
                write!(f, "the peer does not understand option {} of our CSM", option.0)
            }
        }
    }
}

impl core::error::Error for Closed {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(closed) => closed.fmt(f),
            Self::NoResponse => f.write_str("no response in time"),
            Self::BadOption => {
                f.write_str("the response has a critical option that is not understood")
            }
        }
    }
}

impl core::error::Error for Failure {}

/// Why a message was not accepted for sending. Nothing was sent or queued.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The message cannot be encoded.
    Encode(EncodeError),
    /// The message is longer than [`Connection::message_limit`](super::Connection::message_limit):
    /// use block-wise transfer.
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The code is not a request's, or not a response's, as it should be.
    WrongCode(Code),
    /// As many requests are unanswered as [`Config::max_requests`](super::Config::max_requests)
    /// allows. Wait until one ends.
    TooManyRequests,
    /// As many bytes wait as [`Config::max_output`](super::Config::max_output) allows.
    OutputFull,
    /// The request is over.
    NoSuchRequest,
    /// The connection is being released: a new one is needed.
    Releasing,
    /// The connection is over.
    Closed,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encode(error) => write!(f, "the message cannot be encoded: {error}"),
            Self::TooLong { bytes, limit } => {
                write!(f, "a message of {bytes} bytes exceeds the limit of {limit}: use blocks")
            }
            Self::WrongCode(code) => write!(f, "code {code} cannot be sent this way"),
            Self::TooManyRequests => f.write_str("too many requests are unanswered"),
            Self::OutputFull => f.write_str("too many bytes wait to be sent"),
            Self::NoSuchRequest => f.write_str("the request is over"),
            Self::Releasing => f.write_str("the connection is being released"),
            Self::Closed => f.write_str("the connection is over"),
        }
    }
}

impl core::error::Error for SendError {}

impl From<EncodeError> for SendError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

/// What a connection has counted since it was made.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages that arrived whole.
    pub received: u64,
    /// Messages queued to be sent.
    pub sent: u64,
    /// Requests of the peer handed to the application.
    pub requests: u64,
    /// Responses and notifications to requests of ours.
    pub responses: u64,
    /// Empty messages.
    pub empty: u64,
    /// Pings answered.
    pub pings: u64,
    /// Signals that have no meaning, and Pongs that nobody waited for.
    pub unknown_signals: u64,
    /// Responses with the token of no open request.
    pub unknown_tokens: u64,
    /// Requests and responses with unknown critical options.
    pub bad_options: u64,
    /// Requests of ours that got no response in time.
    pub unanswered: u64,
    /// Messages that a bound turned away: the caller was told.
    pub refused: u64,
    /// Aborts sent, or that could not be: 1 at most.
    pub aborted: u64,
    /// Aborts received: 1 at most.
    pub aborted_by_peer: u64,
}

impl core::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        // Named one by one, so that none is forgotten.
        let Self {
            received,
            sent,
            requests,
            responses,
            empty,
            pings,
            unknown_signals,
            unknown_tokens,
            bad_options,
            unanswered,
            refused,
            aborted,
            aborted_by_peer,
        } = other;
        self.received += received;
        self.sent += sent;
        self.requests += requests;
        self.responses += responses;
        self.empty += empty;
        self.pings += pings;
        self.unknown_signals += unknown_signals;
        self.unknown_tokens += unknown_tokens;
        self.bad_options += bad_options;
        self.unanswered += unanswered;
        self.refused += refused;
        self.aborted += aborted;
        self.aborted_by_peer += aborted_by_peer;
    }
}
