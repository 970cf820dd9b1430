//! The figures of a low-power network, in addition to those of every client.

use crate::histogram::SparseHistogram;
use crate::medium::FrameCounts;
use serde::{Deserialize, Serialize};

/// Why datagrams, or the messages in them, were lost.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Causes {
    /// A forwarding queue was full.
    pub queue: u64,
    /// A frame was given up after its retries.
    pub retries: u64,
    /// A frame was given up because the channel was busy.
    pub access: u64,
    /// There was no room to put the fragments together.
    pub reassembly: u64,
    /// The host that was asked was busy and had no room for another request.
    pub host: u64,
    /// The root had no route to the destination. Networks whose root has a route to every mote leave
    /// it out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub route: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The messages of one source. `offered` = `delivered` + `busy` + `given_up` + the one under way.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// Messages that were due.
    pub offered: u64,
    /// Messages all of whose exchanges were answered.
    pub delivered: u64,
    /// Messages that were due while the last was in transfer.
    pub busy: u64,
    /// Messages with an exchange that was given up.
    pub given_up: u64,
    /// Messages among those offered that report an event.
    pub events: u64,
    /// Messages about events that were lost: busy or given up.
    pub events_lost: u64,
    /// Messages given up whose last datagram was lost to a full queue.
    pub given_up_queue: u64,
    /// Messages given up whose last datagram was lost on the air, after all retries.
    pub given_up_retries: u64,
    /// Retransmissions of CoAP that were sent although the original had arrived and its answer
    /// arrived too.
    pub early: u64,
}

/// One node.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Where it is, m.
    pub x: f64,
    /// Where it is, m.
    pub y: f64,
    /// Its parent in the tree; itself for the root.
    pub parent: u32,
    /// Hops to the root.
    pub hops: u32,
    /// The fates of its frames.
    pub frames: FrameCounts,
    /// Datagrams that it did not take because its queue was full.
    pub overflows: u64,
    /// The most frames in its queue.
    pub peak_queue: u32,
    /// The energy that its radio consumed, in mJ.
    pub energy_mj: f64,
}

/// A replication in a low-power network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshRecord {
    /// Every node, in order.
    pub nodes: Vec<NodeRecord>,
    /// Every client, in order; all zero in workloads without messages.
    pub messages: Vec<Messages>,
    /// Which node is each client's, if it is on one; else the node it asks.
    pub client_nodes: Vec<u32>,
    /// Datagrams that set out in the network.
    pub datagrams: u64,
    /// Datagrams that arrived in it, or left it at the border.
    pub arrived: u64,
    /// Datagrams that were lost in it.
    pub lost: Causes,
    /// Timeouts armed for originals, µs.
    pub first_timeouts: SparseHistogram,
    /// Round trips of exchanges without retransmission, from the original, µs.
    pub strong_rtt: SparseHistogram,
    /// Round trips of exchanges with retransmissions, from the original, µs.
    pub weak_rtt: SparseHistogram,
    /// Exchanges completed in each of 200 equal parts of the time; empty for workloads that end when
    /// they are done.
    pub completions: Vec<u64>,
    /// How long was measured, ns.
    pub measured_ns: u64,
}
