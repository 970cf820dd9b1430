//! Withheld answers of non-idempotent requests, which wait until the address has echoed a
//! challenge: the handler has run and must not run again.

use crate::session::message::Response;
use crate::session::recency::RecencyMap;
use crate::time::{Duration, Instant};

/// The number of handled requests that are remembered without their answers, as a multiple of the
/// maximum number of answers: 48 bytes each.
const LOST: usize = 32;

/// The withheld answers, by the number in their challenge
/// ([`Challenged::Answered`](crate::exchange::echo::Challenged)).
#[derive(Debug)]
pub(super) struct Withheld {
    answers: RecencyMap<u32, Response>,
    /// Handled requests whose answers found no room.
    lost: RecencyMap<u32, ()>,
    next: u32,
    max: usize,
    lifetime: Duration,
}

/// The answer under a number.
pub(super) enum WithheldAnswer {
    Answer(Response),
    /// Its request was handled, and the answer was dropped.
    Lost,
    /// It was taken before, or has expired.
    Unknown,
}

impl Withheld {
    /// Creates an empty table. An answer is kept for twice EXCHANGE_LIFETIME, since the challenge
    /// may answer the request's last copy, and the repeated request may be late as well. This is
    /// longer than an Echo value is fresh, so a fresh value without an answer has been used before.
    pub(super) fn new(max: usize, exchange_lifetime: Duration) -> Self {
        let lifetime = exchange_lifetime.saturating_mul(2);
        Self { answers: RecencyMap::new(), lost: RecencyMap::new(), next: 0, max, lifetime }
    }

    fn expire(&mut self, now: Instant) {
        while self.answers.pop_oldest(now, self.lifetime).is_some() {}
        while self.lost.pop_oldest(now, self.lifetime).is_some() {}
    }

    pub(super) fn len(&mut self, now: Instant) -> usize {
        self.expire(now);
        self.answers.len()
    }

    /// Whether a handler may run although its answer may have to wait.
    pub(super) fn has_room(&mut self, now: Instant) -> bool {
        self.len(now) < self.max / 2 && self.lost.len() < self.max * LOST / 2
    }

    /// Stores an answer until its challenge is echoed, and returns its number. When many slow
    /// handlers end together, it may find no room; the fact that its request was handled is
    /// remembered nevertheless.
    pub(super) fn keep(&mut self, now: Instant, answer: Response) -> u32 {
        self.expire(now);
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        if self.answers.len() < self.max {
            self.answers.insert(now, number, answer, 0);
        } else {
            if self.lost.len() >= self.max * LOST {
                self.lost.pop_oldest(now, Duration::ZERO);
            }
            self.lost.insert(now, number, (), 0);
        }
        number
    }

    /// Whether an answer is stored under a number. It then lives on as if it had just been stored,
    /// because its client is challenged once more.
    /// client is challenged once more.
    pub(super) fn renew(&mut self, now: Instant, number: u32) -> bool {
        self.expire(now);
        self.answers.advance(now, number);
        self.lost.advance(now, number);
        self.answers.get(&number).is_some() || self.lost.get(&number).is_some()
    }

    /// Takes the answer of a request that was handled before.
    pub(super) fn take(&mut self, now: Instant, number: u32) -> WithheldAnswer {
        self.expire(now);
        match (self.answers.remove(&number), self.lost.remove(&number)) {
            (Some(answer), _) => WithheldAnswer::Answer(answer),
            (None, Some(())) => WithheldAnswer::Lost,
            (None, None) => WithheldAnswer::Unknown,
        }
    }
}
