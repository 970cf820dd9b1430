//! The input and output types of a connection.

use super::requests::RequestId;
use crate::peer_token::PeerToken;
use crate::time::Duration;
use crate::wire::{Code, EncodeError, FormatError, Frame, OptionNumber, Release};
use core::fmt;

/// The result of [`Connection::handle_input`](super::Connection::handle_input).
#[derive(Debug)]
pub struct Taken<'i> {
    /// The number of processed bytes. Offer the bytes after them again.
    pub bytes: usize,
    /// The meaning of the message.
    pub received: Received<'i>,
}

/// The meaning of a message.
#[derive(Debug)]
pub enum Received<'i> {
    /// A request. The application answers it with
    /// [`Connection::respond`](super::Connection::respond) or dismisses it with
    /// [`Connection::dismiss`](super::Connection::dismiss).
    Request(Incoming, Frame<'i>),
    /// The response to a request of ours, which has ended.
    Response {
        /// The request.
        request: RequestId,
        /// The response.
        message: Frame<'i>,
    },
    /// A notification, after which more may follow (RFC 7641 section 3; RFC 8323 section 7).
    /// Notifications arrive in the order in which they were sent.
    Notification {
        /// The request that registered the observation.
        request: RequestId,
        /// The notification.
        message: Frame<'i>,
    },
    /// The peer announced its capabilities (RFC 8323 section 5.3).
    Capabilities(Capabilities),
    /// The answer to our Ping (section 5.4).
    Pong {
        /// The time since the Ping was queued.
        round_trip: Duration,
        /// Whether the peer states that it has processed everything before the Ping.
        custody: bool,
    },
    /// The peer wants to end the connection (section 5.5). No more requests are accepted, and the
    /// connection closes when all open requests have been answered.
    Release(Release<'i>),
    /// The peer aborted the connection (section 5.6). The diagnostic is human-readable.
    Abort(&'i [u8]),
    /// A message that does not concern the application; the connection has handled and counted it.
    Ignored(Ignored),
}

/// The reason why a message does not concern the application.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ignored {
    /// An Empty message, which serves as a keep-alive (RFC 8323 section 3.4).
    Empty,
    /// A Ping, whose Pong is queued (section 5.4).
    Ping,
    /// A Pong without an open Ping.
    UnexpectedPong,
    /// A signal with an unknown code.
    UnknownSignal(Code),
    /// A response whose token belongs to no open request: it is late or unsolicited.
    UnknownToken,
    /// The response to a request that was cancelled.
    Cancelled,
    /// A request or response with a critical option that is not understood (RFC 7252 section
    /// 5.4.1).
    UnknownCriticalOption,
    /// A protocol violation, because of which the connection is being aborted; see
    /// [`Event::Closed`].
    Violation,
    /// The connection has ended.
    AfterEnd,
}

/// A received request, which the application keeps until it responds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The token, which the response repeats.
    pub token: PeerToken,
    /// The method.
    pub code: Code,
    /// The number of earlier Pings with Custody.
    pub(super) epoch: u32,
}

/// The capabilities of the peer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Bytes of the longest message that the peer accepts; 1152 until it announces another limit
    /// (RFC 8323 section 5.3.1).
    pub max_message_size: u32,
    /// Whether the peer announced support for block-wise transfer (section 5.3.2).
    pub block_wise_transfer: bool,
}

impl Capabilities {
    /// Whether the peer accepts BERT blocks: "If a Max-Message-Size Option is indicated with a
    /// value that is greater than 1152, the Block-Wise-Transfer Option also indicates support for
    /// BERT" (RFC 8323 section 5.3.2).
    #[must_use]
    pub const fn bert(&self) -> bool {
        self.block_wise_transfer && self.max_message_size > crate::wire::BASE_MAX_MESSAGE_SIZE
    }
}

/// An event that is not caused by a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A request of ours ended without its response.
    Failed {
        /// The request.
        request: RequestId,
        /// The reason.
        reason: Failure,
    },
    /// The connection has ended and has nothing left to send: close the transport. Reported once,
    /// as the last event.
    Closed(Closed),
}

/// The reason why a request ended without its response.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The connection ended before the response arrived.
    Closed(Closed),
    /// The response did not arrive in time.
    NoResponse,
    /// The response had a critical option that is not understood (RFC 7252 section 5.4.1).
    BadOption,
}

/// The way in which a connection ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Cleanly: either side sent a Release, and no request was left open.
    Released,
    /// The peer closed the transport without a Release.
    ByPeer,
    /// The transport failed.
    Lost,
    /// We aborted the connection for this reason.
    Aborted(Fault),
    /// The peer aborted the connection. Contains the option of our CSM that it did not understand,
    /// if it named one.
    AbortedByPeer(Option<OptionNumber>),
}

/// The reason why we abort a connection (RFC 8323 section 5.6). Its text is the diagnostic payload
/// of the Abort.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The first message had this code instead of being a CSM.
    CsmMissing(Code),
    /// No CSM arrived in time.
    CsmLate,
    /// A signal had a critical option. No critical option is defined, so none can be understood
    /// (section 5.2).
    CriticalOption {
        /// The signal's code.
        signal: Code,
        /// The option.
        option: OptionNumber,
    },
    /// A message is longer than our Max-Message-Size.
    TooLong {
        /// The message's length in bytes.
        bytes: u64,
        /// Our Max-Message-Size in bytes.
        limit: u32,
    },
    /// The bytes are not a valid message.
    Malformed(FormatError),
    /// A message that had begun to arrive was not complete in time.
    SlowMessage,
    /// The transport accepted nothing for too long. The peer does not receive this Abort.
    WriteStalled,
    /// No Pong arrived in time, because the peer or the path is gone.
    Silent,
    /// The application asked for it.
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

/// The reason why a message was not accepted for sending. Nothing was sent or queued.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The message cannot be encoded.
    Encode(EncodeError),
    /// The message is longer than [`Connection::message_limit`](super::Connection::message_limit):
    /// use block-wise transfer.
    TooLong {
        /// The message's length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The code is not a request code, or not a response code, as required.
    WrongCode(Code),
    /// The number of unanswered requests has reached
    /// [`Config::max_requests`](super::Config::max_requests). Wait until one of them ends.
    TooManyRequests,
    /// The number of waiting bytes has reached [`Config::max_output`](super::Config::max_output).
    OutputFull,
    /// The request has ended.
    NoSuchRequest,
    /// The connection is being released; open a new one.
    Releasing,
    /// The connection has ended.
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

/// A connection's counters since its creation.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Complete messages that arrived.
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
    /// Signals with an unknown code, and unexpected Pongs.
    pub unknown_signals: u64,
    /// Responses whose token belonged to no open request.
    pub unknown_tokens: u64,
    /// Requests and responses with unknown critical options.
    pub bad_options: u64,
    /// Requests of ours without a response in time.
    pub unanswered: u64,
    /// Messages rejected with an error because a limit was reached.
    pub refused: u64,
    /// Aborts that were sent, or could not be sent; at most 1.
    pub aborted: u64,
    /// Aborts received; at most 1.
    pub aborted_by_peer: u64,
}

impl core::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        // The fields are listed one by one, so that none is forgotten.
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
