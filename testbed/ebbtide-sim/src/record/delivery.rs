//! Network cost of the clients of a replication, and the times until their exchanges were answered.

use crate::histogram::SparseHistogram;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Only the clients count, not TCP in the background.
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

impl AddAssign<&Self> for Delivery {
    /// Adds the counts; the times until exchanges were answered are left as they are.
    fn add_assign(&mut self, other: &Self) {
        self.transmissions += other.transmissions;
        self.replies += other.replies;
        self.bytes += other.bytes;
        self.carried_up += other.carried_up;
        self.carried_down += other.carried_down;
        self.gave_up_ns = match (self.gave_up_ns, other.gave_up_ns) {
            (Some((low, high)), Some((least, most))) => Some((low.min(least), high.max(most))),
            (one, other) => one.or(other),
        };
    }
}
