//! The steps of a transfer, and the reasons for its end.

use crate::endpoint::{Failure, SendError};
use crate::session::{Options, Response};
use crate::time::Instant;
use crate::wire::Code;
use bytes::Bytes;
use core::fmt;

/// The next step of a transfer.
#[derive(Debug)]
pub enum Step {
    /// Start this exchange.
    Send(Outgoing),
    /// Cancel this exchange: the transfer no longer waits for its answer.
    Cancel(u32),
    /// Wait for an answer, or until this instant.
    Wait(Option<Instant>),
    /// The transfer has ended. Cancel its open exchanges.
    Done(Result<Response, TransferError>),
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The transfer's identifier of the exchange, which is unique within the transfer.
    pub id: u32,
    /// The method.
    pub code: Code,
    /// Its options.
    pub options: Options,
    /// Its payload.
    pub payload: Bytes,
    /// Whether it bypasses congestion control, as the blocks of RFC 9177 do
    /// ([`Endpoint::request_block`](crate::endpoint::Endpoint::request_block)).
    pub q_block: bool,
}

/// The reason for which a message has no answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// It did not leave, because there is no route.
    Unsent,
    /// No answer arrived, so it is unknown whether the message arrived.
    Unanswered,
    /// Its answer was lost: the peer says that the message has arrived before, and does not answer it again.
    AnswerLost,
    /// It is longer than the path or the endpoint allows.
    TooLong,
    /// There is no room for it at this endpoint.
    NoRoom,
    /// Another attempt would change nothing: a Reset, or a port without a program.
    Final,
}

impl From<Failure> for Loss {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::GaveUp | Failure::NoResponse => Self::Unanswered,
            Failure::BadOption | Failure::SendError => Self::Final,
        }
    }
}

impl From<SendError> for Loss {
    fn from(error: SendError) -> Self {
        match error {
            SendError::TooLong { .. } => Self::TooLong,
            SendError::Encode(_) | SendError::WrongCode(_) => Self::Final,
            SendError::QueueFull
            | SendError::TooManyExchanges
            | SendError::TooManyPeers
            | SendError::TooManyControls
            | SendError::OutboxFull => Self::NoRoom,
        }
    }
}

/// The reason for which a transfer ended without a response.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// The last lost message ended it.
    Lost,
    /// The peer answered none of the Non-confirmable blocks.
    NoResponse,
    /// The caller's time limit has passed.
    TimedOut,
    /// A body is longer than this limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The peer violated this rule.
    Protocol(&'static str),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("a message was lost"),
            Self::NoResponse => f.write_str("no response in time"),
            Self::TimedOut => f.write_str("no answer within the time given"),
            Self::TooLarge { limit } => write!(f, "the body is longer than {limit} bytes"),
            Self::Protocol(what) => write!(f, "the peer broke the protocol: {what}"),
        }
    }
}

impl core::error::Error for TransferError {}
