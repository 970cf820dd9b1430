//! INITIAL: pings discover the rate.

use super::{Rcoap, RcoapState};
use crate::cc::{Admission, Context, Load, OutgoingMessage};
use crate::time::{Instant, Micros};

/// The size of a ping with its IPv4 and UDP headers, and the size of those headers alone, in
/// bytes.
const PING: u32 = 32;
const HEADERS: u32 = 28;

impl Rcoap {
    /// Begins discovery: at R_start, or with a pair of pings if R_start is not set.
    pub(super) fn begin(&mut self, cx: &Context<'_>) {
        let state = match cx.settings.rcoap.start_interval {
            Some(interval) => {
                self.pace(interval, cx);
                RcoapState::Discovery
            }
            None => RcoapState::Pair,
        };
        self.enter(state, cx.now);
        self.wait_until(cx.now);
    }

    /// Two round trips after the first answer: R = min(R_start, answers / time they took). RCOAP21
    /// divides by 2 RTT, which is inaccurate by up to one answer if there are few. The time is
    /// taken from their spacing instead, or is the rest of 2 RTT if they stopped before its end.
    pub(super) fn settle(&mut self, cx: &Context<'_>) {
        let window = cx.now.micros_since(self.since.0);
        let measured = match u32::from(self.answers.saturating_sub(1)) {
            0 => window,
            spacings => self.memo.max(window.saturating_sub(self.interval)).scale(1, spacings),
        };
        self.pace(self.interval.max(measured), cx);
        self.enter(RcoapState::Normal, cx.now);
        self.memo = Micros::MAX;
    }

    /// INITIAL: decides what leaves in the place of the message that asks.
    pub(super) fn discover(
        &mut self,
        message: &OutgoingMessage,
        load: &Load,
        cx: &Context<'_>,
    ) -> Admission {
        let deadline = self.since.0 + Self::patience(cx);
        if self.answers == 0 && cx.now >= deadline {
            *self = Self::new();
            return Admission::GiveUp;
        }
        if cx.now < self.next() {
            return Admission::NotBefore(self.no_later(deadline));
        }
        let interval = match self.state {
            RcoapState::Paired => {
                let bytes = u32::from(message.bytes) + HEADERS;
                Some(self.memo.scale(bytes, PING))
            }
            // The other answer is lost, or the peer answers few pings (libcoap: four a second).
            // One message per round trip is always safe to try.
            RcoapState::Pair if self.answers > 0 => Some(self.rtt()),
            _ => None,
        };
        if let Some(interval) = interval {
            self.pace(interval, cx);
            self.enter(RcoapState::Discovery, cx.now);
        }
        if load.probes >= Load::MAX_PROBES {
            // Without any answer, further pings give no information.
            return Admission::NotBefore(if self.answers > 0 {
                self.window_end()
            } else {
                deadline
            });
        }
        match self.state {
            // The second ping of the pair follows at once.
            RcoapState::Pair if load.probes.is_multiple_of(2) => self.wait_until(cx.now),
            RcoapState::Pair => self.wait_until(cx.now + cx.settings.initial_rto(cx.params)),
            _ => self.left(cx.now),
        }
        Admission::Probe(self.no_later(deadline))
    }

    /// The instant at which discovery continues: not after the deadline while nothing has been
    /// answered.
    fn no_later(&self, deadline: Instant) -> Instant {
        if self.answers == 0 { self.next().min(deadline) } else { self.next() }
    }

    /// The instant at which the answers have been counted for two round trips.
    pub(super) fn window_end(&self) -> Instant {
        self.since.0 + self.rtt().scale(2, 1)
    }
}
