//! `[network]`: the links between clients and server, and the radio before them.

use super::background::Background;
use super::drops::Drops;
use super::limits::LONGEST_SPAN;
use super::queue::QueueSpec;
use super::schedule::Change;
use super::trace::Trace;
use super::units::{Buffer, Rate, Time, TimeRange};
use crate::keys::{FASTEST, Fault, keys};
use crate::medium::lora::Lora;
use crate::medium::low_power::Mesh;
use crate::medium::nb_iot::NbIot;
use crate::medium::wifi::Wifi;
use serde::{Deserialize, Serialize};

/// Clients, a bottleneck link shared by all of them, and a server behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "NetworkKeys")]
pub struct Network {
    /// Bytes of network and transport headers per datagram. Over TCP, whose header replaces UDP's, there are 12
    /// more, and another 12 with a SYN.
    pub header: u32,
    /// The largest packet in bytes, headers included.
    pub mtu: u32,
    /// The profile of link errors, in both directions, after the queue: `"none"` or one of
    /// `[errors.*]`.
    pub errors: String,
    /// From the clients to the server.
    pub up: LinkSpec,
    /// From the server to the clients.
    pub down: LinkSpec,
    /// The radio between the clients and these links, if there is one.
    pub kind: NetworkKind,
    /// TCP flows that share the bottleneck with the clients.
    pub background: Background,
}

/// The radio between the clients and the bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub enum NetworkKind {
    /// No radio.
    Wired,
    /// A Wi-Fi cell that the clients' packets pass before `up` and after `down`.
    Wifi(Wifi),
    /// A LoRaWAN cell that the clients' packets pass before `up` and after `down`.
    Lora(Lora),
    /// A cell of NB-IoT that the clients' packets pass before `up` and after `down`.
    NbIot(NbIot),
    /// A low-power network; `up` and `down` are then the wired side of its border router, if it
    /// has one.
    Mesh(Mesh),
}

keys! {
    /// The keys of `[network]`, with a table for each kind of radio, of which there is one at most.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct NetworkKeys {
        /// Bytes of network and transport headers per datagram: 28 for IPv4 and UDP, 48 for IPv6. Over
        /// TCP, whose header replaces UDP's, there are 12 more, and another 12 with a SYN.
        #[serde(default = "defaults::header")]
        header: u32 where 0..=1000 => "bytes",
        /// The largest packet in bytes, headers included: above `header` plus 4, to 65535. Longer packets are an
        /// error and are not fragmented.
        #[serde(default = "defaults::mtu")]
        mtu: u32,
        /// The profile of link errors, in both directions, after the queue: `"none"` or one of
        /// `[errors.*]`.
        #[serde(default = "defaults::none")]
        errors: String,
        /// From the clients to the server.
        #[serde(default, skip_serializing_if = "LinkSpec::is_missing")]
        up: LinkSpec,
        /// From the server to the clients.
        #[serde(default, skip_serializing_if = "LinkSpec::is_missing")]
        down: LinkSpec,
        /// A low-power network; `up` and `down` are then the wired side of its border router, if it
        /// has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mesh: Option<Mesh>,
        /// A Wi-Fi cell that the clients' packets pass before `up` and after `down`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wifi: Option<Wifi>,
        /// A LoRaWAN cell that the clients' packets pass before `up` and after `down`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lora: Option<Lora>,
        /// A cell of NB-IoT that the clients' packets pass before `up` and after `down`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nb_iot: Option<NbIot>,
        /// TCP flows that share the bottleneck with the clients.
        #[serde(default, skip_serializing_if = "Background::is_default")]
        background: Background,
    }
}

keys! {
    /// One direction of the bottleneck. The default, without a rate, means that there is none.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct LinkSpec {
        /// Rate of the link; in a `schedule` also 0.
        pub rate: Rate where ..=FASTEST,
        /// One-way propagation delay of the link, after the rate. If a range is given, the delay is
        /// drawn for each packet.
        pub delay: TimeRange where ..=LONGEST_SPAN,
        /// Bytes that may wait before the link, without the packet in transmission: at least `network.header` plus
        /// 4, or `"infinite"`.
        pub buffer: Buffer,
        /// The queue discipline; without it, one queue with tail drop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub queue: Option<QueueSpec>,
        /// The changes of rate and delay over time.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub schedule: Vec<Change>,
        /// The time after which the schedule begins anew, above its last `at`; 0: never.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub schedule_period: Time,
        /// A recorded trace instead of a schedule: a file in the folder of the scenario's file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub trace: Option<Trace>,
        /// The delay between the link's router and the server, per packet.
        #[serde(default)]
        pub beyond: TimeRange where ..=LONGEST_SPAN,
        /// Packets that are dropped on purpose, in addition to `network.errors`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub drops: Vec<Drops>,
    }
}

mod defaults {
    pub(super) const fn header() -> u32 {
        28
    }
    pub(super) const fn mtu() -> u32 {
        1280
    }
    pub(super) fn none() -> String {
        "none".into()
    }
}

impl LinkSpec {
    /// Whether the scenario has no such link.
    pub const fn is_missing(&self) -> bool {
        self.rate.0 == 0
    }
}

impl NetworkKeys {
    /// Reads the table; fails if clients would have several radios.
    pub(super) fn read(self) -> Result<Network, Fault> {
        let kind = match (self.mesh, self.wifi, self.lora, self.nb_iot) {
            (None, None, None, None) => NetworkKind::Wired,
            (Some(mesh), None, None, None) => NetworkKind::Mesh(mesh),
            (None, Some(wifi), None, None) => NetworkKind::Wifi(wifi),
            (None, None, Some(lora), None) => NetworkKind::Lora(lora),
            (None, None, None, Some(cell)) => NetworkKind::NbIot(cell),
            (_, _, _, Some(_)) => {
                let message =
                    "cannot be combined with another radio of [network]: a client has one radio";
                return Err(Fault::new("network.nb_iot", message));
            }
            (Some(_), Some(_), _, None) => {
                let message = "cannot be combined with network.mesh: remove one of the two, a client has one radio";
                return Err(Fault::new("network.wifi", message));
            }
            (_, _, Some(_), None) => {
                let message =
                    "cannot be combined with network.mesh or network.wifi: a client has one radio";
                return Err(Fault::new("network.lora", message));
            }
        };
        let Self { header, mtu, errors, up, down, background, .. } = self;
        Ok(Network { header, mtu, errors, up, down, kind, background })
    }
}

impl From<Network> for NetworkKeys {
    fn from(network: Network) -> Self {
        let Network { header, mtu, errors, up, down, kind, background } = network;
        let (mesh, wifi, lora, nb_iot) = (None, None, None, None);
        let keys = Self { header, mtu, errors, up, down, mesh, wifi, lora, nb_iot, background };
        match kind {
            NetworkKind::Wired => keys,
            NetworkKind::Wifi(wifi) => Self { wifi: Some(wifi), ..keys },
            NetworkKind::Lora(lora) => Self { lora: Some(lora), ..keys },
            NetworkKind::NbIot(cell) => Self { nb_iot: Some(cell), ..keys },
            NetworkKind::Mesh(mesh) => Self { mesh: Some(mesh), ..keys },
        }
    }
}

impl Network {
    /// The low-power network, if it is one.
    pub const fn mesh(&self) -> Option<&Mesh> {
        match &self.kind {
            NetworkKind::Mesh(mesh) => Some(mesh),
            _ => None,
        }
    }

    /// The Wi-Fi cell, if there is one.
    pub const fn wifi(&self) -> Option<&Wifi> {
        match &self.kind {
            NetworkKind::Wifi(wifi) => Some(wifi),
            _ => None,
        }
    }

    /// The LoRaWAN cell, if there is one.
    pub const fn lora(&self) -> Option<&Lora> {
        match &self.kind {
            NetworkKind::Lora(lora) => Some(lora),
            _ => None,
        }
    }

    /// The cell of NB-IoT, if there is one.
    pub const fn nb_iot(&self) -> Option<&NbIot> {
        match &self.kind {
            NetworkKind::NbIot(cell) => Some(cell),
            _ => None,
        }
    }

    /// Whether the radio, and no link, is what limits the clients.
    pub(crate) const fn is_limited_by_radio(&self) -> bool {
        matches!(self.kind, NetworkKind::Lora(_) | NetworkKind::NbIot(_) | NetworkKind::Mesh(_))
    }

    /// Whether there is a radio: a mesh, a Wi-Fi cell, a LoRaWAN cell or one of NB-IoT.
    pub(crate) const fn has_radio(&self) -> bool {
        !matches!(self.kind, NetworkKind::Wired)
    }

    /// Fails unless TCP's packets fit: a segment must hold at least 48 bytes (the smallest MSS that it accepts) in
    /// addition to its options.
    pub(super) fn room_for_tcp(&self) -> Result<(), String> {
        // The 28 bytes of IPv4 and UDP become 40 of IPv4 and TCP.
        let least = self.header + 12 + 12 + 48;
        if self.mtu >= least {
            return Ok(());
        }
        let mtu = self.mtu;
        Err(format!("needs packets of {least} bytes at least, and network.mtu is {mtu}"))
    }
}
