//! The settings of a low-power network, which are also the keys of `[network.mesh]`.

use super::Csma;
use super::lowpan::Addresses;
use crate::keys::{ABOVE_ZERO, Check, Fault, MINUTE, keys, names, require, texts};
use crate::units::Time;
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

/// The maximum number of nodes, since routes and paths are kept for every pair.
const MAX_NODES: u32 = 1000;

impl Mesh {
    /// Checks what parses but is impossible in any scenario.
    pub(crate) fn check(&self) -> Check {
        topology(self)?;
        radio(self)?;
        buffers(self)
    }
}

fn topology(mesh: &Mesh) -> Check {
    match &mesh.topology {
        Topology::Grid { n, spacing } => {
            let key = "network.mesh.topology.n";
            require(*n > 0, key, "is 0: the grid needs at least 2 nodes in a row")?;
            require((2..=31).contains(n), key, "must be from 2 to 31 nodes in a row")?;
            let spaced = spacing.is_finite() && *spacing > 0.0;
            require(spaced, "network.mesh.topology.spacing", "must be above 0 m")
        }
        Topology::Places { motes, root } => {
            let key = "network.mesh.topology.motes";
            require(!motes.is_empty(), key, "is empty: at least one mote is needed to answer")?;
            require(motes.len() < MAX_NODES as usize, key, "must be at most 999 nodes")?;
            let bad = motes.iter().position(|at| at.iter().any(|x| !x.is_finite()));
            require(
                root.iter().all(|x| x.is_finite()),
                "network.mesh.topology.root",
                "must be two numbers",
            )?;
            match bad {
                None => Ok(()),
                Some(node) => Err(Fault::new(key, format!("node {} has no place", node + 1))),
            }
        }
    }
}

fn radio(mesh: &Mesh) -> Check {
    let r = &mesh.radio;
    let key = |key: &str| format!("network.mesh.radio.{key}");
    require(r.reach > r.reliable, &key("reach"), "must be above network.mesh.radio.reliable")?;
    require(
        r.interference >= r.reach,
        &key("interference"),
        "must be at least network.mesh.radio.reach: what is received is heard",
    )?;
    let c = &mesh.csma;
    require(
        c.min_be <= c.max_be,
        "network.mesh.csma.min_be",
        "must be at most max_be, and that at most 8",
    )
}

fn buffers(mesh: &Mesh) -> Check {
    let motes = mesh.topology.nodes() - 1;
    require(
        mesh.routes.is_none_or(|routes| (1..=motes).contains(&routes)),
        "network.mesh.routes",
        &format!("must be from 1 to {motes}, the number of motes; without it, all have a route"),
    )
}

impl Topology {
    /// The places of all nodes.
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
    pub fn nodes(&self) -> u32 {
        match self {
            Self::Grid { n, .. } => n * n,
            Self::Places { motes, .. } => u32::try_from(motes.len() + 1).unwrap_or(u32::MAX),
        }
    }

    /// The root of the routes.
    pub const fn root(&self) -> u32 {
        match *self {
            Self::Grid { n, .. } => n / 2 * n + n / 2,
            Self::Places { .. } => 0,
        }
    }
}

impl Radio {
    /// The share of frames that are received at a distance (m) without interference.
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
