//! The inputs of a transfer: the request, the way in which it is sent, and how long the transfer keeps
//! trying.

use crate::q_block::QBlockParameters;
use crate::session::{BlockSizes, Options};
use crate::time::{Duration, Instant};
use crate::wire::{Block, Code, OptionNumber};
use bytes::Bytes;
use rand_core::Rng;

/// A request without an address: a method, options, a body.
#[derive(Clone, Debug)]
pub struct RequestParts {
    /// The method.
    pub code: Code,
    /// The options of every message of it, those of the URI included. Blocks, Echo, Request-Tag and
    /// Observe are not among them: the machines of this module add these.
    pub options: Options,
    /// The whole body.
    pub payload: Bytes,
    /// Bytes of the blocks that are wanted in return, if the caller said so (RFC 7959 sections 2.4 and
    /// 3.3).
    pub block_size: Option<usize>,
}

impl RequestParts {
    /// Whether doing what it asks for twice is doing it once: the rule of
    /// [`Message::is_idempotent`](crate::wire::Message::is_idempotent).
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        let has = |number| self.options.get(number).is_some();
        let conditional = has(OptionNumber::IF_MATCH) || has(OptionNumber::IF_NONE_MATCH);
        match self.code {
            Code::GET | Code::FETCH => true,
            code => code.is_idempotent() && !conditional,
        }
    }

    /// Early negotiation: the block option that asks for a size in return.
    pub(super) fn wanted_in_return(&self) -> Option<(OptionNumber, u32)> {
        let block = Block::new(0, false, Block::szx_of(self.block_size?)).ok()?;
        Some((OptionNumber::BLOCK2, block.to_uint()))
    }
}

/// How a [`Transfer`](super::Transfer) goes about it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings of one transfer")]
pub struct TransferSettings {
    /// How long messages and blocks may be.
    pub sizes: BlockSizes,
    /// Bytes of the longest response that is put together.
    pub max_body: usize,
    /// How many blocks of the request's body may be under way at once. Default 1, which is RFC
    /// 7959's lock-step.
    pub in_flight: u8,
    /// Send the body, and ask for the response, in the Non-confirmable blocks of RFC 9177.
    pub q_block: Option<QBlockParameters>,
    /// Register as an observer with the message that completes the request (RFC 7641 section 3.1).
    pub observe: bool,
    /// Send one message and take its response as it comes: the caller has put block options into the
    /// request, and goes from block to block by itself.
    pub one_block: bool,
    /// Whether a message that was not answered may be sent again as a new one. Not for
    /// Non-confirmable requests, which leave once.
    pub repeat: bool,
    /// Which requests have a Request-Tag. Default: those whose bodies are sent in blocks.
    pub request_tag: RequestTag,
    /// Whether the first block of a body says how long the body is, with Size1 (RFC 7959 section 4).
    pub size1: bool,
    /// How long the transfer goes on after messages that the network did not deliver.
    pub patience: Patience,
}

impl TransferSettings {
    /// Lock-step blocks of these sizes, and no patience beyond that of the message layer.
    #[must_use]
    pub fn new(sizes: BlockSizes, max_body: usize) -> Self {
        Self {
            sizes,
            max_body,
            in_flight: 1,
            q_block: None,
            observe: false,
            one_block: false,
            repeat: true,
            request_tag: RequestTag::InBlocks,
            size1: true,
            patience: Patience::default(),
        }
    }
}

/// Which requests have a Request-Tag, by which a server tells one from another that is equal (RFC 9175
/// section 3).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum RequestTag {
    /// None: the client has at most one body for a resource under way (section 3.3).
    Never,
    /// Those whose bodies are sent in blocks.
    #[default]
    InBlocks,
    /// All: an equal request is under way, and the blocks of their responses must not be mixed.
    Always,
}

/// How long a transfer goes on after the message layer has given up a message, or the network has
/// refused it (no route).
#[derive(Copy, Clone, Debug, Default)]
pub struct Patience {
    /// Until when, if the caller set a limit.
    pub until: Option<Instant>,
    /// Without a limit: how long the transfer goes on after the peer was last heard. A transfer that was
    /// never answered then fails with its first lost message. Zero by default.
    pub silence: Duration,
}

impl Patience {
    /// Whether a message that is sent at `at` is still of interest.
    pub(super) fn allows(&self, at: Instant, heard: Option<Instant>) -> bool {
        match (self.until, heard) {
            (Some(until), _) => at < until,
            (None, Some(heard)) => at < heard + self.silence,
            (None, None) => false,
        }
    }
}

/// A pause before another try: doubled after each one that failed, up to the longest, and up to half as long
/// again drawn at random, so that many clients do not come back at the same instant.
pub(super) fn pause(
    (first, longest): (Duration, Duration),
    failures: u32,
    rng: &mut dyn Rng,
) -> Duration {
    let pause = first.saturating_mul(1 << failures.min(16)).min(longest);
    let half = u64::try_from(pause.as_micros()).unwrap_or(u64::from(u32::MAX)) / 2;
    let drawn = (half.min(u32::MAX.into()) * u64::from(rng.next_u32())) >> 32;
    pause + Duration::from_micros(drawn)
}
