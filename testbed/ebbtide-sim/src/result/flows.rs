//! Measurements of senders of many messages.

use crate::stats::Summary;
use serde::{Deserialize, Serialize};

/// The flows of a cell. Pairs are means over replications and half-widths of their 95 % confidence
/// intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowCell {
    /// Each client's flow, means over replications.
    pub flows: Vec<FlowFigures>,
    /// First copies that arrived, of all clients.
    pub delivered: (f64, f64),
    /// Jain's index of the packets that each flow delivered while all of them were active; of streams
    /// from `fair_from_s` on.
    pub jain: (f64, f64),
    /// From when on streams are compared, s.
    pub fair_from_s: f64,
    /// Share of the transmissions that did not arrive.
    pub loss: (f64, f64),
    /// Transmissions of a message beyond its first.
    pub retransmissions: (f64, f64),
    /// First copies, at their length on the wire, per second of the flows' lifetimes, bit/s.
    pub throughput_bps: (f64, f64),
    /// From the first transmission of a message to its first arrival, s: mean, and its half-width.
    pub delay_s: (f64, f64),
    /// The distribution of these delays, s.
    pub delay: Summary,
    /// How long messages waited to leave, s.
    pub wait: Summary,
}

/// One client's flow, means over replications.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// The client.
    pub client: u32,
    /// Its control.
    pub cc: String,
    /// When it began, s.
    pub start_s: f64,
    /// When it was complete or the run ended, s.
    pub end_s: f64,
    /// Messages that the application offered.
    pub offered: f64,
    /// Messages that a full queue refused.
    pub refused: f64,
    /// Messages that left.
    pub sent: f64,
    /// First copies that arrived.
    pub delivered: f64,
    /// First copies that arrived after one of a later message.
    pub reordered: f64,
    /// Retransmissions.
    pub retransmissions: f64,
    /// Retransmissions after a copy that was answered.
    pub unnecessary: f64,
    /// Probes of congestion control.
    pub probes: f64,
    /// Messages given up.
    pub given_up: f64,
    /// Share of the transmissions that did not arrive.
    pub loss: f64,
    /// First copies, at their length on the wire, per second of its lifetime, bit/s.
    pub throughput_bps: f64,
    /// Mean delay from the first transmission to the first arrival, s.
    pub delay_s: f64,
}
