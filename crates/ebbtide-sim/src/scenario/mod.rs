//! Scenarios: one network and one workload each, in a TOML file.
//!
//! The built-in scenarios are such files too (`scenarios/` of the repository); users copy and
//! change them. Each key is documented at the field with its name.

mod background;
mod builtin;
mod class;
mod control;
mod cross;
mod curve;
mod drops;
mod error;
mod flow;
mod limits;
mod link;
mod load;
mod lora;
mod mesh;
pub(crate) mod mesh_topology;
mod mesh_validate;
mod nearest;
mod path;
mod q_block;
mod queue;
mod schedule;
mod security;
mod settings;
mod tcp;
mod trace;
mod traffic;
mod validate;
mod wifi;
mod wording;

pub use crate::lowpan::Addresses;
pub use crate::medium::lora::Lora;
pub use crate::units;
pub use background::Background;
pub use builtin::{BUILTIN, Builtin};
pub use class::{Access, Class, ClassView, ClassWorkload};
pub use control::{Control, Transport};
pub use cross::{Cross, CrossDirection};
pub use curve::LoadCurve;
pub(crate) use curve::place;
pub use drops::Drops;
pub use error::ScenarioError;
pub use flow::{Each, FlowWorkload};
pub use link::LinkTable;
pub use load::{Source, load};
pub use mesh::{Curve, DutyCycling, Lowpan, Mesh, MeshWorkload, Radio, Topology};
pub use nearest::did_you_mean;
pub use path::Path;
pub use q_block::{Q_BLOCK, Q_BLOCK_ABOUT, Q_BLOCK_SOURCE, QBlock};
pub use queue::QueueSpec;
pub use schedule::Change;
pub use security::{Return, Security, SecurityMode, Timers};
pub use settings::{Axis, Override, combinations, parse_set};
pub use tcp::{TCP, TCP_ABOUT, TCP_SOURCE, Tcp, TcpCongestion};
pub use trace::Trace;
pub use traffic::{Reliability, Requester};
pub use wifi::Wifi;

use crate::net::LossModel;
use crate::random::Probability;
use ebbtide_core::cc::Registry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::{Buffer, Rate, Time, TimeRange};

/// A network, a workload and the measurements on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The name, as on the command line.
    pub name: String,
    /// A headline.
    pub title: String,
    /// The network and the purpose, in a few sentences.
    #[serde(default)]
    pub description: String,
    /// The origin of its numbers.
    #[serde(default)]
    pub source: String,
    /// Short names for `--set`: each stands for one or more dotted keys of this file.
    #[serde(default)]
    pub keys: BTreeMap<String, Vec<String>>,
    /// The path between clients and server.
    pub network: Network,
    /// The hosts that send requests.
    #[serde(default)]
    pub clients: Clients,
    /// The clients' classes, if they are of several kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub class: Vec<Class>,
    /// The links between the clients and the bottleneck.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkTable>,
    /// UDP traffic of others on single links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<Cross>,
    /// The host that responds.
    #[serde(default)]
    pub server: Server,
    /// How messages are protected on the way.
    #[serde(default, skip_serializing_if = "Security::is_default")]
    pub security: Security,
    /// The activity of the clients.
    pub workload: Workload,
    /// CoAP's transmission parameters.
    #[serde(default)]
    pub coap: Coap,
    /// Settings of congestion controls in this scenario: `[control.cocoa]`, `ageing = "off"`. The
    /// keys are those of `--cc NAME:KEY=VALUE`, which override them.
    #[serde(default)]
    pub control: BTreeMap<String, BTreeMap<String, String>>,
    /// Profiles of loss that `network.errors` can name; `none` always exists.
    #[serde(default)]
    pub errors: BTreeMap<String, Errors>,
    /// The number of replications, and the seed.
    #[serde(default)]
    pub run: Run,
    /// Additional congestion controls that `--cc` can name: those of the
    /// [`Source`](Source::with_controls).
    #[serde(skip)]
    pub custom: Registry,
}

/// Clients, a bottleneck link shared by all of them, and a server behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Bytes of network and transport headers per datagram: 28 for IPv4 and UDP, 48 for IPv6. Over
    /// TCP, whose header replaces UDP's, there are 12 more, and another 12 with a SYN.
    #[serde(default = "defaults::header")]
    pub header: u32,
    /// The largest packet in bytes, headers included; longer packets are an error and are not
    /// fragmented.
    #[serde(default = "defaults::mtu")]
    pub mtu: u32,
    /// The profile of link errors, in both directions, after the queue: `"none"` or one of
    /// `[errors.*]`.
    #[serde(default = "defaults::none")]
    pub errors: String,
    /// From the clients to the server.
    #[serde(default, skip_serializing_if = "LinkSpec::is_missing")]
    pub up: LinkSpec,
    /// From the server to the clients.
    #[serde(default, skip_serializing_if = "LinkSpec::is_missing")]
    pub down: LinkSpec,
    /// A low-power network; `up` and `down` are then the wired side of its border router, if it
    /// has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<Mesh>,
    /// A Wi-Fi cell that the clients' packets pass before `up` and after `down`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<Wifi>,
    /// A LoRaWAN cell that the clients' packets pass before `up` and after `down`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<Lora>,
    /// TCP flows that share the bottleneck with the clients.
    #[serde(default, skip_serializing_if = "Background::is_default")]
    pub background: Background,
}

/// One direction of the bottleneck. The default, without a rate, means that there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Rate of the link.
    pub rate: Rate,
    /// One-way propagation delay of the link, after the rate. If a range is given, the delay is
    /// drawn for each packet.
    pub delay: TimeRange,
    /// Bytes that may wait before the link, without the packet in transmission.
    pub buffer: Buffer,
    /// The queue discipline; without it, one queue with tail drop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// The changes of rate and delay over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<Change>,
    /// The time after which the schedule begins anew; 0: never.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub schedule_period: Time,
    /// A recorded trace instead of a schedule: a file in the folder of the scenario's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The delay between the link's router and the server, per packet.
    #[serde(default)]
    pub beyond: TimeRange,
    /// Packets that are dropped on purpose, in addition to `network.errors`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drops>,
}

/// The hosts that send requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// The number of clients. The workloads of low-power networks determine it; in other workloads on one, the
    /// default is a client on each mote.
    #[serde(default)]
    pub count: u32,
    /// Clients start at an instant drawn uniformly from this window; zero: all at the same time.
    #[serde(default)]
    pub start_window: Time,
    /// The time that a client's host takes between receiving a response and acting on it, plus the
    /// time between a request and its departure. If a range is given, the time is drawn for each
    /// response.
    #[serde(default)]
    pub processing: TimeRange,
    /// The `[[link]]` at which they are; the bottleneck if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The own link of each client; none if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
}

/// The host that responds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The time that the server's host takes from request to response. If a range is given, the
    /// time is drawn for each request.
    #[serde(default)]
    pub processing: TimeRange,
}

/// The activity of the clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The times at which requests are made.
    pub kind: WorkloadKind,
    /// Requests per client.
    #[serde(default = "defaults::exchanges")]
    pub exchanges: u32,
    /// `random`: the smallest and the largest number of requests in a batch, after which
    /// congestion control state is dropped.
    #[serde(default = "defaults::batch")]
    pub batch: [u32; 2],
    /// `periodic`: the time between two requests of a client. Its first request is at a random
    /// instant of the first period.
    #[serde(default = "defaults::period")]
    pub period: Time,
    /// `periodic`: how much later than its time a request is made at most, drawn uniformly.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub jitter: Time,
    /// `synchronised`: the first requests are spread over this time, so that each device has learnt the
    /// path by itself before all of them act together. Zero: they are not.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub spread: Time,
    /// `bursts`: requests at once.
    #[serde(default = "defaults::burst", skip_serializing_if = "traffic::is_burst")]
    pub burst: u32,
    /// Whether messages are acknowledged and retransmitted.
    #[serde(default, skip_serializing_if = "traffic::is_default")]
    pub reliability: Reliability,
    /// The side that sends the requests.
    #[serde(default, skip_serializing_if = "traffic::is_default")]
    pub requester: Requester,
    /// The time after a request within which a response is useful; 0: always.
    #[serde(default, skip_serializing_if = "Time::is_zero")]
    pub deadline: Time,
    /// The requested path, one segment.
    #[serde(default = "defaults::path")]
    pub path: String,
    /// Bytes of payload in a response.
    #[serde(default = "defaults::response_payload")]
    pub response_payload: u32,
    /// Bytes of payload in a request. A request with a payload is a PUT, otherwise a GET.
    #[serde(default)]
    pub request_payload: u32,
    /// The settings of the workloads of low-power networks.
    #[serde(default)]
    pub mesh: MeshWorkload,
    /// The settings of `stream` and `transfer`.
    #[serde(default, skip_serializing_if = "FlowWorkload::is_default")]
    pub flow: FlowWorkload,
}

/// The times at which requests are made.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkloadKind {
    /// Back to back.
    Continuous,
    /// Back to back, in batches. After each batch another device takes over, so congestion control
    /// state is dropped.
    Random,
    /// Like continuous, with two controls, each on half of the clients: `--cc NAME+NAME`.
    Mixed,
    /// One request every period, whatever the fate of the one before.
    Periodic,
    /// Requests at random: exponential times between those of a client, with the mean `period`.
    Poisson,
    /// Several requests at once, every period.
    Bursts,
    /// All clients at the same time, every period.
    Synchronised,
    /// A notification from the server to each client, all of which observe a resource (RFC 7641),
    /// every period.
    Notifications,
    /// A download of `exchanges` blocks of `response_payload` bytes (RFC 7959).
    Firmware,
    /// Messages to one receiver at a fixed interval, for a fixed time: `[workload.flow]`.
    Stream,
    /// Bytes to one receiver in as many messages as necessary, as fast as the control admits them.
    Transfer,
    /// Low-power networks: one client in the Internet sends requests to the motes in turn.
    Baseline,
    /// Low-power networks: a client in the Internet for each mote, back to back.
    #[serde(rename = "many-to-many")]
    ManyToMany,
    /// Low-power networks: some clients in the Internet all the time, many more at one instant.
    Burst,
    /// Low-power networks: every node sends messages to the sink, one every period.
    Monitoring,
    /// Low-power networks: all nodes send a message to the sink whenever an event occurs.
    Events,
}

impl WorkloadKind {
    /// Whether it is a workload of a low-power network.
    #[must_use]
    pub const fn is_mesh(self) -> bool {
        self.is_cloud() || matches!(self, Self::Monitoring | Self::Events)
    }

    /// Whether a client sends many messages, several of which may be under way.
    #[must_use]
    pub const fn is_flow(self) -> bool {
        matches!(self, Self::Stream | Self::Transfer)
    }

    /// Whether clients send at fixed times, so that a flow has no completion time.
    #[must_use]
    pub const fn keeps_time(self) -> bool {
        self.is_clocked() || matches!(self, Self::Stream)
    }

    /// Whether clients in the Internet send requests to the motes of a low-power network.
    #[must_use]
    pub const fn is_cloud(self) -> bool {
        matches!(self, Self::Baseline | Self::ManyToMany | Self::Burst)
    }
}

/// CoAP's transmission parameters (RFC 7252 section 4.8) in this scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Coap {
    /// ACK_TIMEOUT.
    pub ack_timeout: Time,
    /// ACK_RANDOM_FACTOR, 1 to 10.
    pub ack_random_factor: f64,
    /// MAX_RETRANSMIT, 0 to 254.
    pub max_retransmit: u8,
    /// NSTART: the number of requests that a client keeps open.
    pub nstart: u16,
    /// Bytes of random token in requests, 0 to 7; controls that mark tokens add one.
    pub token_length: u8,
    /// Whether messages are given up no sooner than after MAX_TRANSMIT_SPAN, as at the library's
    /// endpoints. Off if controls are compared as they were published.
    pub patience: bool,
}

/// A model of packet losses.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Errors {
    /// Each packet with the same probability.
    Independent {
        /// The share that is lost, 0 to 1.
        average: f64,
    },
    /// Two states that change from packet to packet.
    PerPacket {
        /// Loss in the good state, 0 to 1.
        good: f64,
        /// Loss in the bad state, 0 to 1.
        bad: f64,
        /// The share that is lost on average, between the two.
        average: f64,
        /// Mean stay in the bad state, packets, at least 1.
        mean_bad_packets: f64,
    },
    /// Two states that change with time.
    TimeDriven {
        /// Loss in the good state, 0 to 1.
        good: f64,
        /// Loss in the bad state, 0 to 1.
        bad: f64,
        /// The share of time-averaged loss, between the two.
        average: f64,
        /// Mean stay in the bad state.
        mean_bad: Time,
    },
}

/// How often, and from which seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Replications; `--reps` overrides it.
    pub reps: u32,
    /// Seed; `--seed` overrides it.
    pub seed: u64,
}

mod defaults {
    use super::units::Time;

    pub(super) const fn header() -> u32 {
        28
    }
    pub(super) const fn mtu() -> u32 {
        1280
    }
    pub(super) fn none() -> String {
        "none".into()
    }
    pub(super) const fn exchanges() -> u32 {
        50
    }
    pub(super) const fn batch() -> [u32; 2] {
        [1, 10]
    }
    pub(super) const fn period() -> Time {
        Time(60_000_000_000)
    }
    pub(super) const fn burst() -> u32 {
        super::traffic::BURST
    }
    pub(super) fn path() -> String {
        "value".into()
    }
    pub(super) const fn response_payload() -> u32 {
        60
    }
}

impl Default for Coap {
    fn default() -> Self {
        Self {
            ack_timeout: Time(2_000_000_000),
            ack_random_factor: 1.5,
            max_retransmit: 4,
            nstart: 1,
            token_length: 0,
            patience: true,
        }
    }
}

impl Default for Run {
    fn default() -> Self {
        Self { reps: 20, seed: 1 }
    }
}

impl LinkSpec {
    /// Whether the scenario has no such link.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        self.rate.0 == 0
    }
}

impl Scenario {
    /// The average of the loss model that `network.errors` names, 0 to 1.
    #[must_use]
    pub fn average_loss(&self) -> f64 {
        match self.errors.get(&self.network.errors) {
            None => 0.0,
            Some(
                Errors::Independent { average }
                | Errors::PerPacket { average, .. }
                | Errors::TimeDriven { average, .. },
            ) => *average,
        }
    }

    /// How many clients there are: in a low-power network the topology and the workload say so.
    #[must_use]
    pub fn client_count(&self) -> u32 {
        if !self.class.is_empty() {
            return self.class.iter().map(|class| class.count).fold(0, u32::saturating_add);
        }
        let Some(mesh) = &self.network.mesh else { return self.clients.count };
        let others = mesh.topology.nodes().saturating_sub(1);
        match self.workload.kind {
            WorkloadKind::Baseline => 1,
            WorkloadKind::Burst => {
                let w = &self.workload.mesh;
                w.steady_clients.saturating_add(w.burst_clients)
            }
            kind if !kind.is_mesh() && self.clients.count > 0 => self.clients.count,
            _ => others,
        }
    }

    /// The loss model that `network.errors` names; `LossModel::None` if it names none.
    #[must_use]
    pub fn loss_model(&self) -> LossModel {
        match self.errors.get(&self.network.errors) {
            None => LossModel::None,
            Some(errors) => errors.model(),
        }
    }
}

impl Errors {
    /// The model at work in both directions.
    #[must_use]
    pub fn model(&self) -> LossModel {
        match *self {
            Self::Independent { average } => LossModel::Independent(Probability::new(average)),
            Self::PerPacket { good, bad, average, mean_bad_packets } => {
                let share = (average - good) / (bad - good);
                let recover = 1.0 / mean_bad_packets;
                LossModel::PerPacket {
                    good: Probability::new(good),
                    bad: Probability::new(bad),
                    worsen: Probability::new(recover * share / (1.0 - share)),
                    recover: Probability::new(recover),
                }
            }
            Self::TimeDriven { good, bad, average, mean_bad } => {
                let share = (average - good) / (bad - good);
                // Rounded to a nanosecond; the cast saturates.
                let mean_good_ns = (mean_bad.0 as f64 * (1.0 - share) / share).round() as u64;
                LossModel::TimeDriven {
                    good: Probability::new(good),
                    bad: Probability::new(bad),
                    mean_good_ns,
                    mean_bad_ns: mean_bad.0,
                    bad_share: Probability::new(share),
                }
            }
        }
    }
}
