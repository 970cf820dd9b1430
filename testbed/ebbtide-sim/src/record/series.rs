//! The course of a replication over time.

use serde::{Deserialize, Serialize};

/// The course of one replication over time. Points are (seconds, value), in time order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Which replication, counted as `replay --rep` counts.
    pub replication: u32,
    /// Bytes waiting in the queue towards the clients.
    pub queue_down: Vec<(f64, f64)>,
    /// Bytes waiting in the queue towards the server.
    pub queue_up: Vec<(f64, f64)>,
    /// Each timeout armed: (when, seconds until it would expire).
    pub timeouts: Vec<(f64, f64)>,
    /// Useful payload delivered, bit/s.
    pub throughput: Vec<(f64, f64)>,
    /// The flows of senders of many messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowSeries>,
}

/// One client's flow over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSeries {
    /// The client.
    pub client: u32,
    /// When its first message left, s.
    pub begins: Option<f64>,
    /// The rate that the control admits, messages/s, at (seconds, value); empty if it has none.
    pub rate: Vec<(f64, f64)>,
    /// First copies that arrived in each stretch of time, messages/s.
    pub arriving: Vec<(f64, f64)>,
    /// First copies that have arrived so far.
    pub delivered: Vec<(f64, f64)>,
}
