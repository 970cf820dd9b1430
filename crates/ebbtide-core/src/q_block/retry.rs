//! How long to wait for a peer that says nothing, and how often to ask it again.

use super::QBlockParameters;
use crate::time::Instant;

/// When a silent peer is asked again: after NON_RECEIVE_TIMEOUT, then after twice as long each time,
/// NON_MAX_RETRANSMIT times in all (RFC 9177 section 7.2).
#[derive(Copy, Clone, Debug)]
pub struct Retry {
    /// Requests since anything was heard.
    asked: u8,
    due: Instant,
}

/// What is due now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing before this instant.
    Wait(Instant),
    /// Ask; it is counted.
    Ask,
    /// As often as may be it was asked in vain.
    GiveUp,
}

impl Retry {
    /// The peer has been heard from now, or was sent something that it should answer.
    #[must_use]
    pub fn new(now: Instant, params: &QBlockParameters) -> Self {
        Self { asked: 0, due: now + params.non_receive_timeout() }
    }

    /// What is due at `now`.
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

    /// Counts a request that was made for another reason than time.
    pub fn ask(&mut self, now: Instant, params: &QBlockParameters) {
        self.asked = self.asked.saturating_add(1);
        self.due = now + params.time_to_wait(self.asked);
    }

    /// What the request took that was counted at `now`: as long as nothing is heard, another one is
    /// subject to PROBING_RATE (RFC 9177 section 7.2).
    pub fn sent(&mut self, now: Instant, bytes: usize, params: &QBlockParameters) {
        self.due = self.due.max(now + params.probing_time(bytes));
    }
}
