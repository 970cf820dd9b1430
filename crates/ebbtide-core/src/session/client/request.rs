//! The inputs of a transfer: the request, the settings, and the limits on attempts.

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
    /// The options of all its messages, including those of the URI. This module adds Block, Echo,
    /// Request-Tag and Observe options.
    pub options: Options,
    /// The whole body.
    pub payload: Bytes,
    /// The size of the response's blocks in bytes, if the caller chose one (RFC 7959 sections 2.4 and
    /// 3.3).
    pub block_size: Option<usize>,
}

impl RequestParts {
    /// Whether the request is idempotent, by the rule of
    /// [`Message::is_idempotent`](crate::wire::Message::is_idempotent).
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        let has = |number| self.options.get(number).is_some();
        let conditional = || has(OptionNumber::IF_MATCH) || has(OptionNumber::IF_NONE_MATCH);
        match self.code {
            Code::GET | Code::FETCH => true,
            code => code.is_idempotent() && !conditional(),
        }
    }

    /// Early negotiation: the block option that requests a block size for the response.
    pub(super) fn wanted_in_return(&self) -> Option<(OptionNumber, u32)> {
        let block = Block::new(0, false, Block::szx_of(self.block_size?)).ok()?;
        Some((OptionNumber::BLOCK2, block.to_uint()))
    }
}

/// Settings of a [`Transfer`](super::Transfer).
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings of one transfer")]
pub struct TransferSettings {
    /// The maximum lengths of messages and blocks.
    pub sizes: BlockSizes,
    /// The maximum length of an assembled response in bytes.
    pub max_body: usize,
    /// The maximum number of blocks of the request's body in flight. Default 1, which is RFC 7959's
    /// lock-step.
    pub in_flight: u8,
    /// Whether to send the body, and request the response, in the Non-confirmable blocks of RFC
    /// 9177.
    pub q_block: Option<QBlockParameters>,
    /// Whether to register as an observer with the message that completes the request (RFC 7641
    /// section 3.1).
    pub observe: bool,
    /// Whether to send one message and return its response as it is: the caller has added block
    /// options to the request, and iterates over the blocks itself.
    pub one_block: bool,
    /// Whether an unanswered message may be sent again as a new one. False for Non-confirmable
    /// requests, which are sent once.
    pub repeat: bool,
    /// Which requests have a Request-Tag. Default: those whose bodies are sent in blocks.
    pub request_tag: RequestTag,
    /// Whether the first block of a body carries its length in Size1 (RFC 7959 section 4).
    pub size1: bool,
    /// How long the transfer continues after messages that the network did not deliver.
    pub patience: Patience,
}

impl TransferSettings {
    /// Settings for blocks of these sizes in lock-step, without attempts beyond those of the
    /// message layer.
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

/// Which requests have a Request-Tag, by which a server distinguishes equal requests (RFC 9175
/// section 3).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum RequestTag {
    /// None: the client sends at most one body to a resource at a time (section 3.3).
    Never,
    /// Those whose bodies are sent in blocks.
    #[default]
    InBlocks,
    /// All: an equal request is open, and the blocks of their responses must not be mixed.
    Always,
}

/// How long a transfer continues after the message layer has given a message up, or the network has
/// refused it (no route).
#[derive(Copy, Clone, Debug, Default)]
pub struct Patience {
    /// The end, if the caller set a limit.
    pub until: Option<Instant>,
    /// Without a limit: how long the transfer continues after the peer was last heard. A transfer
    /// that was never answered then fails with its first lost message. Zero by default.
    pub silence: Duration,
}

impl Patience {
    /// Whether a message may still be sent at `at`.
    pub(super) fn allows(&self, at: Instant, heard: Option<Instant>) -> bool {
        match (self.until, heard) {
            (Some(until), _) => at < until,
            (None, Some(heard)) => at < heard + self.silence,
            (None, None) => false,
        }
    }
}

/// The pauses before further attempts: doubled after each failure, up to the longest, and lengthened at
/// random by up to half, so that many clients do not return at the same instant.
pub(super) struct Backoff {
    pub(super) first: Duration,
    /// The longest before the random part.
    pub(super) longest: Duration,
}

impl Backoff {
    /// The pause after so many earlier failures, without its random part.
    pub(super) fn least(&self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.min(16)).min(self.longest)
    }

    /// The pause after so many earlier failures.
    pub(super) fn pause(&self, failures: u32, rng: &mut dyn Rng) -> Duration {
        let least = self.least(failures);
        let half = u64::try_from(least.as_micros()).unwrap_or(u64::from(u32::MAX)) / 2;
        let drawn = (half.min(u32::MAX.into()) * u64::from(rng.next_u32())) >> 32;
        least + Duration::from_micros(drawn)
    }
}
