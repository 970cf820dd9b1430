//! The steps of a transfer, and the ways in which it ends.

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
    /// Nothing before something arrives, or before this instant.
    Wait(Option<Instant>),
    /// The transfer is over. Cancel its exchanges that are still under way.
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
    /// Whether it goes past congestion control, as the blocks of RFC 9177 do
    /// ([`Endpoint::request_block`](crate::endpoint::Endpoint::request_block)).
    pub q_block: bool,
}

/// Why a message has no answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It did not leave: there is no route.
    Unsent,
    /// No answer came, so that it is unknown whether the message arrived.
    Unanswered,
    /// It is longer than the path or the endpoint takes.
    TooLong,
    /// There is no room for it at this endpoint.
    NoRoom,
    /// Another try would change nothing: a Reset, or a port without a program.
    Final,
}

/// Why a transfer ended without a response.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// The last message that was lost ended it.
    Lost,
    /// The peer answered none of the Non-confirmable blocks.
    NoResponse,
    /// The time that the caller gave has passed.
    TimedOut,
    /// A body is longer than this limit.
    TooLarge {
        /// In bytes.
        limit: usize,
    },
    /// The peer broke this rule.
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
