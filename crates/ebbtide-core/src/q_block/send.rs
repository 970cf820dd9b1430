//! The sender of a body: which block leaves when.

use super::{Due, QBlockParameters, Retry};
use crate::time::{Instant, Micros};
use alloc::collections::VecDeque;
use rand_core::Rng;

/// Sets of a response that leave while nothing is heard: the request for the next set may be lost once.
const UNHEARD: u32 = 2;

/// Paces the blocks of one body (RFC 9177 section 7.2): a set of MAX_PAYLOADS leaves at once, then
/// a delay of NON_TIMEOUT_RANDOM follows unless the peer confirms the set earlier. After two sets of a
/// response without a request of the peer it waits for one. Blocks that the
/// peer reports as missing are sent again at once, at most MAX_PAYLOADS within a delay, and
/// another delay follows.
///
/// It handles block numbers only; the caller keeps the body. It stores at most MAX_PAYLOADS
/// numbers.
#[derive(Clone, Debug)]
pub struct Sender {
    params: QBlockParameters,
    /// NON_TIMEOUT_RANDOM of this body.
    delay: Micros,
    blocks: u32,
    /// The first block that has not left yet.
    next: u32,
    /// Blocks before this one may leave now.
    limit: u32,
    /// Blocks that the peer reported as missing, ascending.
    again: VecDeque<u32>,
    /// How many of them may leave before the delay is over.
    quota: u32,
    /// The end of the delay after the last block that left.
    resume: Instant,
    /// Sets that have begun since the peer was last heard.
    unheard: u32,
    finish: Finish,
}

/// The behaviour after all blocks have left.
#[derive(Copy, Clone, Debug)]
enum Finish {
    /// No further action; the peer requests missing blocks.
    Nothing,
    /// An answer is expected, and may get lost. The last block is then sent again if that is safe,
    /// since the peer answers a duplicate as it answered the block (RFC 9177 section 4.3).
    Answer { repeat: bool, retry: Option<Retry> },
}

/// The next action of a [`Sender`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Send this block now, then poll again.
    Block(u32),
    /// Do nothing before this instant, unless the peer responds; without an instant, do nothing
    /// until it does.
    Wait(Option<Instant>),
    /// All blocks have left, and the peer does not respond: give up.
    GiveUp,
}

impl Sender {
    /// Creates the sender of a request body of this many blocks (Q-Block1), to which an answer is
    /// expected. If the answer does not arrive, the last block is repeated, provided that the
    /// request may be processed twice.
    pub fn upload(
        blocks: u32,
        idempotent: bool,
        params: QBlockParameters,
        rng: &mut dyn Rng,
    ) -> Self {
        let finish = Finish::Answer { repeat: idempotent, retry: None };
        Self::new(blocks, finish, params, rng)
    }

    /// Creates the sender of a response body of this many blocks (Q-Block2), whose arrival is not
    /// confirmed.
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
            unheard: 1,
            finish,
            params,
        }
    }

    /// The action to take now.
    pub fn poll(&mut self, now: Instant) -> Sending {
        if self.next == self.limit && now >= self.resume && !self.is_suspended() {
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
            let suspended = self.is_suspended() && self.again.is_empty();
            return Sending::Wait((!suspended).then_some(self.resume));
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

    /// The peer has every block before `from`, as 2.31 Continue or a Q-Block2 option with M set
    /// reports. If that covers the last set, the next one follows at once.
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

    /// The peer misses these blocks, given in ascending order. Blocks that have not left yet are
    /// skipped, since they will leave anyway. Blocks beyond a set are skipped as well, and the
    /// peer will request them again.
    pub fn on_missing(&mut self, missing: impl IntoIterator<Item = u32>) {
        self.heard();
        for num in missing.into_iter().take_while(|&num| num < self.next) {
            if let Err(place) = self.again.binary_search(&num) {
                self.again.insert(place, num);
                self.again.truncate(self.params.set() as usize);
            }
        }
    }

    fn open_set(&mut self) {
        self.limit = self.params.end_of_set(self.next).min(self.blocks);
        self.unheard = self.unheard.saturating_add(1);
    }

    /// Whether no further set of a response leaves before the peer is heard. A receiver requests
    /// the next set or what it misses (RFC 9177 section 4.4); one that does neither may not be
    /// there, or not have asked.
    fn is_suspended(&self) -> bool {
        matches!(self.finish, Finish::Nothing) && self.unheard >= UNHEARD
    }

    fn leave(&mut self, now: Instant, num: u32) -> Sending {
        self.resume = now + self.delay;
        Sending::Block(num)
    }

    fn heard(&mut self) {
        self.unheard = 0;
        if let Finish::Answer { retry, .. } = &mut self.finish {
            *retry = None;
        }
    }
}
