//! A link behind a queue discipline, which decides which packet leaves next when the link is free, not before.

use super::propagation::Propagation;
use super::queue::{Discipline, QueuedPacket};
use super::{Delay, Fate, LinkCounts, Loss, Schedule, Serialiser, TargetedLoss};
use ebbtide_core::time::Instant;
use rand_core::Rng;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// A one-way link with a queue discipline. Unlike a [`Link`](super::Link) it must be called when it becomes
/// free ([`Self::poll_timeout`], [`Self::handle_timeout`]), and a packet's fate becomes known when it is decided
/// ([`Self::poll_fate`]).
#[derive(Debug)]
pub struct ManagedLink<R> {
    serialiser: Serialiser,
    queue: Box<dyn Discipline>,
    propagation: Propagation<R>,
    /// When the transmission under way ends.
    free_at: Instant,
    /// The latest instant that [`Self::poll_timeout`] has given.
    woken_at: Option<Instant>,
    fates: VecDeque<(QueuedPacket, Fate)>,
    /// Reused.
    dropped: Vec<QueuedPacket>,
    counts: LinkCounts,
}

impl<R: Rng> ManagedLink<R> {
    /// An idle link; `rng` draws the delays.
    pub fn new(
        bits_per_second: u64,
        queue: Box<dyn Discipline>,
        delay: Delay,
        loss: Loss<R>,
        rng: R,
    ) -> Self {
        Self {
            serialiser: Serialiser::new(bits_per_second),
            queue,
            propagation: Propagation::new(delay, loss, rng),
            free_at: Instant::ZERO,
            woken_at: None,
            fates: VecDeque::new(),
            dropped: Vec::new(),
            counts: LinkCounts::default(),
        }
    }

    /// The rate and the delay follow a schedule from now on. To be called before the first packet.
    pub fn follow(&mut self, schedule: Arc<Schedule>) {
        self.serialiser = Serialiser::scheduled(Arc::clone(&schedule));
        self.propagation.follow(schedule);
    }

    /// Loses these packets on purpose, in addition to those of the loss model.
    pub fn add_losses(&mut self, targets: impl IntoIterator<Item = TargetedLoss>) {
        self.propagation.add_losses(targets);
    }

    /// Loses every packet whose last bit leaves the serialiser in one of these times, ns.
    pub fn add_outages(&mut self, outages: impl IntoIterator<Item = Range<u64>>) {
        self.propagation.add_outages(outages);
    }

    /// Hands a packet to the link. Calls are in the order of time.
    pub fn send(&mut self, now: Instant, packet: QueuedPacket) {
        self.counts.sent += 1;
        self.queue.enqueue(now, packet, &mut self.dropped);
        self.note_dropped(now);
        self.counts.queue_max = self.counts.queue_max.max(self.queue.bytes());
        self.transmit(now);
    }

    /// When [`Self::handle_timeout`] is to be called; each instant is given once.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        if self.queue.bytes() == 0 || self.woken_at == Some(self.free_at) {
            return None;
        }
        self.woken_at = Some(self.free_at);
        self.woken_at
    }

    /// The link may be free by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.transmit(now);
    }

    /// The next fate that has been decided, with its packet, which may have been marked.
    pub fn poll_fate(&mut self) -> Option<(QueuedPacket, Fate)> {
        self.fates.pop_front()
    }

    /// Bytes that wait.
    pub fn queued_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// When the transmission under way, or the last one, ends.
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// The counters. Of what waits only `sent` and `queue_max` know.
    pub const fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// The next packet is transmitted if the link is free.
    fn transmit(&mut self, now: Instant) {
        if now < self.free_at {
            return;
        }
        let next = self.queue.dequeue(now, &mut self.dropped);
        self.note_dropped(now);
        let Some(packet) = next else { return };
        let (start, left) = self.serialiser.accept(now, packet.bytes);
        self.free_at = left;
        self.waited(packet, start);
        self.counts.marked += u64::from(packet.is_marked);
        self.counts.bytes_serialised += u64::from(packet.bytes);
        self.counts.busy_ns += left.as_nanos() - start.as_nanos();
        let fate = self.propagation.cross(left, Some(packet.client));
        match fate {
            Fate::Lost { .. } => self.counts.lost_link += 1,
            _ => {
                self.counts.delivered += 1;
                self.counts.bytes_delivered += u64::from(packet.bytes);
            }
        }
        self.fates.push_back((packet, fate));
    }

    /// Counts the packets that the discipline has dropped, and records their fates.
    fn note_dropped(&mut self, now: Instant) {
        for index in 0..self.dropped.len() {
            let packet = self.dropped[index];
            self.counts.dropped_queue += 1;
            self.waited(packet, now);
            self.fates.push_back((packet, Fate::Dropped));
        }
        self.dropped.clear();
    }

    fn waited(&mut self, packet: QueuedPacket, until: Instant) {
        let wait = until.saturating_since(packet.queued_at).as_nanos();
        self.counts.queue_byte_ns += u128::from(packet.bytes) * wait;
    }
}
