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
mod events;
mod flow;
mod limits;
mod link;
mod link_schedule;
mod load;
mod low_power;
mod mesh_workload;
mod nearest;
mod network;
mod path;
mod phase;
mod q_block;
mod queue;
mod reference;
mod request_log;
mod requirement_checks;
mod requirements;
mod schedule;
mod schema;
mod security;
mod settings;
mod table;
mod tcp;
mod tcp_buffers;
mod trace;
mod traffic;
mod validate;
mod wording;
mod workload;
mod workload_kinds;

pub use crate::keys::KeyRow;
pub use crate::medium::lora::Lora;
pub use crate::medium::low_power::{Addresses, Curve, DutyCycling, Lowpan, Mesh, Radio, Topology};
pub use crate::medium::nb_iot::NbIot;
pub use crate::medium::wifi::Wifi;
pub use crate::units;
pub use background::Background;
pub use builtin::{BUILTIN, Builtin};
pub use class::{Access, Class, ClassView};
pub use control::{Control, Transport};
pub use cross::Cross;
pub use curve::LoadCurve;
pub(crate) use curve::{Scale, place};
pub use drops::Drops;
pub use error::ScenarioError;
pub use events::{CellOutage, DeviceMove, PowerCut};
pub use flow::Each;
pub use link::LinkTable;
pub(crate) use load::SHORT_NAMES;
pub use load::{Source, load};
pub use nearest::did_you_mean;
pub use network::{LinkSpec, Network, NetworkKind};
pub use path::LinkPath;
pub use phase::PhaseTable;
pub use q_block::{Q_BLOCK, Q_BLOCK_ABOUT, Q_BLOCK_SOURCE, QBlock};
pub use queue::QueueSpec;
pub use reference::{reference, reference_page};
pub use request_log::RequestLog;
pub use requirements::{Required, RequiredBound, Requirement, Requirements};
pub use schedule::Change;
pub use schema::schema;
pub use security::{Return, Security, SecurityMode, Timers};
pub use settings::{
    Axis, Override, combinations, parse_controls, parse_count, parse_seed, parse_set,
};
pub use tcp::{TCP, TCP_ABOUT, TCP_SOURCE, Tcp, TcpCongestion};
pub use trace::Trace;
pub use workload::Workload;
pub use workload_kinds::{
    Activity, BackToBack, Clocked, Cloud, Events, FlowTraffic, Offers, Pattern, Reliability,
    Reporting, ReportsDue, Requester, WorkloadKind,
};

use crate::keys::{LONGEST, keys};
use crate::net::LossModel;
use crate::random::Probability;
use ebbtide_core::cc::Registry;
pub(crate) use limits::BOTTLENECK;
use limits::LONGEST_SPAN;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::{Time, TimeRange};

/// A network, a workload and the measurements on them. The types of the network and of the workload are other
/// ones while a file is being read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario<N = Network, W = Workload> {
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
    pub network: N,
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
    /// Power cuts of devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub power_cut: Vec<PowerCut>,
    /// Outages of cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cell_outage: Vec<CellOutage>,
    /// Devices that move to another cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_move: Vec<DeviceMove>,
    /// Stretches of the run that are judged apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phase: Vec<PhaseTable>,
    /// The host that responds.
    #[serde(default)]
    pub server: ServerHost,
    /// How messages are protected on the way.
    #[serde(default, skip_serializing_if = "Security::is_default")]
    pub security: Security,
    /// The activity of the clients.
    pub workload: W,
    /// The requirements by which controls are judged.
    #[serde(default, skip_serializing_if = "Requirements::is_none")]
    pub require: Requirements,
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

keys! {
    /// The hosts that send requests.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Clients {
        /// The number of clients. The workloads of low-power networks determine it; in other workloads on one, the
        /// default is a client on each mote.
        #[serde(default)]
        pub count: u32,
        /// The instant at which clients begin, such as that of a campaign beside reports; flows
        /// have `workload.flow.start`.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub start: Time where ..=LONGEST,
        /// Clients start at an instant drawn uniformly from this window; zero: all at the same time.
        #[serde(default)]
        pub start_window: Time where ..=LONGEST,
        /// The time that a client's host takes between receiving a response and acting on it, plus the
        /// time between a request and its departure. If a range is given, the time is drawn for each
        /// response.
        #[serde(default)]
        pub processing: TimeRange where ..=LONGEST_SPAN,
        /// The `[[link]]` at which they are; the bottleneck if it is left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub link: Option<String>,
        /// The own link of each client; none if it is left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub access: Option<Access>,
    }
}

keys! {
    /// The host that responds.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ServerHost {
        /// The time that the server's host takes from request to response. If a range is given, the
        /// time is drawn for each request.
        #[serde(default)]
        pub processing: TimeRange where ..=LONGEST_SPAN,
    }
}

keys! {
    /// CoAP's transmission parameters (RFC 7252 section 4.8) in this scenario.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Coap {
        /// ACK_TIMEOUT.
        pub ack_timeout: Time where Time(1_000_000)..=LONGEST_SPAN,
        /// ACK_RANDOM_FACTOR, 1 to 10.
        pub ack_random_factor: f64 where 1.0..=10.0,
        /// MAX_RETRANSMIT, 0 to 254.
        pub max_retransmit: u8 where 0..=254,
        /// NSTART: the number of requests that a client keeps open.
        pub nstart: u16 where 1..=65_535,
        /// Bytes of random token in requests, 0 to 7; controls that mark tokens add one.
        pub token_length: u8 where 0..=7,
        /// Whether messages are given up no sooner than after MAX_TRANSMIT_SPAN, as at the library's
        /// endpoints. Off if controls are compared as they were published.
        pub patience: bool,
        /// Messages in each block of the square wave of the option PM, by which clients and server measure losses
        /// (draft-ietf-core-coap-pm). 0 stands for endpoints without the option.
        pub pm_block: u16,
    }
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

keys! {
    /// How often, and from which seed.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Run {
        /// Replications; `--reps` overrides it.
        pub reps: u32 where 1..=100_000,
        /// Seed; `--seed` overrides it.
        pub seed: u64,
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
            pm_block: 0,
        }
    }
}

impl Default for Run {
    fn default() -> Self {
        Self { reps: 20, seed: 1 }
    }
}

impl Scenario {
    /// The average of the loss model that `network.errors` names, 0 to 1.
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
    pub fn client_count(&self) -> u32 {
        if !self.class.is_empty() {
            return self.class.iter().map(|class| class.count).fold(0, u32::saturating_add);
        }
        let Some(mesh) = self.network.mesh() else { return self.clients.count };
        let others = mesh.topology.nodes().saturating_sub(1);
        match self.workload.activity() {
            Activity::Cloud(Cloud::Baseline) => 1,
            Activity::Cloud(Cloud::Burst { steady, more, .. }) => steady.saturating_add(*more),
            Activity::Cloud(Cloud::ManyToMany { .. }) | Activity::Reporting(_) => others,
            _ if self.clients.count > 0 => self.clients.count,
            _ => others,
        }
    }

    /// The loss model that `network.errors` names; `LossModel::None` if it names none.
    pub fn loss_model(&self) -> LossModel {
        match self.errors.get(&self.network.errors) {
            None => LossModel::None,
            Some(errors) => errors.model(),
        }
    }
}

impl Errors {
    /// The model at work in both directions.
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
