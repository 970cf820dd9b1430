//! `[workload.mesh]`: the keys of the workloads of low-power networks.

use super::units::{Rate, Time};
use crate::keys::{FROM_A_MILLISECOND, keys};
use serde::{Deserialize, Serialize};

keys! {
    /// The settings of the workloads of low-power networks; each workload uses some of them.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub(super) struct MeshWorkload {
        /// The duration; `baseline` lasts until it is done.
        pub duration: Time where FROM_A_MILLISECOND,
        /// `burst`: the number of continuous clients.
        pub steady_clients: u32,
        /// `burst`: the number of additional clients, with `workload.exchanges` requests each.
        pub burst_clients: u32,
        /// `burst`: the time at which they start.
        pub burst_at: Time,
        /// `monitoring`: the payload rate of all sources together.
        pub load: Rate,
        /// `monitoring`: bytes of a message.
        pub message: u32 where 1..=1_000_000 => "bytes",
        /// `monitoring` and `events`: bytes of a message in one exchange (block-wise).
        pub fragment: u32,
        /// `events`: bytes of a message about an event.
        pub event_message: u32 where 1..=1_000_000 => "bytes",
        /// `events`: mean time between events.
        pub event_interval: Time where FROM_A_MILLISECOND,
        /// `events`: the maximum deviation of an interval from `event_interval`, as a share of it;
        /// deviations are uniformly distributed. If omitted, events are a Poisson process.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub event_spread: Option<f64> where 0.0..=1.0,
        /// `events`: the time between background messages of a node.
        pub background: Time where FROM_A_MILLISECOND,
    }
}

impl Default for MeshWorkload {
    fn default() -> Self {
        Self {
            duration: Time(900_000_000_000),
            steady_clients: 4,
            burst_clients: 25,
            burst_at: Time(450_000_000_000),
            load: Rate(1000),
            message: 96,
            fragment: 32,
            event_message: 192,
            event_interval: Time(600_000_000_000),
            event_spread: None,
            background: Time(60_000_000_000),
        }
    }
}
