//! Answers of requests that are not idempotent, which wait until the address has echoed a challenge: the
//! handler has run and must not run again.

use crate::session::key::TransferKey;
use crate::session::message::Response;
use crate::session::recency::RecencyMap;
use crate::time::{Duration, Instant};
use crate::wire::Code;

/// How many times as many requests are remembered whose answers had to go: 48 bytes each.
const EVICTED: usize = 16;

#[derive(Debug)]
pub(super) struct Withheld {
    answers: RecencyMap<TransferKey, (TransferKey, Response)>,
    /// Requests that were handled and whose answers found no room any more.
    evicted: RecencyMap<TransferKey, ()>,
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
            evicted: RecencyMap::new(),
            echoed: RecencyMap::new(),
            unremembered: None,
            max,
            lifetime,
        }
    }

    fn expire(&mut self, now: Instant) {
        while self.answers.pop_oldest(now, self.lifetime).is_some() {}
        while self.evicted.pop_oldest(now, self.lifetime).is_some() {}
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

    /// Whether a handler may run although its answer may have to wait: there is room, and the same
    /// request was not handled before.
    pub(super) fn has_room_for(&mut self, now: Instant, key: &TransferKey) -> bool {
        self.len(now) < self.max / 2
            && self.answers.get(key).is_none()
            && self.evicted.get(key).is_none()
    }

    /// Keeps an answer until its echo comes. Where many slow handlers end together, the oldest answer may
    /// have to go; that its request was handled is remembered all the same.
    pub(super) fn keep(&mut self, now: Instant, key: TransferKey, answer: Response) {
        self.expire(now);
        if self.answers.len() >= self.max
            && let Some((oldest, _)) = self.answers.pop_oldest(now, Duration::ZERO)
        {
            if self.evicted.len() >= EVICTED * self.max {
                self.evicted.pop_oldest(now, Duration::ZERO);
            }
            self.evicted.insert(now, oldest, (), 0);
        }
        self.answers.insert(now, key, (key, answer), 0);
    }

    /// The answer of a request that was handled before: the handler's, or 5.03 if that found no room.
    pub(super) fn take(&mut self, now: Instant, key: &TransferKey) -> Option<Response> {
        self.expire(now);
        if let Some((_, answer)) = self.answers.remove(key) {
            return Some(answer);
        }
        self.evicted.get(key).map(|()| Response::new(Code::SERVICE_UNAVAILABLE))
    }
}
