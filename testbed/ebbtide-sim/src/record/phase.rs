//! Measurements of the phases of a run.

use crate::histogram::SparseHistogram;
use serde::{Deserialize, Serialize};

/// The exchanges that were asked for in one phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseRecord {
    /// The name of the phase.
    pub name: String,
    /// When it began, ns.
    pub from_ns: u64,
    /// When the last of its exchanges ended, ns.
    pub ended_ns: u64,
    /// Exchanges asked for.
    pub asked: u64,
    /// Exchanges that got their response.
    pub completed: u64,
    /// Exchanges that failed, or were not accepted by a full queue.
    pub failed: u64,
    /// Exchanges that were answered within the deadline, or at all if there is none.
    pub in_time: u64,
    /// Their transmissions; probes and acknowledgements do not count.
    pub transmissions: u64,
    /// Transmissions after the one that was answered.
    pub unnecessary: u64,
    /// Exchanges that took 0, 1, 2, ... retransmissions.
    pub by_retransmissions: Vec<u64>,
    /// Round trips of the answered transmissions, µs.
    pub rtt: SparseHistogram,
    /// How long exchanges took, from the request to the first response, µs.
    pub durations: SparseHistogram,
    /// The same to 0.1 %, by which controls are compared.
    pub after: SparseHistogram,
}
