//! Network cost of the clients of a replication, and the times until their exchanges were answered.

use super::run_record::SparseHistogram;
use serde::{Deserialize, Serialize};

/// Of the clients alone: TCP in the background is not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Packets that the clients sent: requests, their repetitions, probes, acknowledgements.
    pub transmissions: u64,
    /// Packets that the server sent to them.
    pub replies: u64,
    /// Bytes of both on the wire, headers included; 0 where they are not counted (a mesh).
    pub bytes: u64,
    /// Bytes of theirs that passed the bottleneck towards the server.
    pub carried_up: u64,
    /// Bytes for them that passed the bottleneck towards the clients.
    pub carried_down: u64,
    /// The shortest and the longest time from an original to giving up, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gave_up_ns: Option<(u64, u64)>,
    /// How long after it was due each answered exchange got its response, µs to 0.1 %. Due is the
    /// client's first request where it asks back to back, else the request itself.
    pub after: SparseHistogram,
}
