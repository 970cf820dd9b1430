//! Measurements of a Wi-Fi cell, in addition to those of every client.

use crate::medium::FrameCounts;
use serde::{Deserialize, Serialize};

/// A station.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StationRecord {
    /// Counts of its frames and of their outcomes.
    pub frames: FrameCounts,
    /// Packets that it did not take because its queue was full.
    pub overflows: u64,
    /// The most packets that waited in it.
    pub peak_queue: u32,
}

/// A replication with a Wi-Fi cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WifiRecord {
    /// The access point, then every client in order.
    pub stations: Vec<StationRecord>,
    /// How long the access point heard something, itself included, ns.
    pub busy_ns: u64,
}

impl WifiRecord {
    /// All stations together; the largest of their queues.
    pub fn total(&self) -> StationRecord {
        let mut total = StationRecord::default();
        for station in &self.stations {
            total.frames += station.frames;
            total.overflows += station.overflows;
            total.peak_queue = total.peak_queue.max(station.peak_queue);
        }
        total
    }
}
