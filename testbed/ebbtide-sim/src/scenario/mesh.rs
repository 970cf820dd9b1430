//! Low-power networks in scenario files: `[network.mesh]` and `[workload.mesh]`.

use super::units::{Rate, Time};
use super::{Activity, Cloud, Due, Scenario};
use crate::keys::{ABOVE_ZERO, FROM_A_MILLISECOND, MINUTE, keys, names, texts};
use crate::lowpan::Addresses;
use crate::medium::ieee802154::Csma;
use serde::{Deserialize, Serialize};

keys! {
    /// A multi-hop IEEE 802.15.4 network with 6LoWPAN. `network.up` and `network.down` are then the
    /// wired side of its border router, and `network.errors` is the loss on each of its radio paths.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Mesh {
        /// The places of the nodes.
        pub topology: Topology,
        /// The range of the radios.
        pub radio: Radio,
        /// Parameters of CSMA/CA; those of the standard if omitted.
        #[serde(default)]
        pub csma: Csma,
        /// Radio duty cycling; always on if omitted.
        #[serde(default)]
        pub duty_cycle: DutyCycling,
        /// Headers, fragments and buffers.
        #[serde(default)]
        pub lowpan: Lowpan,
        /// Requests that wait in a mote while it processes another one; further requests are lost.
        #[serde(default = "one")]
        pub backlog: u32 where 0..=10_000 => "requests",
        /// The number of motes to which the root has a route, drawn in each replication; the root drops
        /// datagrams for the others. If omitted, it has a route to every mote. The clients of `baseline` and
        /// the steady clients of `burst` ask motes with a route.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub routes: Option<u32>,
    }
}

/// The places of the nodes, in metres.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Topology {
    /// `n` rows of `n` nodes; the root of the routes is in the middle.
    Grid {
        /// Nodes in a row.
        n: u32,
        /// Distance between neighbours, m.
        spacing: f64,
    },
    /// The border router, which is node 0, and motes anywhere.
    Places {
        /// The border router.
        root: [f64; 2],
        /// Nodes 1, 2, ...
        motes: Vec<[f64; 2]>,
    },
}

keys! {
    /// The range of a radio, m.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Radio {
        /// Up to this distance every frame is received unless something interferes.
        pub reliable: f64 where ABOVE_ZERO => "m",
        /// From this distance on no frame is received.
        pub reach: f64 where ABOVE_ZERO => "m",
        /// Reception between the two.
        #[serde(default)]
        pub curve: Curve,
        /// Up to this distance transmissions make the channel busy and interfere with others.
        pub interference: f64 where ABOVE_ZERO => "m",
        /// The ratio of distances, interferer to sender, from which on an interferer is harmless; if
        /// omitted, every interferer within `interference` is harmful.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub capture: Option<f64> where 1.0..=1000.0,
    }
}

/// How reception decreases with distance.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Curve {
    /// In proportion to the distance.
    #[default]
    Linear,
    /// In proportion to its square, as Cooja's unit disk does.
    Quadratic,
}

/// Radio duty cycling.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DutyCycling {
    /// The radio is always on.
    #[default]
    Off,
    /// Wake-ups 8 times a second, strobes until acknowledged (ContikiMAC).
    Contikimac,
    /// The same, with senders that remember for good exactly when their neighbours wake up.
    ContikimacPhaseLock,
    /// The same, with the phase lock of Contiki 2.6 to 3.0: senders remember when a strobe was
    /// acknowledged, strobe 17 ms around that time, and forget it after misses.
    Contiki,
}

keys! {
    /// 6LoWPAN (RFC 4944, RFC 6282) and the buffers of a node.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Lowpan {
        /// Link-layer addresses of 8 bytes (`"long"`) or 2 (`"short"`).
        pub addresses: Addresses,
        /// Frames that a node can hold, including the one that it is sending.
        pub queue: u32 where 1..=10_000 => "frames",
        /// Neighbours for which a node can hold frames at the same time; any number if omitted.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub neighbours: Option<u32> where 1..=10_000,
        /// Fragmented datagrams that a node can reassemble at the same time.
        pub reassemblies: u32 where 1..=1000,
        /// Time after which an incomplete datagram is dropped.
        pub reassembly_timeout: Time where Time(1_000_000)..=MINUTE,
    }
}

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

const fn one() -> u32 {
    1
}

impl Default for Lowpan {
    fn default() -> Self {
        Self {
            addresses: Addresses::Long,
            queue: 8,
            neighbours: None,
            reassemblies: 2,
            reassembly_timeout: Time(8_000_000_000),
        }
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

impl Scenario {
    /// Whether the clients are in the Internet and ask the motes of a low-power network.
    pub(crate) fn is_cloud(&self) -> bool {
        self.class.is_empty() && matches!(self.workload.activity(), Activity::Cloud(_))
    }

    /// Whether a client in the Internet makes requests until the time is over.
    pub(crate) fn is_steady(&self, client: u32) -> bool {
        match self.workload.activity() {
            Activity::Cloud(Cloud::ManyToMany { .. }) => true,
            Activity::Cloud(Cloud::Burst { steady, .. }) => client < *steady,
            _ => false,
        }
    }

    /// How many motes a client of `baseline` asks in turn: those with a route. 1 in other workloads.
    pub(crate) fn servers_in_turn(&self) -> u32 {
        match (self.workload.activity(), self.network.mesh()) {
            (Activity::Cloud(Cloud::Baseline), Some(mesh)) => {
                let motes = mesh.topology.nodes().saturating_sub(1);
                mesh.routes.map_or(motes, |routes| routes.min(motes))
            }
            _ => 1,
        }
    }

    /// The time between two messages of a node, ns, if its messages go to the sink.
    pub(crate) fn message_period(&self) -> Option<u64> {
        let Activity::Reporting(reporting) = self.workload.activity() else { return None };
        Some(match &reporting.due {
            Due::Events { background, .. } => background.0,
            Due::Load(load) => {
                let bits = u64::from(reporting.message) * 8 * u64::from(self.clients.count);
                let period = u128::from(bits) * 1_000_000_000 / u128::from(load.0.max(1));
                // Checked to be below a century.
                u64::try_from(period).unwrap_or(u64::MAX)
            }
        })
    }
}

impl Topology {
    /// The places of all nodes.
    #[must_use]
    pub fn places(&self) -> Vec<[f64; 2]> {
        match self {
            Self::Grid { n, spacing } => {
                let along = |index: u32| f64::from(index) * spacing;
                (0..n * n).map(|node| [along(node % n), along(node / n)]).collect()
            }
            Self::Places { root, motes } => {
                std::iter::once(*root).chain(motes.iter().copied()).collect()
            }
        }
    }

    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        match self {
            Self::Grid { n, .. } => n * n,
            Self::Places { motes, .. } => u32::try_from(motes.len() + 1).unwrap_or(u32::MAX),
        }
    }

    /// The root of the routes.
    #[must_use]
    pub const fn root(&self) -> u32 {
        match *self {
            Self::Grid { n, .. } => n / 2 * n + n / 2,
            Self::Places { .. } => 0,
        }
    }
}

impl Radio {
    /// The share of frames that are received at a distance (m) without interference.
    #[must_use]
    pub fn reception(&self, distance: f64) -> f64 {
        if distance <= self.reliable {
            return 1.0;
        }
        if distance >= self.reach {
            return 0.0;
        }
        match self.curve {
            Curve::Linear => (self.reach - distance) / (self.reach - self.reliable),
            Curve::Quadratic => {
                let squares = |far: f64| far * far - self.reliable * self.reliable;
                1.0 - squares(distance) / squares(self.reach)
            }
        }
    }
}

texts! {
    Addresses => names::<Self>(),
    Curve => names::<Self>(),
    DutyCycling => names::<Self>(),
    Topology => "table with a kind".to_owned(),
}
