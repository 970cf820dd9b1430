//! The side that gets the body: which blocks are here, and what to say about the others.

use super::{Due, QBlockParameters, Retry};
use crate::time::Instant;
use alloc::vec::Vec;

/// Keeps book of the blocks of one body that arrive in any order (RFC 9177 section 7.2): says
/// Continue when all sets so far are complete, asks for what is missing as soon as a later set
/// begins, or else after NON_RECEIVE_TIMEOUT, and gives up after NON_MAX_RETRANSMIT requests or
/// NON_PARTIAL_TIMEOUT without a new block.
///
/// It knows numbers only; the body is the caller's. It holds a bit per block.
#[derive(Clone, Debug)]
pub struct Receiver {
    params: QBlockParameters,
    blocks: u32,
    here: Vec<u64>,
    /// How many are here.
    count: u32,
    /// All before this one are here, this one is not.
    low: u32,
    /// None from this one on is here.
    top: u32,
    /// Continue is to be said.
    confirm: bool,
    /// Missing blocks before this one are to be asked for at once.
    gap: u32,
    /// Those before this one are asked for.
    bound: u32,
    retry: Retry,
    expires: Instant,
}

/// What a block that arrived is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was missing: keep its payload.
    New,
    /// It is here already: its payload must be ignored (RFC 9177 sections 4.3 and 4.4).
    Duplicate,
    /// There is no such block in a body of this size.
    Outside,
}

/// What a [`Receiver`] wants.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Receiving {
    /// All blocks are here.
    Complete,
    /// Say that everything before this block is here: 2.31 Continue for the block before it, or a
    /// request for it with M set. Then ask again.
    Continue(u32),
    /// Ask for [`Receiver::missing`], tell [`Receiver::sent`] of it, then ask again.
    Missing,
    /// Nothing before this instant, or before a block arrives.
    Wait(Instant),
    /// What is missing does not come: drop the body.
    GiveUp,
}

impl Receiver {
    /// The receiver of a body of so many blocks, of which nothing is here yet.
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

    /// A block arrived.
    pub fn on_block(&mut self, now: Instant, num: u32) -> Arrival {
        if num >= self.blocks {
            return Arrival::Outside;
        }
        if self.has(num) {
            // What the sender was told then may be lost.
            self.confirm |= self.is_set_end() && self.params.end_of_set(num) == self.low;
            return Arrival::Duplicate;
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
        Arrival::New
    }

    /// What is to be done now.
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
                // To the end of the set that was begun; if all of it is here, of the next one.
                self.bound = self.params.end_of_set(self.low.max(self.top.saturating_sub(1)));
                Receiving::Missing
            }
        }
    }

    /// The blocks to ask for, ascending: at most MAX_PAYLOADS of them, so that they can be sent at
    /// once (RFC 9177 section 5).
    pub fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        (self.low..self.bound.min(self.blocks))
            .filter(|&num| !self.has(num))
            .take(self.params.set() as usize)
    }

    /// So many bytes asked for what is missing: see [`Retry::sent`].
    pub fn sent(&mut self, now: Instant, bytes: usize) {
        self.retry.sent(now, bytes, &self.params);
    }

    /// How many blocks the body has.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Whether this block is here.
    fn has(&self, num: u32) -> bool {
        self.here
            .get((num / u64::BITS) as usize)
            .is_some_and(|word| word >> (num % u64::BITS) & 1 == 1)
    }

    /// Whether what is here are whole sets without a gap, and more are to come: then the sender need
    /// not wait.
    fn is_set_end(&self) -> bool {
        self.low == self.top && self.low.is_multiple_of(self.params.set()) && self.low < self.blocks
    }
}
