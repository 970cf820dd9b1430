//! A link: a buffer with tail drop, a serialiser, then delay and loss.

use super::propagation::Propagation;
use super::{Delay, Fate, Loss, Schedule, Serialiser, TargetedLoss};
use crate::growth::push_back;
use ebbtide_core::time::Instant;
use rand_core::Rng;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The counters of a link.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Packets handed to the link.
    pub sent: u64,
    /// Packets that arrive.
    pub delivered: u64,
    /// Packets dropped because the buffer was full.
    pub dropped_queue: u64,
    /// Packets lost after the queue.
    pub lost_link: u64,
    /// Packets that the queue discipline marked (ECN) and that left.
    pub marked: u64,
    /// Bytes that passed the serialiser.
    pub bytes_serialised: u64,
    /// Bytes of the packets that arrive.
    pub bytes_delivered: u64,
    /// Time in which the serialiser was busy, ns.
    pub busy_ns: u64,
    /// The largest number of bytes that waited at the same time.
    pub queue_max: u64,
    /// Waiting bytes times their waiting times, in byte nanoseconds. Divided by a span of time,
    /// this is the mean length of the queue.
    pub queue_byte_ns: u128,
}

/// A one-way link. The buffer contains the packets that wait, but not the one in transmission or
/// those in propagation.
#[derive(Clone, Debug)]
pub struct Link<R> {
    serialiser: Serialiser,
    /// Bytes that may wait; `None` for no limit.
    buffer: Option<u64>,
    propagation: Propagation<R>,
    /// The start of transmission and the length of each waiting packet.
    waiting: VecDeque<(Instant, u32)>,
    waiting_bytes: u64,
    counts: LinkCounts,
}

impl<R: Rng> Link<R> {
    /// Creates an idle link. `buffer` is in bytes; `rng` draws the delays.
    pub const fn new(
        bits_per_second: u64,
        buffer: Option<u64>,
        delay: Delay,
        loss: Loss<R>,
        rng: R,
    ) -> Self {
        Self {
            serialiser: Serialiser::new(bits_per_second),
            buffer,
            propagation: Propagation::new(delay, loss, rng),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            counts: LinkCounts {
                sent: 0,
                delivered: 0,
                dropped_queue: 0,
                lost_link: 0,
                marked: 0,
                bytes_serialised: 0,
                bytes_delivered: 0,
                busy_ns: 0,
                queue_max: 0,
                queue_byte_ns: 0,
            },
        }
    }

    /// Makes the rate and the delay follow a schedule. To be called before the first packet.
    pub fn follow(&mut self, schedule: Arc<Schedule>) {
        self.serialiser = Serialiser::scheduled(Arc::clone(&schedule));
        self.propagation.follow(schedule);
    }

    /// Drops these packets on purpose, in addition to those of the loss model.
    pub fn add_losses(&mut self, targets: impl IntoIterator<Item = TargetedLoss>) {
        self.propagation.add_losses(targets);
    }

    /// Loses every packet whose last bit leaves the serialiser in one of these times, ns.
    pub fn add_outages(&mut self, outages: impl IntoIterator<Item = Range<u64>>) {
        self.propagation.add_outages(outages);
    }

    /// Hands a packet of `bytes` to the link. Calls must be in the order of time.
    #[inline]
    pub fn send(&mut self, now: Instant, bytes: u32) -> Fate {
        self.send_of(None, now, bytes)
    }

    /// Like [`Self::send`], for a packet of this client.
    #[inline]
    pub fn send_of(&mut self, client: Option<u32>, now: Instant, bytes: u32) -> Fate {
        self.counts.sent += 1;
        let waiting = self.queued_bytes(now);
        let idle = self.serialiser.free_at <= now.as_nanos();
        if !idle && self.buffer.is_some_and(|buffer| waiting + u64::from(bytes) > buffer) {
            self.counts.dropped_queue += 1;
            return Fate::Dropped;
        }
        let (start, left) = self.serialiser.accept(now, bytes);
        if start > now {
            push_back(&mut self.waiting, (start, bytes));
            self.waiting_bytes += u64::from(bytes);
            self.counts.queue_max = self.counts.queue_max.max(self.waiting_bytes);
            let wait = start.as_nanos() - now.as_nanos();
            self.counts.queue_byte_ns += u128::from(bytes) * u128::from(wait);
        }
        self.counts.bytes_serialised += u64::from(bytes);
        self.counts.busy_ns += left.as_nanos() - start.as_nanos();
        let fate = self.propagation.cross(left, client);
        match fate {
            Fate::Lost { .. } => self.counts.lost_link += 1,
            _ => {
                self.counts.delivered += 1;
                self.counts.bytes_delivered += u64::from(bytes);
            }
        }
        fate
    }

    /// The number of bytes that wait at `now`.
    #[inline]
    pub fn queued_bytes(&mut self, now: Instant) -> u64 {
        while let Some((start, bytes)) = self.waiting.front().copied()
            && start <= now
        {
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(bytes);
        }
        self.waiting_bytes
    }

    /// When the last packet accepted so far will have left the serialiser.
    pub const fn free_at(&self) -> Instant {
        Instant::from_nanos(self.serialiser.free_at)
    }

    /// The counters. They include a packet's whole wait and transmission as soon as it is handed
    /// to the link.
    pub const fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// The counters without waits and transmissions after `now`, which must not be earlier than
    /// the last packet was handed to the link.
    pub fn counts_until(&self, now: Instant) -> LinkCounts {
        let ahead = self
            .waiting
            .iter()
            .map(|(start, bytes)| u128::from(*bytes) * start.saturating_since(now).as_nanos());
        let mut counts = self.counts;
        counts.queue_byte_ns -= ahead.sum::<u128>();
        // The serialiser works without pause until then, so all of the time ahead is busy time. In an
        // outage it pauses: then this is a lower bound.
        let ahead = self.serialiser.free_at.saturating_sub(now.as_nanos());
        counts.busy_ns = counts.busy_ns.saturating_sub(ahead);
        counts
    }
}
