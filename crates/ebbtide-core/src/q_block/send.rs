//! The side that has the body: which block leaves when.

use super::{Due, QBlockParameters, Retry};
use crate::time::{Instant, Micros};
use alloc::collections::VecDeque;
use rand_core::Rng;

/// Paces the blocks of one body (RFC 9177 section 7.2): a set of MAX_PAYLOADS at once, then a delay
/// of NON_TIMEOUT_RANDOM unless the peer says earlier that it has the set. Blocks that the peer
/// misses are sent again at once, at most MAX_PAYLOADS in a delay, and another delay follows.
///
/// It knows numbers only; the body is the caller's. It holds MAX_PAYLOADS numbers at most.
#[derive(Clone, Debug)]
pub struct Sender {
    params: QBlockParameters,
    /// NON_TIMEOUT_RANDOM of this body.
    delay: Micros,
    blocks: u32,
    /// The first block that never left.
    next: u32,
    /// The blocks before this one may leave now.
    limit: u32,
    /// What the peer asked for again, ascending.
    again: VecDeque<u32>,
    /// How many of them may leave before the delay is over.
    quota: u32,
    /// When the delay after the last block that left is over.
    resume: Instant,
    finish: Finish,
}

/// What follows when all blocks have left.
#[derive(Copy, Clone, Debug)]
enum Finish {
    /// Nothing: the peer asks for what it misses.
    Nothing,
    /// An answer, which may get lost: then the last block is sent again, since the peer answers a
    /// duplicate as it answered the block (RFC 9177 section 4.3); if that is safe.
    Answer { repeat: bool, retry: Option<Retry> },
}

/// What a [`Sender`] wants.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Send this block now, then ask again.
    Block(u32),
    /// Nothing before this instant, or before the peer is heard; for ever without one.
    Wait(Option<Instant>),
    /// All blocks have left, and the peer answers nothing: it is over.
    GiveUp,
}

impl Sender {
    /// The sender of a request's body of so many blocks (Q-Block1), which an answer follows. If that
    /// does not come, the last block is repeated, provided that the request may be processed twice.
    pub fn upload(
        blocks: u32,
        idempotent: bool,
        params: QBlockParameters,
        rng: &mut dyn Rng,
    ) -> Self {
        let finish = Finish::Answer { repeat: idempotent, retry: None };
        Self::new(blocks, finish, params, rng)
    }

    /// The sender of a response's body of so many blocks (Q-Block2), of which nothing tells that it
    /// has arrived.
    pub fn download(blocks: u32, params: QBlockParameters, rng: &mut dyn Rng) -> Self {
        Self::new(blocks, Finish::Nothing, params, rng)
    }

    fn new(blocks: u32, finish: Finish, params: QBlockParameters, rng: &mut dyn Rng) -> Self {
        Self {
            delay: params.non_timeout_random(rng),
            blocks,
            next: 0,
            limit: params.set().min(blocks),
            again: VecDeque::new(),
            quota: params.set(),
            resume: Instant::ZERO,
            finish,
            params,
        }
    }

    /// What is to be done now.
    pub fn poll(&mut self, now: Instant) -> Sending {
        if self.next == self.limit && now >= self.resume {
            self.quota = self.params.set();
            self.open_set();
        }
        if self.quota > 0
            && let Some(num) = self.again.pop_front()
        {
            self.quota -= 1;
            return self.leave(now, num);
        }
        if self.next < self.limit {
            self.next += 1;
            return self.leave(now, self.next - 1);
        }
        if self.next < self.blocks || !self.again.is_empty() {
            return Sending::Wait(Some(self.resume));
        }
        let Finish::Answer { repeat, retry } = &mut self.finish else {
            return Sending::Wait(None);
        };
        match retry.get_or_insert_with(|| Retry::new(now, &self.params)).poll(now, &self.params) {
            Due::Wait(at) => Sending::Wait(Some(at)),
            Due::GiveUp => Sending::GiveUp,
            Due::Ask => {
                if *repeat {
                    self.again.extend(self.blocks.checked_sub(1));
                }
                self.poll(now)
            }
        }
    }

    /// The peer has everything before block `from`: 2.31 Continue, or a Q-Block2 option with M set.
    /// The next set follows at once if this is about the last one.
    pub fn on_continue(&mut self, from: u32) {
        self.heard();
        if from > self.next {
            return;
        }
        self.again.retain(|&num| num >= from);
        if from == self.limit && self.next == self.limit {
            self.quota = self.params.set();
            self.open_set();
        }
    }

    /// The peer misses these blocks, which ascend. What never left is left out: it will. What is
    /// more than a set is left out as well: the peer asks again.
    pub fn on_missing(&mut self, missing: impl IntoIterator<Item = u32>) {
        self.heard();
        for num in missing.into_iter().take_while(|&num| num < self.next) {
            if let Err(place) = self.again.binary_search(&num) {
                self.again.insert(place, num);
                self.again.truncate(self.params.set() as usize);
            }
        }
    }

    /// Whether every block has left once.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        self.next == self.blocks
    }

    fn open_set(&mut self) {
        self.limit = self.params.end_of_set(self.next).min(self.blocks);
    }

    fn leave(&mut self, now: Instant, num: u32) -> Sending {
        self.resume = now + self.delay;
        Sending::Block(num)
    }

    fn heard(&mut self) {
        if let Finish::Answer { retry, .. } = &mut self.finish {
            *retry = None;
        }
    }
}
