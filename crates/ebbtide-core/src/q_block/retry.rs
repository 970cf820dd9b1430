//! How long to wait for a silent peer, and how often to send it another request.

use super::QBlockParameters;
use crate::time::Instant;

/// The schedule of requests to a silent peer: after NON_RECEIVE_TIMEOUT, then after twice as long
/// each time, NON_MAX_RETRANSMIT times in all (RFC 9177 section 7.2).
#[derive(Copy, Clone, Debug)]
pub struct Retry {
    /// Requests since the peer last responded.
    asked: u8,
    due: Instant,
}

/// The action that is due.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing is due before this instant.
    Wait(Instant),
    /// Send a request, which is counted.
    Ask,
    /// All requests stayed unanswered: give up.
    GiveUp,
}

impl Retry {
    /// Starts when the peer has just responded, or has just been sent something that it should
    /// answer.
    #[must_use]
    pub fn new(now: Instant, params: &QBlockParameters) -> Self {
        Self { asked: 0, due: now + params.non_receive_timeout() }
    }

    /// The action that is due at `now`.
    pub fn poll(&mut self, now: Instant, params: &QBlockParameters) -> Due {
        if now < self.due {
            return Due::Wait(self.due);
        }
        if self.asked >= params.non_max_retransmit {
            return Due::GiveUp;
        }
        self.ask(now, params);
        Due::Ask
    }

    /// Counts a request that was made for another reason than the elapsed time.
    pub fn ask(&mut self, now: Instant, params: &QBlockParameters) {
        self.asked = self.asked.saturating_add(1);
        self.due = now + params.time_to_wait(self.asked);
    }

    /// Reports the size of the request that was counted at `now`. Until the peer responds, another
    /// request is subject to PROBING_RATE (RFC 9177 section 7.2).
    pub fn sent(&mut self, now: Instant, bytes: usize, params: &QBlockParameters) {
        self.due = self.due.max(now + params.probing_time(bytes));
    }
}
