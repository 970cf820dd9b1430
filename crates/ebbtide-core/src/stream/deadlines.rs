//! Patience, and its end.

use super::config::Config;
use super::types::{Closed, Event, Failure, Fault};
use super::{Connection, Phase};
use crate::time::{Duration, Instant};

/// When what must have happened. `None` where nothing is waited for.
#[derive(Copy, Clone, Debug)]
pub(super) struct Deadlines {
    /// The peer's first CSM.
    pub(super) csm: Option<Instant>,
    /// The rest of a message that has begun.
    pub(super) message: Option<Instant>,
    /// The transport's taking more of what waits.
    pub(super) write: Option<Instant>,
    /// The peer's closing after our Release, or the answers to what is open after its own.
    pub(super) end: Option<Instant>,
    /// When our Ping was queued, if its Pong is to come.
    pub(super) pinged: Option<Instant>,
    /// When something of the peer's came last.
    pub(super) heard: Instant,
    /// When the connection was last used.
    pub(super) used: Instant,
    /// Whether the application wants it to stay open without being used.
    pub(super) kept: bool,
}

impl Deadlines {
    pub(super) fn new(now: Instant, config: &Config) -> Self {
        Self { csm: Some(now + config.csm_timeout), ..Self::none(now) }
    }

    pub(super) const fn none(now: Instant) -> Self {
        Self {
            csm: None,
            message: None,
            write: None,
            end: None,
            pinged: None,
            heard: now,
            used: now,
            kept: false,
        }
    }

    /// The peer is not to blame for a span in which nothing was taken from it: its Pong, the rest of
    /// its message or its CSM may have been here all the time.
    pub(super) fn postpone(&mut self, span: Duration) {
        self.heard = self.heard + span;
        for at in [&mut self.csm, &mut self.message, &mut self.pinged].into_iter().flatten() {
            *at = *at + span;
        }
    }
}

impl Connection {
    /// When [`Self::handle_timeout`] is to be called, if nothing happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let alive = !matches!(self.phase, Phase::Closing(_) | Phase::Closed);
        let Deadlines { csm, message, write, end, .. } = self.deadlines;
        let requests = self.requests.earliest();
        let listens = self.wants_input();
        [write, end, requests]
            .into_iter()
            .chain([csm, message].map(|at| at.filter(|_| listens)))
            .chain([self.silence().filter(|_| alive && listens)])
            .chain([self.idleness().filter(|_| alive)])
            .flatten()
            .min()
    }

    /// When the peer has been silent for too long: to be pinged, or, if it was, to be given up.
    fn silence(&self) -> Option<Instant> {
        match self.deadlines.pinged {
            Some(at) => Some(at + self.config.pong_timeout),
            None => Some(self.deadlines.heard + self.config.keep_alive?),
        }
    }

    /// When the connection has not been used for too long.
    fn idleness(&self) -> Option<Instant> {
        let busy = self.deadlines.kept
            || self.unanswered > 0
            || self.requests.open() > 0
            || self.phase != Phase::Open;
        Some(self.deadlines.used + self.config.idle_timeout.filter(|_| !busy)?)
    }

    /// Whether the connection is to stay open without being used, against
    /// [`Config::idle_timeout`]: because somebody observes something over it.
    pub fn keep(&mut self, keep: bool) {
        self.deadlines.kept = keep;
    }

    /// Time has passed. Too early a call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let now = self.advance(now);
        let due = |deadline: Option<Instant>| deadline.is_some_and(|at| at <= now);
        let Deadlines { csm, message, write, end, .. } = self.deadlines;
        match self.phase {
            Phase::Closed => return,
            Phase::Closing(_) => {
                if due(write) {
                    self.output.clear();
                    self.deadlines.write = None;
                }
                return;
            }
            // The peer had its time.
            Phase::Releasing if due(end) => return self.close(now, Closed::Released),
            Phase::Leaving(closed) if due(end) => return self.close(now, closed),
            Phase::Open | Phase::Releasing | Phase::Leaving(_) => {}
        }
        if due(write) {
            // It would not take the Abort either.
            self.output.clear();
            self.fault(now, Fault::WriteStalled);
            self.output.clear();
        } else if due(csm) {
            self.fault(now, Fault::CsmLate);
        } else if due(message) {
            self.fault(now, Fault::SlowMessage);
        } else if due(self.silence()) {
            match self.deadlines.pinged {
                Some(_) => self.fault(now, Fault::Silent),
                // What could not be queued now finds the peer just as silent later.
                None => drop(self.ping(now, false)),
            }
        } else if due(self.idleness()) {
            self.release(now);
        }
        if due(self.requests.earliest()) {
            for request in self.requests.expire(now) {
                self.counters.unanswered += 1;
                self.events.push_back(Event::Failed { request, reason: Failure::NoResponse });
            }
            self.close_if_drained(now);
        }
    }
}
