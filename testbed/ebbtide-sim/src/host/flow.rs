//! The record of a sender of many messages: which were offered, sent and delivered. The testbed
//! keeps it at both ends at once, so it knows what arrived when the sender does not.

use crate::record::FlowRecord;
use crate::record::{new_histogram, sparse};
use crate::scenario::{Offers, Scenario};
use ebbtide_core::time::{Duration, Instant};
use hdrhistogram::Histogram;
use std::ops::Range;

/// A transfer ends when this many messages were given up: the receiver is gone.
const MOST_GIVEN_UP: u64 = 1000;

/// A flow of messages from one client.
pub(crate) struct MessageFlow {
    /// Between two messages of the application; `None` if there is always one more.
    interval: Option<Duration>,
    /// When the application offers no more.
    until: Option<Instant>,
    /// How many messages may wait.
    queue: u32,
    /// How many are kept waiting if there is always one more.
    ahead: u32,
    waiting: u32,
    messages: Vec<FlowMessage>,
    /// The largest number that has arrived.
    latest: Option<u32>,
    delay: Histogram<u32>,
    wait: Histogram<u32>,
    record: FlowRecord,
}

/// One message, from 0 in the order in which they were offered.
#[derive(Copy, Clone, Debug)]
struct FlowMessage {
    offered: Instant,
    left: Option<Instant>,
    arrived: Option<Instant>,
}

impl MessageFlow {
    /// The flow of a client, if the scenario's clients have such. `ahead` messages are kept waiting
    /// to leave where there is always one more.
    pub(crate) fn new(client: u32, scenario: &Scenario, ahead: u32) -> Option<Box<Self>> {
        let traffic = scenario.workload.flow()?;
        let (interval, until) = match &traffic.offers {
            Offers::Stream { interval, duration } => (interval.for_client(client), Some(duration)),
            Offers::Transfer { .. } => (None, None),
        };
        let interval = interval.filter(|time| time.0 > 0);
        Some(Box::new(Self {
            interval: interval.map(|time| Duration::from_nanos(time.0)),
            until: until.map(|duration| Instant::from_nanos(duration.0)),
            queue: traffic.queue.into(),
            ahead: ahead.min(traffic.queue.into()),
            waiting: 0,
            messages: Vec::new(),
            latest: None,
            delay: new_histogram(),
            wait: new_histogram(),
            record: FlowRecord::default(),
        }))
    }

    /// When it begins.
    pub(crate) const fn starts(&self) -> Instant {
        Instant::from_nanos(self.record.start_ns)
    }

    /// When the application offers the next message; `None` if that is not up to the clock.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        let next = now + self.interval?;
        self.until.is_none_or(|until| next < until).then_some(next)
    }

    /// Whether the clock says when messages are offered.
    pub(crate) const fn keeps_time(&self) -> bool {
        self.interval.is_some()
    }

    /// Whether the application has a message for which there is room now. One that comes by the
    /// clock and finds none is refused.
    pub(crate) fn offers(&mut self, now: Instant) -> bool {
        if self.until.is_some_and(|until| now >= until) {
            return false;
        }
        if self.interval.is_none() {
            return self.waiting < self.ahead;
        }
        let has_room = self.waiting < self.queue;
        if !has_room {
            self.refused();
        }
        has_room
    }

    /// A message was not taken.
    pub(crate) const fn refused(&mut self) {
        self.record.offered += 1;
        self.record.refused += 1;
    }

    /// The message with the next number is taken and waits.
    pub(crate) fn taken(&mut self, now: Instant) {
        if self.messages.is_empty() {
            self.record.start_ns = now.as_nanos();
        }
        self.record.offered += 1;
        self.waiting += 1;
        self.messages.push(FlowMessage { offered: now, left: None, arrived: None });
    }

    /// A transmission of a message leaves. Whether it is the first one.
    pub(crate) fn leaves(&mut self, now: Instant, number: u32) -> bool {
        self.record.transmissions += 1;
        let Some(message) = self.messages.get_mut(number as usize) else { return false };
        if message.left.is_some() {
            return false;
        }
        message.left = Some(now);
        self.waiting = self.waiting.saturating_sub(1);
        self.record.sent += 1;
        self.wait.saturating_record(now.micros_since(message.offered).as_micros());
        true
    }

    /// A probe leaves.
    pub(crate) const fn probes(&mut self) {
        self.record.probes += 1;
    }

    /// A copy of a message arrives at the server. Whether it is the first one.
    pub(crate) fn arrives(&mut self, now: Instant, number: u32) -> bool {
        self.record.arrived += 1;
        let is_over = self.until.is_some_and(|until| now >= until);
        let Some(message) = self.messages.get_mut(number as usize) else { return false };
        if is_over || message.arrived.is_some() {
            return false;
        }
        message.arrived = Some(now);
        let delay = message.left.map_or(Duration::ZERO, |left| now - left);
        self.record.delivered += 1;
        self.record.reordered += u64::from(self.latest.is_some_and(|latest| number < latest));
        self.latest = self.latest.max(Some(number));
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.record.delay_sum_ns = self.record.delay_sum_ns.saturating_add(nanos);
        self.delay.saturating_record(nanos / 1000);
        true
    }

    /// A message was given up. Whether the application offers it again.
    pub(crate) fn given_up(&mut self, number: u32) -> bool {
        self.record.given_up += 1;
        if let Some(message) = self.messages.get(number as usize)
            && message.left.is_none()
        {
            self.waiting = self.waiting.saturating_sub(1);
        }
        self.until.is_none() && self.record.given_up <= MOST_GIVEN_UP
    }

    /// The measurements of a flow that ended at `end`; all flows were active in the window.
    pub(crate) fn finish(&mut self, end: Instant, together: &Range<Instant>) -> FlowRecord {
        self.record.end_ns = end.as_nanos();
        let arrivals = self.messages.iter().filter_map(|message| message.arrived);
        self.record.delivered_together = arrivals.filter(|at| together.contains(at)).count() as u64;
        self.record.delay = sparse(&self.delay);
        self.record.wait = sparse(&self.wait);
        self.record.clone()
    }
}
