//! Requests from addresses that may be forged (RFC 9175 section 2.4).

use super::request::AddedOptions;
use super::request_key::request_hash;
use crate::exchange::amplification::longest;
use crate::exchange::echo::{Challenged, Name, Values};
use crate::time::{Duration, Instant};
use crate::wire::{Block, Code, HEADER_LEN, Message, MessageId, OptionNumber, Token};
use core::hash::Hash;

/// The longest header and options of a response beside a token and an Echo: ETag, Observe,
/// Content-Format, Max-Age, Block2, Block1, Size2 and the payload marker.
const RESPONSE_HEAD: usize = HEADER_LEN + 5 + 4 + 3 + 5 + 4 + 4 + 5 + 1;

/// The treatment of addresses that may be forged.
#[derive(Copy, Clone, Debug)]
pub enum DeviceVerify {
    /// An address that has not echoed a challenge receives at most three times the bytes that it sent. Longer answers
    /// are a challenge instead, or come in smaller blocks if the request may not be processed twice.
    Challenge {
        /// The key of the challenges, which must be unpredictable and new after each start.
        key: (u64, u64),
    },
    /// Nothing: the network keeps forged addresses out.
    None,
}

/// Whether an address may be forged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It may not.
    Given,
    /// The request has echoed a challenge.
    Proved,
    Unproved,
    /// The value of its Echo option is of another server, or names this request and is old.
    Doubtful,
}

impl Trust {
    pub(super) const fn may_be_forged(self) -> bool {
        matches!(self, Self::Unproved | Self::Doubtful)
    }
}

/// The facts that are known of a request's sender.
#[derive(Copy, Clone, Debug)]
pub(super) struct RequestSender {
    pub(super) trust: Trust,
    /// The length of the request in bytes.
    pub(super) request: usize,
    /// The message that was challenged instead of being processed, of which this one is a copy.
    pub(super) first: Option<MessageId>,
}

impl RequestSender {
    /// The largest blocks that its answer may have, whatever options they have.
    pub(super) fn largest_block(&self, token: Token) -> u8 {
        let room = longest(self.request).saturating_sub(RESPONSE_HEAD + token.len());
        Block::szx_of(room)
    }
}

impl DeviceVerify {
    fn values(&self, lifetime: Duration) -> Option<Values> {
        match *self {
            Self::Challenge { key } => Some(Values::new(key, lifetime)),
            Self::None => None,
        }
    }

    /// Reads the Echo option of a request. `lifetime` is EXCHANGE_LIFETIME, in which copies of it may arrive.
    pub(super) fn read(
        &self,
        now: Instant,
        lifetime: Duration,
        from: impl Hash,
        message: &Message<'_>,
    ) -> RequestSender {
        let request = message.as_bytes().len();
        let Some(values) = self.values(lifetime) else {
            return RequestSender { trust: Trust::Given, request, first: None };
        };
        let Some(option) = message.option(OptionNumber::ECHO) else {
            return RequestSender { trust: Trust::Unproved, request, first: None };
        };
        let echo = values.read(now, from, option.value);
        let named = echo.and_then(|echo| echo.answers(|| request_hash(message)));
        match (echo, named) {
            (Some(echo), Some(Challenged::Forgotten(id))) if echo.fresh => {
                RequestSender { trust: Trust::Proved, request, first: Some(id) }
            }
            (Some(echo), _) if echo.fresh => {
                RequestSender { trust: Trust::Proved, request, first: None }
            }
            (Some(_), None) => RequestSender { trust: Trust::Unproved, request, first: None },
            _ => RequestSender { trust: Trust::Doubtful, request, first: None },
        }
    }

    /// Adds the next value for this address, so that a client that goes on asking is challenged once (section 2.3).
    pub(super) fn add_value(
        &self,
        now: Instant,
        lifetime: Duration,
        to: impl Hash,
        options: &mut AddedOptions,
    ) {
        if let Some(values) = self.values(lifetime) {
            options.push(OptionNumber::ECHO, values.make(now, to, None).as_slice());
        }
    }

    /// The option of a challenge to a request that is not processed: if it may not be processed
    /// twice, the value names it.
    pub(super) fn challenge(
        &self,
        now: Instant,
        lifetime: Duration,
        to: impl Hash,
        message: &Message<'_>,
    ) -> AddedOptions {
        let mut options = AddedOptions::NONE;
        if let Some(values) = self.values(lifetime) {
            let what = Challenged::Forgotten(message.message_id());
            let name = (!message.is_idempotent())
                .then(|| Name { what, fingerprint: request_hash(message) });
            options.push(OptionNumber::ECHO, values.make(now, to, name).as_slice());
        }
        options
    }
}

/// The code of a challenge (section 2.3).
pub(super) const CHALLENGE: Code = Code::UNAUTHORIZED;
/// The maximum length of a challenge without a name: a header, a token, and an Echo option of twelve bytes.
pub(super) const CHALLENGE_LENGTH: usize = HEADER_LEN + 8 + 14;
