//! Answers of requests that are not idempotent, which wait until the address has echoed a challenge: the
//! handler has run and must not run again.

use crate::session::key::TransferKey;
use crate::session::message::Response;
use crate::session::recency::RecencyMap;
use crate::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Withheld {
    answers: RecencyMap<TransferKey, Response>,
    /// Requests that were processed with an Echo option.
    echoed: RecencyMap<TransferKey, ()>,
    /// When a request was last challenged without being remembered.
    unremembered: Option<Instant>,
    max: usize,
    lifetime: Duration,
}

impl Withheld {
    /// An answer is kept for twice EXCHANGE_LIFETIME: the challenge may arrive late, as an answer to the
    /// request's last copy, and the request made again may be late as well. Whoever echoes what is no
    /// longer fresh is challenged anew.
    pub(super) fn new(max: usize, exchange_lifetime: Duration) -> Self {
        let lifetime = exchange_lifetime.saturating_mul(2);
        Self {
            answers: RecencyMap::new(),
            echoed: RecencyMap::new(),
            unremembered: None,
            max,
            lifetime,
        }
    }

    fn expire(&mut self, now: Instant) {
        while self.answers.pop_oldest(now, self.lifetime).is_some() {}
        while self.echoed.pop_oldest(now, self.lifetime).is_some() {}
    }

    /// A request was challenged without being remembered
    /// ([`Endpoint::remembers_much`](crate::endpoint::Endpoint::remembers_much)): nothing tells its late
    /// copies from requests that are made anew.
    pub(super) fn challenged_without_memory(&mut self, now: Instant) {
        self.unremembered = Some(now);
    }

    /// Whether a request may be processed whose address is verified; `echo` says whether it has an Echo
    /// option. Not if it has none, the same one was processed with one before, and requests were
    /// challenged without being remembered: then it may be a late copy of one of these. A client that
    /// makes the request anew is challenged, and told apart by the echo. Otherwise the message layer
    /// knows the copies, and a request may be repeated as often as a client likes.
    pub(super) fn may_process(&mut self, now: Instant, key: TransferKey, echo: bool) -> bool {
        self.expire(now);
        if self.unremembered.is_none_or(|at| now.saturating_since(at) > self.lifetime) {
            return true;
        }
        if !echo {
            return self.echoed.get(&key).is_none();
        }
        if self.echoed.len() >= self.max {
            self.echoed.pop_oldest(now, Duration::ZERO);
        }
        self.echoed.insert(now, key, (), 0);
        true
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
