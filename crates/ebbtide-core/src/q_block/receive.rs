//! The receiver of a body: which blocks have arrived, and what to send about the others.

use super::{Due, QBlockParameters, Retry};
use crate::time::Instant;
use alloc::vec::Vec;

/// Tracks the blocks of one body, which may arrive in any order (RFC 9177 section 7.2). It sends
/// Continue when all sets so far are complete, and requests missing blocks as soon as a later set
/// begins, or otherwise after NON_RECEIVE_TIMEOUT. It gives up after NON_MAX_RETRANSMIT requests,
/// or after NON_PARTIAL_TIMEOUT without a new block.
///
/// It handles block numbers only; the caller keeps the body. It needs one bit per block.
#[derive(Clone, Debug)]
pub struct Receiver {
    params: QBlockParameters,
    blocks: u32,
    here: Vec<u64>,
    /// The number of blocks that have arrived.
    count: u32,
    /// All blocks before this one have arrived; this one has not.
    low: u32,
    /// No block from this one on has arrived.
    top: u32,
    /// Whether to send Continue.
    confirm: bool,
    /// Missing blocks before this one are to be requested at once.
    gap: u32,
    /// The end of the range whose missing blocks are requested.
    bound: u32,
    retry: Retry,
    expires: Instant,
}

/// The classification of a block that arrived.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BlockArrival {
    /// The block was missing: keep its payload.
    New,
    /// The block had arrived already: its payload must be ignored (RFC 9177 sections 4.3 and 4.4).
    Duplicate,
    /// A body of this size does not have this block.
    Outside,
}

/// The next action of a [`Receiver`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Receiving {
    /// All blocks have arrived.
    Complete,
    /// Confirm that every block before this one has arrived: with 2.31 Continue for the block
    /// before it, or with a request for it with M set. Then poll again.
    Continue(u32),
    /// Request the blocks of [`Receiver::missing`], report that with [`Receiver::sent`], then poll
    /// again.
    Missing,
    /// Do nothing before this instant, unless a block arrives.
    Wait(Instant),
    /// The missing blocks do not arrive: drop the body.
    GiveUp,
}

impl Receiver {
    /// Creates the receiver of a body of this many blocks.
    #[must_use]
    pub fn new(now: Instant, blocks: u32, params: QBlockParameters) -> Self {
        Self {
            blocks,
            here: alloc::vec![0; blocks.div_ceil(u64::BITS) as usize],
            count: 0,
            low: 0,
            top: 0,
            confirm: false,
            gap: 0,
            bound: 0,
            retry: Retry::new(now, &params),
            expires: now + params.non_partial_timeout(),
            params,
        }
    }

    /// Records a block that arrived.
    pub fn on_block(&mut self, now: Instant, num: u32) -> BlockArrival {
        if num >= self.blocks {
            return BlockArrival::Outside;
        }
        if self.has(num) {
            // The confirmation that the sender was sent then may be lost.
            self.confirm |= self.is_set_end() && self.params.end_of_set(num) == self.low;
            return BlockArrival::Duplicate;
        }
        if let Some(word) = self.here.get_mut((num / u64::BITS) as usize) {
            *word |= 1 << (num % u64::BITS);
        }
        self.count += 1;
        while self.low < self.blocks && self.has(self.low) {
            self.low += 1;
        }
        let begin = self.params.end_of_set(num) - self.params.set();
        if begin >= self.top && self.low < begin {
            self.gap = begin;
        }
        self.top = self.top.max(num + 1);
        self.confirm = self.is_set_end();
        self.retry = Retry::new(now, &self.params);
        self.expires = now + self.params.non_partial_timeout();
        BlockArrival::New
    }

    /// The action to take now.
    pub fn poll(&mut self, now: Instant) -> Receiving {
        if self.count == self.blocks {
            return Receiving::Complete;
        }
        if core::mem::take(&mut self.confirm) {
            return Receiving::Continue(self.low);
        }
        let gap = core::mem::take(&mut self.gap);
        if self.low < gap {
            self.retry.ask(now, &self.params);
            self.bound = gap;
            return Receiving::Missing;
        }
        if now >= self.expires {
            return Receiving::GiveUp;
        }
        match self.retry.poll(now, &self.params) {
            Due::Wait(at) => Receiving::Wait(at.min(self.expires)),
            Due::GiveUp => Receiving::GiveUp,
            Due::Ask => {
                // To the end of the set that was begun; if that set is complete, of the next one.
                self.bound = self.params.end_of_set(self.low.max(self.top.saturating_sub(1)));
                Receiving::Missing
            }
        }
    }

    /// The blocks to request, ascending. At most MAX_PAYLOADS of them, so that they can be sent at
    /// once (RFC 9177 section 5).
    pub fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        (self.low..self.bound.min(self.blocks))
            .filter(|&num| !self.has(num))
            .take(self.params.set() as usize)
    }

    /// Records that the request for missing blocks took this many bytes; see [`Retry::sent`].
    pub fn sent(&mut self, now: Instant, bytes: usize) {
        self.retry.sent(now, bytes, &self.params);
    }

    /// The number of blocks of the body.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Whether this block has arrived.
    fn has(&self, num: u32) -> bool {
        self.here
            .get((num / u64::BITS) as usize)
            .is_some_and(|word| word >> (num % u64::BITS) & 1 == 1)
    }

    /// Whether whole sets without a gap have arrived and more are to follow. The sender then need
    /// not wait.
    fn is_set_end(&self) -> bool {
        self.low == self.top && self.low.is_multiple_of(self.params.set()) && self.low < self.blocks
    }
}
