//! Measurements of the classes of a scenario, and of links other than the bottleneck.

use super::delivery::Delivery;
use super::direction::DirectionCounts;
use crate::histogram::SparseHistogram;
use serde::{Deserialize, Serialize};

/// The measurements of one class that are not those of single clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassRecord {
    /// The name of the class.
    pub name: String,
    /// The number of its first client.
    pub first: u32,
    /// The number of its clients.
    pub clients: u32,
    /// Until its last client was done, ns.
    pub done_ns: u64,
    /// Exchanges that took 0, 1, 2, ... retransmissions.
    pub by_retransmissions: Vec<u64>,
    /// Round trips of the answered transmissions.
    pub rtt: SparseHistogram,
    /// How long exchanges took, from the request to the first response.
    pub durations: SparseHistogram,
    /// The network cost of its clients, and the times until their exchanges were answered.
    pub delivery: Delivery,
    /// The packets of its devices' own links, up and down; `None` if they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<(DirectionCounts, DirectionCounts)>,
}

/// UDP traffic of others on a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossRecord {
    /// Its name.
    pub name: String,
    /// Whether its link is the bottleneck.
    #[serde(default)]
    pub is_at_bottleneck: bool,
    /// Packets handed to the link.
    pub sent: u64,
    /// Packets that passed it.
    pub delivered: u64,
    /// Packets that its queue dropped.
    pub dropped_queue: u64,
    /// Packets lost after the queue.
    pub lost_link: u64,
    /// Bytes handed to the link, headers included.
    pub bytes: u64,
}

/// The packets of a link other than the bottleneck.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// The name of the link.
    pub name: String,
    /// Towards the server.
    pub up: DirectionCounts,
    /// Towards the devices.
    pub down: DirectionCounts,
    /// For each class, the bytes of its packets that passed the link up and down.
    pub carried: Vec<(u64, u64)>,
}
