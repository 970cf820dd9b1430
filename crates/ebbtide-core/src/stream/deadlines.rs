//! The deadlines of a connection.

use super::config::Config;
use super::types::{Closed, Event, Failure, Fault};
use super::{Connection, Phase};
use crate::time::{Duration, Instant};

/// The instants by which events must have happened. `None` where no event is awaited.
#[derive(Copy, Clone, Debug)]
pub(super) struct Deadlines {
    /// The peer's first CSM.
    pub(super) csm: Option<Instant>,
    /// The rest of a message that has begun to arrive.
    pub(super) message: Option<Instant>,
    /// The transport accepting more of the waiting bytes.
    pub(super) write: Option<Instant>,
    /// The peer closing the connection after our Release, or the responses to open requests after
    /// its own.
    pub(super) end: Option<Instant>,
    /// When our Ping was queued, if its Pong is awaited.
    pub(super) pinged: Option<Instant>,
    /// When the peer was last heard from.
    pub(super) heard: Instant,
    /// When the connection was last used.
    pub(super) used: Instant,
    /// Whether the application wants the connection to stay open while it is idle.
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

    /// The peer is not to blame for a span in which we read nothing from it: its Pong, its CSM or
    /// the rest of its message may have been waiting all the time.
    pub(super) fn postpone(&mut self, span: Duration) {
        self.heard = self.heard + span;
        for at in [&mut self.csm, &mut self.message, &mut self.pinged].into_iter().flatten() {
            *at = *at + span;
        }
    }
}

impl Connection {
    /// The next instant at which to call [`Self::handle_timeout`].
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

    /// The instant at which the peer has been silent for too long. It is then sent a Ping or,
    /// after an unanswered Ping, the connection is closed.
    fn silence(&self) -> Option<Instant> {
        match self.deadlines.pinged {
            Some(at) => Some(at + self.config.pong_timeout),
            None => Some(self.deadlines.heard + self.config.keep_alive?),
        }
    }

    /// The instant at which the connection has been idle for too long.
    fn idleness(&self) -> Option<Instant> {
        let busy = self.deadlines.kept
            || self.unanswered > 0
            || self.requests.open() > 0
            || self.phase != Phase::Open;
        Some(self.deadlines.used + self.config.idle_timeout.filter(|_| !busy)?)
    }

    /// Whether the connection stays open while it is idle, contrary to [`Config::idle_timeout`],
    /// because a resource is being observed over it.
    pub fn keep(&mut self, keep: bool) {
        self.deadlines.kept = keep;
    }

    /// Processes the deadlines that have passed. An early call has no effect.
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
            // The peer's time to close is over.
            Phase::Releasing if due(end) => return self.close(now, Closed::Released),
            Phase::Leaving(closed) if due(end) => return self.close(now, closed),
            Phase::Open | Phase::Releasing | Phase::Leaving(_) => {}
        }
        if due(write) {
            // The transport would not accept the Abort either.
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
                // If the Ping cannot be queued now, the peer will be just as silent later.
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
