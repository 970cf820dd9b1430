//! The packets of a link in one direction.

use crate::net::LinkCounts;
use serde::{Deserialize, Serialize};

/// One direction's packets.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionCounts {
    /// Packets handed to the link.
    pub sent: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Packets that found the buffer full.
    pub dropped_queue: u64,
    /// Packets lost after the queue.
    pub lost_link: u64,
    /// Packets that the queue discipline marked (ECN).
    #[serde(default, skip_serializing_if = "crate::record::is_zero")]
    pub marked: u64,
    /// Bytes that passed the serialiser.
    pub bytes: u64,
    /// Time that the serialiser worked, ns.
    pub busy_ns: u64,
}

impl DirectionCounts {
    /// The same packets, so many of which did not arrive after all.
    pub(crate) const fn without(self, missed: u64) -> Self {
        Self { delivered: self.delivered - missed, lost_link: self.lost_link + missed, ..self }
    }
}

impl From<LinkCounts> for DirectionCounts {
    fn from(counts: LinkCounts) -> Self {
        Self {
            sent: counts.sent,
            delivered: counts.delivered,
            dropped_queue: counts.dropped_queue,
            lost_link: counts.lost_link,
            marked: counts.marked,
            bytes: counts.bytes_serialised,
            busy_ns: counts.busy_ns,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}
