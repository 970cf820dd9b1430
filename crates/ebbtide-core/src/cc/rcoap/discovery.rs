//! INITIAL: the rate is found out with pings.

use super::{Rcoap, State};
use crate::cc::{Admission, Context, Departure, Load, Shell};
use crate::time::{Instant, Micros};

/// The bytes of a ping with its IPv4 and UDP headers, and those headers alone.
const PING: u32 = 32;
const HEADERS: u32 = 28;

impl Rcoap {
    /// Discovery begins: at R_start, or with a pair of pings if there is none.
    pub(super) fn begin(&mut self, cx: &Context<'_>) {
        let state = match cx.settings.start_interval {
            Some(interval) => {
                self.pace(interval, cx);
                State::Discovery
            }
            None => State::Pair,
        };
        self.enter(state, cx.now);
        self.wait_until(cx.now);
    }

    /// Two round trips after the first answer: R = min(R_start, answers / the time that they took).
    /// RCOAP21 divides by 2 RTT, which for few answers is wrong by up to one of them; the time that
    /// they took is their spacing, or what is left of 2 RTT if they stopped before its end.
    pub(super) fn settle(&mut self, cx: &Context<'_>) {
        let window = cx.now.micros_since(self.since.0);
        let measured = match u32::from(self.answers.saturating_sub(1)) {
            0 => window,
            spacings => self.memo.max(window.saturating_sub(self.interval)).scale(1, spacings),
        };
        self.pace(self.interval.max(measured), cx);
        self.enter(State::Normal, cx.now);
        self.memo = Micros::MAX;
    }

    /// INITIAL: what is to leave in the place of the message that asks.
    pub(super) fn discover(
        &mut self,
        message: &Departure,
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
            State::Paired => {
                let bytes = u32::from(message.bytes) + HEADERS;
                Some(self.memo.scale(bytes, PING))
            }
            // The other answer is lost, or the peer answers few pings (libcoap: four a second): one
            // message per round trip is always safe to try.
            State::Pair if self.answers > 0 => Some(self.rtt()),
            _ => None,
        };
        if let Some(interval) = interval {
            self.pace(interval, cx);
            self.enter(State::Discovery, cx.now);
        }
        if load.probes >= Shell::PROBES {
            // More into a silence tell nothing.
            return Admission::NotBefore(if self.answers > 0 {
                self.window_end()
            } else {
                deadline
            });
        }
        match self.state {
            // The second of the pair follows at once.
            State::Pair if load.probes.is_multiple_of(2) => self.wait_until(cx.now),
            State::Pair => self.wait_until(cx.now + cx.settings.initial_rto(cx.params)),
            _ => self.left(cx.now),
        }
        Admission::Probe(self.no_later(deadline))
    }

    /// When discovery goes on: not after the deadline, while nothing has answered.
    fn no_later(&self, deadline: Instant) -> Instant {
        if self.answers == 0 { self.next().min(deadline) } else { self.next() }
    }

    /// When the answers have been counted for two round trips.
    pub(super) fn window_end(&self) -> Instant {
        self.since.0 + self.rtt().scale(2, 1)
    }
}
