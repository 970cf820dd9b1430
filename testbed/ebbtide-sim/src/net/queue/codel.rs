//! Controlled Delay (RFC 8289): drops at the head of the queue while packets wait too long.

use super::{Discipline, Fifo, LinkFacts, QueuedPacket, marked};
use ebbtide_core::time::{Duration, Instant};

/// The two parameters of RFC 8289 section 4.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CoDelParameters {
    /// The wait that is acceptable as a standing one.
    pub target: Duration,
    /// How long the wait must be above the target before anything is dropped; a round trip of the
    /// slowest usual connection.
    pub interval: Duration,
}

impl Default for CoDelParameters {
    /// 5 ms and 100 ms (RFC 8289 sections 4.3 and 4.4).
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

/// The properties of a link on which the rule of a queue depends.
#[derive(Copy, Clone, Debug)]
pub(super) struct QueueFacts {
    mtu: u32,
    ecn: bool,
}

impl QueueFacts {
    pub(super) const fn of_link(link: &LinkFacts) -> Self {
        Self { mtu: link.mtu, ecn: link.ecn }
    }
}

/// Whether packets are dropped now, and when the next one is; of one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct CodelState {
    /// When the wait will have been above the target for an interval.
    first_above_at: Option<Instant>,
    is_dropping: bool,
    drop_next: Instant,
    /// Packets dropped since the dropping state was entered.
    count: u32,
    last_count: u32,
}

/// Where a state takes its packets from: one queue of a link, or one of many.
pub(super) trait Head {
    fn pop(&mut self) -> Option<QueuedPacket>;
    /// Bytes that wait in it.
    fn bytes(&self) -> u64;
}

impl Head for Fifo {
    fn pop(&mut self) -> Option<QueuedPacket> {
        Self::pop(self)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl CodelState {
    /// The next packet that leaves `head`; those that are dropped go into `dropped` (RFC 8289 section
    /// 5.5).
    pub(super) fn dequeue(
        &mut self,
        now: Instant,
        parameters: &CoDelParameters,
        link: &QueueFacts,
        head: &mut impl Head,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Option<QueuedPacket> {
        let mtu = link.mtu;
        let (mut packet, mut may_drop) = self.take(now, parameters, mtu, head);
        if self.is_dropping {
            if !may_drop {
                self.is_dropping = false;
            }
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                if link.ecn {
                    // A marked packet leaves, so one is enough (RFC 8289 section 5.5 and RFC 8290 section 4.3).
                    self.drop_next = self.after(self.drop_next, parameters);
                    return packet.map(marked);
                }
                dropped.extend(packet);
                (packet, may_drop) = self.take(now, parameters, mtu, head);
                if may_drop {
                    self.drop_next = self.after(self.drop_next, parameters);
                } else {
                    self.is_dropping = false;
                }
            }
        } else if may_drop {
            if link.ecn {
                packet = packet.map(marked);
            } else {
                dropped.extend(packet);
                (packet, _) = self.take(now, parameters, mtu, head);
            }
            self.is_dropping = true;
            // If the queue was just being controlled, the rate of drops that did it is nearly right.
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now.saturating_since(self.drop_next) < parameters.interval * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.after(now, parameters);
            self.last_count = self.count;
        }
        packet
    }

    /// A packet, and whether it has waited so long, for so long a time, that it may be dropped.
    fn take(
        &mut self,
        now: Instant,
        parameters: &CoDelParameters,
        mtu: u32,
        head: &mut impl Head,
    ) -> (Option<QueuedPacket>, bool) {
        let Some(packet) = head.pop() else {
            self.first_above_at = None;
            return (None, false);
        };
        let wait = now.saturating_since(packet.queued_at);
        // One packet in the queue is no standing queue, however slow the link.
        if wait < parameters.target || head.bytes() <= u64::from(mtu) {
            self.first_above_at = None;
            return (Some(packet), false);
        }
        let may_drop = match self.first_above_at {
            None => {
                self.first_above_at = Some(now + parameters.interval);
                false
            }
            Some(at) => now >= at,
        };
        (Some(packet), may_drop)
    }

    /// The control law: drops come at intervals that shrink with the root of their number.
    fn after(&self, at: Instant, parameters: &CoDelParameters) -> Instant {
        // Square root and division are exact to the last bit on every machine (IEEE 754).
        let nanos = parameters.interval.as_nanos() as f64 / f64::from(self.count.max(1)).sqrt();
        at + Duration::from_nanos(nanos as u64)
    }
}

/// One queue under CoDel.
#[derive(Clone, Debug)]
pub struct CoDel {
    parameters: CoDelParameters,
    facts: QueueFacts,
    buffer: Option<u64>,
    queue: Fifo,
    state: CodelState,
}

impl CoDel {
    /// An empty queue.
    pub fn new(parameters: CoDelParameters, link: &LinkFacts) -> Self {
        let (facts, buffer) = (QueueFacts::of_link(link), link.buffer);
        Self { parameters, facts, buffer, queue: Fifo::default(), state: CodelState::default() }
    }
}

impl Discipline for CoDel {
    fn enqueue(&mut self, _: Instant, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        self.queue.offer(packet, self.buffer, dropped);
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        self.state.dequeue(now, &self.parameters, &self.facts, &mut self.queue, dropped)
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes
    }
}
