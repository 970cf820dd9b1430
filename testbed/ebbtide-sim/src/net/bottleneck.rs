//! The link of one direction, with or without a queue discipline.

use super::queue::QueuedPacket;
use super::{Fate, Link, LinkCounts, ManagedLink, Schedule, TargetedLoss};
use ebbtide_core::time::Instant;
use rand_core::Rng;
use std::ops::Range;
use std::sync::Arc;

/// A link as a driver has it: a packet's fate is known at once or comes later.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a path has one, and most have the large variant")]
pub enum Bottleneck<R> {
    /// Tail drop: each fate is known when the packet is handed over.
    TailDrop(Link<R>),
    /// A queue discipline.
    Managed(Box<ManagedLink<R>>),
}

impl<R: Rng> Bottleneck<R> {
    /// Makes the rate and the delay follow a schedule. To be called before the first packet.
    pub fn follow(&mut self, schedule: Arc<Schedule>) {
        match self {
            Self::TailDrop(link) => link.follow(schedule),
            Self::Managed(link) => link.follow(schedule),
        }
    }

    /// Drops these packets on purpose, in addition to those of the loss model.
    pub fn add_losses(&mut self, targets: impl IntoIterator<Item = TargetedLoss>) {
        match self {
            Self::TailDrop(link) => link.add_losses(targets),
            Self::Managed(link) => link.add_losses(targets),
        }
    }

    /// Loses every packet whose last bit leaves the serialiser in one of these times, ns.
    pub fn add_outages(&mut self, outages: impl IntoIterator<Item = Range<u64>>) {
        match self {
            Self::TailDrop(link) => link.add_outages(outages),
            Self::Managed(link) => link.add_outages(outages),
        }
    }

    /// Hands a packet to the link. Its fate if that is known; if not, [`Self::poll_fate`] will tell it.
    #[inline]
    pub fn send(&mut self, now: Instant, packet: QueuedPacket) -> Option<Fate> {
        match self {
            Self::TailDrop(link) => Some(link.send_of(Some(packet.client), now, packet.bytes)),
            Self::Managed(link) => {
                link.send(now, packet);
                None
            }
        }
    }

    /// The next fate that was not known at once, with its packet.
    pub fn poll_fate(&mut self) -> Option<(QueuedPacket, Fate)> {
        match self {
            Self::TailDrop(_) => None,
            Self::Managed(link) => link.poll_fate(),
        }
    }

    /// When [`Self::handle_timeout`] is to be called; each instant is given once.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        match self {
            Self::TailDrop(_) => None,
            Self::Managed(link) => link.poll_timeout(),
        }
    }

    /// An instant that [`Self::poll_timeout`] gave has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Self::Managed(link) = self {
            link.handle_timeout(now);
        }
    }

    /// Bytes that wait at `now`.
    #[inline]
    pub fn queued_bytes(&mut self, now: Instant) -> u64 {
        match self {
            Self::TailDrop(link) => link.queued_bytes(now),
            Self::Managed(link) => link.queued_bytes(),
        }
    }

    /// When the last packet whose fate is known leaves the serialiser.
    pub const fn free_at(&self) -> Instant {
        match self {
            Self::TailDrop(link) => link.free_at(),
            Self::Managed(link) => link.free_at(),
        }
    }

    /// The counters. With tail drop they have a packet's whole wait and transmission when it is handed over.
    pub const fn counts(&self) -> LinkCounts {
        match self {
            Self::TailDrop(link) => link.counts(),
            Self::Managed(link) => link.counts(),
        }
    }

    /// The counters without what `now` is yet to see. Not earlier than the last packet was handed over.
    pub fn counts_until(&self, now: Instant) -> LinkCounts {
        match self {
            Self::TailDrop(link) => link.counts_until(now),
            Self::Managed(link) => link.counts(),
        }
    }
}
