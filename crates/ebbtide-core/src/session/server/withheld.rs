//! Answers of requests that are not idempotent, which wait until the address has echoed a challenge: the
//! handler has run and must not run again.

use super::WITHHELD;
use crate::session::key::TransferKey;
use crate::session::message::Response;
use crate::session::recency::RecencyMap;
use crate::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Withheld {
    answers: RecencyMap<TransferKey, Response>,
    max: usize,
}

impl Withheld {
    pub(super) const fn new(max: usize) -> Self {
        Self { answers: RecencyMap::new(), max }
    }

    fn expire(&mut self, now: Instant) {
        while self.answers.pop_oldest(now, WITHHELD).is_some() {}
    }

    pub(super) fn len(&mut self, now: Instant) -> usize {
        self.expire(now);
        self.answers.len()
    }

    /// Whether a handler may run although its answer may have to wait: there is room, and no answer to
    /// the same request waits already.
    pub(super) fn has_room_for(&mut self, now: Instant, key: &TransferKey) -> bool {
        self.len(now) < self.max / 2 && self.answers.get(key).is_none()
    }

    pub(super) fn keep(&mut self, now: Instant, key: TransferKey, answer: Response) {
        self.expire(now);
        if self.answers.len() >= self.max {
            self.answers.pop_oldest(now, Duration::ZERO);
        }
        self.answers.insert(now, key, answer, 0);
    }

    pub(super) fn take(&mut self, now: Instant, key: &TransferKey) -> Option<Response> {
        self.expire(now);
        self.answers.remove(key)
    }
}
