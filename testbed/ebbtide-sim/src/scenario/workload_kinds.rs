//! The kinds of workload: their keys and what these mean.
//!
//! A file has one table for all kinds, so that `--set workload=KIND` finds the settings of each kind in place:
//! [`WorkloadKeys`]. The rest of the testbed sees the kind with the settings of its own: [`Activity`].

use super::flow::{Each, FlowWorkload};
use super::mesh_workload::MeshWorkload;
use super::request_log::RequestLog;
use super::units::{Buffer, Rate, Time};
use crate::keys::{FROM_A_MILLISECOND, LONGEST, keys, names, texts};
use serde::{Deserialize, Serialize};

keys! {
    /// The keys of `[workload]`, whichever of them its kind reads.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct WorkloadKeys => ClassWorkload {
        /// When requests are made: one of [the kinds](scenarios.md#workload).
        pub(super) kind: WorkloadKind,
        /// Requests per client.
        #[serde(default = "defaults::exchanges")]
        pub(super) exchanges: u32 where 1..=10_000_000,
        /// `random`: the smallest and the largest number of requests in a batch, after which
        /// another device takes over.
        #[serde(default = "defaults::batch")]
        pub(super) batch: [u32; 2] where 1..=u64::from(u32::MAX),
        /// Where requests go by the clock: the time between two requests of a client; `poisson`: its mean.
        #[serde(default = "defaults::period")]
        pub(super) period: Time where FROM_A_MILLISECOND,
        /// `periodic`: each request but the first is made up to this much later than its time, drawn uniformly; those
        /// that follow keep theirs.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub(super) jitter: Time where ..=LONGEST,
        /// `synchronised`: the first requests are spread over this time, at most `period`, so that each device learns
        /// the idle path before all act together, as after an outage.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub(super) spread: Time,
        /// `bursts`: requests at once.
        #[serde(default = "defaults::burst", skip_serializing_if = "is_burst")]
        pub(super) burst: u32 where 1..=64 => "requests",
        /// `log`: a file of lines `seconds,device`, one for each request, in the folder of the
        /// scenario's file; times count from the first request. A log of fewer devices than there
        /// are is used again by the others. The number of requests and the period are those of the
        /// log.
        #[serde(default, skip_serializing_if = "RequestLog::is_none")]
        pub(super) log: RequestLog,
        /// Non-confirmable requests are sent once; without a response they fail after the time that the endpoint
        /// waits for one. Not for transfers, firmware, low-power workloads and TCP; needs `coap.token_length` of 4
        /// or more.
        #[serde(default, skip_serializing_if = "is_default")]
        pub(super) reliability: Reliability,
        /// `server`: the server sends the requests, as commands to the devices, which respond at once, and the
        /// congestion control is the server's. Not for flows, firmware, low-power workloads, DTLS and TCP.
        #[serde(default, skip_serializing_if = "is_default")]
        pub(super) requester: Requester,
        /// The time after a request within which its response is useful; 0: always. Later responses are
        /// [counted](verdict.md).
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub(super) deadline: Time where ..=LONGEST,
        /// The requested path, one segment.
        #[serde(default = "defaults::path")]
        pub(super) path: String,
        /// Bytes of payload in a response.
        #[serde(default = "defaults::response_payload")]
        pub(super) response_payload: u32,
        /// Bytes of payload in a request. A request with a payload is a PUT, otherwise a GET.
        #[serde(default)]
        pub(super) request_payload: u32,
        /// The settings of the workloads of low-power networks.
        #[serde(default)]
        pub(super) mesh: MeshWorkload,
        /// The settings of `stream` and `transfer`.
        #[serde(default, skip_serializing_if = "FlowWorkload::is_default")]
        pub(super) flow: FlowWorkload,
    }
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
    /// Requests at recorded instants: `log`.
    Log,
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

/// Whether messages are acknowledged and retransmitted (RFC 7252 section 2.1).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// They are retransmitted until they are acknowledged.
    #[default]
    Confirmable,
    /// They are sent once.
    NonConfirmable,
}

/// The side that sends the requests.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requester {
    /// The devices.
    #[default]
    Client,
    /// The server: commands to the devices, which respond to them.
    Server,
}

/// When requests are made, with the settings that this takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Activity {
    /// One request after another, NSTART at a time.
    BackToBack(BackToBack),
    /// By the clock, whatever the fates of the requests before.
    Clocked(Clocked),
    /// A download of `exchanges` blocks of `response_payload` bytes (RFC 7959).
    Firmware,
    /// Many messages to one receiver, several of which may be under way.
    Flow(FlowTraffic),
    /// Low-power networks: clients in the Internet ask the motes.
    Cloud(Cloud),
    /// Low-power networks: every node sends messages to the sink.
    Reporting(Reporting),
}

/// Whose requests follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackToBack {
    /// Those of one device.
    Continuous,
    /// Those of a device that another one replaces, without congestion control state, after a batch of a random
    /// size between these.
    Random([u32; 2]),
    /// Those of one device, with two controls, each on half of the devices.
    Mixed,
}

/// Requests by the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clocked {
    /// The time between two instants of requests of a device; on average, for [`Pattern::Poisson`].
    pub period: Time,
    /// The instants.
    pub pattern: Pattern,
}

/// The instants of requests by the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One request every period, each up to `jitter` later than its time.
    Periodic {
        /// The most by which a request is late, drawn uniformly.
        jitter: Time,
    },
    /// Exponential times between requests.
    Poisson,
    /// Several requests at once.
    Bursts {
        /// Requests at once.
        size: u32,
    },
    /// All devices at the same time.
    Synchronised {
        /// The time over which the first requests are spread.
        spread: Time,
    },
    /// The instants of a log.
    Log(RequestLog),
    /// All devices at the same time, each a notification from the server (RFC 7641).
    Notifications,
}

impl Pattern {
    /// The latest first instant of a device that starts within a window, with the delay of later ones, ns; `None`
    /// where chance decides.
    pub(super) fn latest_first_ns(&self, period: Time, window: Time) -> Option<u64> {
        match self {
            Self::Periodic { jitter } => Some(period.max(window).0.saturating_add(jitter.0)),
            Self::Bursts { .. } => Some(period.max(window).0),
            Self::Synchronised { spread } => Some(window.max(*spread).0),
            Self::Notifications => Some(window.0),
            Self::Poisson | Self::Log(_) => None,
        }
    }
}

/// Many messages of each client to one receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowTraffic {
    /// The start of each client.
    pub start: Each<Time>,
    /// The number of messages that may wait at a client.
    pub queue: u16,
    /// The load that the application offers.
    pub offers: Offers,
}

/// The load that the application of a flow offers.
#[derive(Clone, Debug, PartialEq)]
pub enum Offers {
    /// Messages at a fixed interval, for a fixed time.
    Stream {
        /// The time between two messages; zero: there is always another one.
        interval: Each<Time>,
        /// The duration of the run.
        duration: Time,
    },
    /// So many bytes, as fast as the control admits them.
    Transfer {
        /// Bytes of each client.
        bytes: Each<Buffer>,
    },
}

/// Clients in the Internet that ask the motes of a low-power network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// One client, the motes in turn.
    Baseline,
    /// A client for each mote, back to back until the time is over.
    ManyToMany {
        /// The duration of the run.
        duration: Time,
    },
    /// Some clients until the time is over, many more at one instant.
    Burst {
        /// The duration of the run.
        duration: Time,
        /// Clients that ask until the time is over.
        steady: u32,
        /// Additional clients, which make `exchanges` requests each.
        more: u32,
        /// The instant at which these start.
        at: Time,
    },
}

/// Messages from every node of a low-power network to its sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Reporting {
    /// The duration of the run.
    pub duration: Time,
    /// Bytes of a message in one exchange (block-wise).
    pub fragment: u32,
    /// Bytes of a message that is due once in a period.
    pub message: u32,
    /// The rule that gives the period.
    pub due: ReportsDue,
}

/// When messages of a node are due.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportsDue {
    /// As often as makes this payload rate of all nodes together.
    Load(Rate),
    /// Once in this time, and whenever an event occurs.
    Events {
        /// The time between two messages without an event.
        background: Time,
        /// The events.
        events: Events,
    },
}

/// Events that all nodes report.
#[derive(Clone, Debug, PartialEq)]
pub struct Events {
    /// Bytes of a message about an event.
    pub message: u32,
    /// Mean time between events.
    pub interval: Time,
    /// The largest deviation of an interval from the mean, as a share of it; without it, events are a Poisson
    /// process.
    pub spread: Option<f64>,
}

impl WorkloadKeys {
    /// The settings of the kind.
    pub(super) fn activity(&self) -> Activity {
        let (mesh, flow) = (&self.mesh, &self.flow);
        let clocked = |pattern| Activity::Clocked(Clocked { period: self.period, pattern });
        let traffic = |offers| {
            let (start, queue) = (flow.start.clone(), flow.queue);
            Activity::Flow(FlowTraffic { start, queue, offers })
        };
        let reporting = |due| {
            let MeshWorkload { duration, fragment, message, .. } = *mesh;
            Activity::Reporting(Reporting { duration, fragment, message, due })
        };
        match self.kind {
            WorkloadKind::Continuous => Activity::BackToBack(BackToBack::Continuous),
            WorkloadKind::Random => Activity::BackToBack(BackToBack::Random(self.batch)),
            WorkloadKind::Mixed => Activity::BackToBack(BackToBack::Mixed),
            WorkloadKind::Periodic => clocked(Pattern::Periodic { jitter: self.jitter }),
            WorkloadKind::Poisson => clocked(Pattern::Poisson),
            WorkloadKind::Bursts => clocked(Pattern::Bursts { size: self.burst }),
            WorkloadKind::Synchronised => clocked(Pattern::Synchronised { spread: self.spread }),
            WorkloadKind::Log => {
                let period = self.log.mean_interval().unwrap_or(self.period);
                Activity::Clocked(Clocked { period, pattern: Pattern::Log(self.log.clone()) })
            }
            WorkloadKind::Notifications => clocked(Pattern::Notifications),
            WorkloadKind::Firmware => Activity::Firmware,
            WorkloadKind::Stream => {
                traffic(Offers::Stream { interval: flow.interval.clone(), duration: flow.duration })
            }
            WorkloadKind::Transfer => traffic(Offers::Transfer { bytes: flow.bytes.clone() }),
            WorkloadKind::Baseline => Activity::Cloud(Cloud::Baseline),
            WorkloadKind::ManyToMany => {
                Activity::Cloud(Cloud::ManyToMany { duration: mesh.duration })
            }
            WorkloadKind::Burst => Activity::Cloud(Cloud::Burst {
                duration: mesh.duration,
                steady: mesh.steady_clients,
                more: mesh.burst_clients,
                at: mesh.burst_at,
            }),
            WorkloadKind::Monitoring => reporting(ReportsDue::Load(mesh.load)),
            WorkloadKind::Events => reporting(ReportsDue::Events {
                background: mesh.background,
                events: Events {
                    message: mesh.event_message,
                    interval: mesh.event_interval,
                    spread: mesh.event_spread,
                },
            }),
        }
    }
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_burst(value: &u32) -> bool {
    *value == defaults::burst()
}

mod defaults {
    use super::Time;

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
        5
    }
    pub(super) fn path() -> String {
        "value".into()
    }
    pub(super) const fn response_payload() -> u32 {
        60
    }
}

texts! {
    WorkloadKind => names::<Self>(),
    Reliability => names::<Self>(),
    Requester => names::<Self>(),
}
