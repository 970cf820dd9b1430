//! The measurements of a sender of many messages.

use crate::histogram::SparseHistogram;
use serde::{Deserialize, Serialize};

/// Counts, delays and waiting times of one client's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// When it began, ns.
    pub start_ns: u64,
    /// When its last message was acknowledged (a transfer that is complete) or the run ended, ns.
    pub end_ns: u64,
    /// Messages that the application offered, one that was given up and offered again twice.
    pub offered: u64,
    /// Messages for which the queue had no room.
    pub refused: u64,
    /// Messages that left at least once.
    pub sent: u64,
    /// Transmissions, retransmissions included.
    pub transmissions: u64,
    /// Probes of congestion control.
    pub probes: u64,
    /// Copies that arrived at the server, in a stream also those that were under way at its end.
    pub arrived: u64,
    /// Messages of which a first copy arrived.
    pub delivered: u64,
    /// Those that arrived while all flows were active; of streams from `workload.flow.fair_from` on.
    pub delivered_together: u64,
    /// First copies that arrived after one of a later message.
    pub reordered: u64,
    /// Messages that were given up or refused by the server.
    pub given_up: u64,
    /// Sum of the delays of first copies, from the first transmission to the arrival, ns.
    pub delay_sum_ns: u64,
    /// Those delays, µs.
    pub delay: SparseHistogram,
    /// How long messages waited to leave, µs.
    pub wait: SparseHistogram,
}
