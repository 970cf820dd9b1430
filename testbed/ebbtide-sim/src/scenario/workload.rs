//! `[workload]`: what the devices do.
//!
//! The table of a file, its keys and the settings of each kind are in `workload_kinds.rs`.

use super::limits::MAX_MESSAGES;
use super::request_log::RequestLog;
use super::units::Time;
use super::workload_kinds::{
    Activity, Clocked, Cloud, FlowTraffic, Offers, Pattern, Reliability, Reporting, Requester,
    WorkloadKeys, WorkloadKind,
};
use crate::keys::{Check, Fault, require};
use serde::Serialize;
use std::ops::Range;

/// The activity of the clients.
#[derive(Clone, Debug, Serialize)]
#[serde(into = "WorkloadKeys")]
pub struct Workload {
    /// Requests per client, where neither time nor bytes limit them.
    pub exchanges: u32,
    /// Whether messages are acknowledged and retransmitted.
    pub reliability: Reliability,
    /// The side that sends the requests.
    pub requester: Requester,
    /// The time after a request within which a response is useful; 0: always.
    pub deadline: Time,
    /// The requested path, one segment of 1 to 255 bytes without `/`.
    pub path: String,
    /// Bytes of payload in a response, within the MTU.
    pub response_payload: u32,
    /// Bytes of payload in a request, within the MTU. A request with a payload is a PUT, otherwise a GET.
    pub request_payload: u32,
    activity: Activity,
    /// The table from which it was read, with the settings of the other kinds.
    keys: Box<WorkloadKeys>,
}

impl PartialEq for Workload {
    fn eq(&self, other: &Self) -> bool {
        self.keys() == other.keys()
    }
}

impl From<Workload> for WorkloadKeys {
    fn from(workload: Workload) -> Self {
        Self {
            exchanges: workload.exchanges,
            reliability: workload.reliability,
            requester: workload.requester,
            deadline: workload.deadline,
            path: workload.path,
            response_payload: workload.response_payload,
            request_payload: workload.request_payload,
            ..*workload.keys
        }
    }
}

impl WorkloadKeys {
    /// Reads the table; fails where its keys contradict each other.
    pub(super) fn read(self) -> Result<Workload, Fault> {
        let is_log = self.kind == WorkloadKind::Log;
        let logged = self.log.mean_requests().filter(|_| is_log);
        let workload = Workload {
            exchanges: logged.unwrap_or(self.exchanges),
            reliability: self.reliability,
            requester: self.requester,
            deadline: self.deadline,
            path: self.path.clone(),
            response_payload: self.response_payload,
            request_payload: self.request_payload,
            activity: self.activity(),
            keys: Box::new(self),
        };
        workload.check()?;
        Ok(workload)
    }
}

impl Workload {
    /// The kind, as the file names it.
    pub const fn kind(&self) -> WorkloadKind {
        self.keys.kind
    }

    /// When requests are made, with the settings that this takes.
    pub const fn activity(&self) -> &Activity {
        &self.activity
    }

    /// The table from which it was read, as it is now.
    pub(super) fn keys(&self) -> WorkloadKeys {
        self.clone().into()
    }

    /// The settings of requests by the clock.
    pub const fn clocked(&self) -> Option<&Clocked> {
        match &self.activity {
            Activity::Clocked(clocked) => Some(clocked),
            _ => None,
        }
    }

    /// The log of the requests.
    pub const fn log(&self) -> Option<&RequestLog> {
        match &self.activity {
            Activity::Clocked(Clocked { pattern: Pattern::Log(log), .. }) => Some(log),
            _ => None,
        }
    }

    /// The settings of a flow.
    pub const fn flow(&self) -> Option<&FlowTraffic> {
        match &self.activity {
            Activity::Flow(flow) => Some(flow),
            _ => None,
        }
    }

    /// Whether clients send at fixed times, so that a flow has no completion time.
    pub const fn keeps_time(&self) -> bool {
        match &self.activity {
            Activity::Clocked(_) => true,
            Activity::Flow(flow) => matches!(flow.offers, Offers::Stream { .. }),
            _ => false,
        }
    }

    /// Whether only low-power networks have it.
    pub const fn is_mesh(&self) -> bool {
        matches!(self.activity, Activity::Cloud(_) | Activity::Reporting(_))
    }

    /// Whether the nodes of a low-power network report to its sink.
    pub const fn is_reporting(&self) -> bool {
        matches!(self.activity, Activity::Reporting(_))
    }

    /// Whether the server notifies the devices.
    pub const fn is_notifying(&self) -> bool {
        matches!(&self.activity, Activity::Clocked(Clocked { pattern: Pattern::Notifications, .. }))
    }

    /// Whether requests follow each other.
    pub const fn is_back_to_back(&self) -> bool {
        matches!(self.activity, Activity::BackToBack(_))
    }

    /// Bytes of the body that a device downloads; `None` if it downloads none.
    pub const fn download(&self) -> Option<u32> {
        match self.activity {
            Activity::Firmware => Some(self.exchanges.saturating_mul(self.response_payload)),
            _ => None,
        }
    }

    /// Requests that a device makes at once where they go by the clock.
    pub const fn at_once(&self) -> u32 {
        match self.activity {
            Activity::Clocked(Clocked { pattern: Pattern::Bursts { size }, .. }) => size,
            _ => 1,
        }
    }

    /// Whether the exchanges begin at the server.
    pub fn is_from_server(&self) -> bool {
        self.requester == Requester::Server || self.is_notifying()
    }

    /// The mean time between two requests of a device, ns, where they go by the clock.
    pub fn interval_ns(&self) -> Option<u64> {
        let clocked = self.clocked()?;
        Some(clocked.period.0 / u64::from(self.at_once().max(1)))
    }

    /// The time from which on packets count for the fairness between flows.
    pub const fn fair_from(&self) -> Time {
        self.keys.flow.fair_from
    }

    /// The time at which the run ends, whatever is under way then.
    pub(crate) const fn ends(&self) -> Option<Time> {
        match &self.activity {
            Activity::Flow(FlowTraffic { offers: Offers::Stream { duration, .. }, .. })
            | Activity::Cloud(Cloud::ManyToMany { duration } | Cloud::Burst { duration, .. })
            | Activity::Reporting(Reporting { duration, .. }) => Some(*duration),
            _ => None,
        }
    }

    /// The number of messages of a client that transfers bytes; `None` in other workloads.
    pub(crate) fn messages(&self, client: u32) -> Option<u32> {
        let Offers::Transfer { bytes } = &self.flow()?.offers else { return None };
        let bytes = bytes.for_client(client).and_then(|bytes| bytes.0).unwrap_or(0);
        let messages = bytes.div_ceil(u64::from(self.request_payload.max(1)));
        Some(u32::try_from(messages).unwrap_or(u32::MAX))
    }

    /// The exchanges of these clients together, as far as exchanges or bytes limit them.
    pub fn exchanges_of(&self, clients: Range<u32>) -> f64 {
        match (self.messages(0), self.log()) {
            (Some(_), _) => clients.filter_map(|client| self.messages(client)).map(f64::from).sum(),
            (None, Some(log)) => clients.map(|client| log.instants(client).len() as f64).sum(),
            (None, None) => clients.len() as f64 * f64::from(self.exchanges),
        }
    }

    /// The reason why only congestion controls over UDP can carry it, if that is so.
    pub(super) fn only_over_udp(&self) -> Option<&'static str> {
        if matches!(self.activity, Activity::Firmware) {
            return Some("the workload firmware");
        }
        if self.is_from_server() {
            return Some("traffic from the server to the devices");
        }
        (self.reliability == Reliability::NonConfirmable).then_some("non-confirmable messages")
    }

    /// Fails where keys contradict the kind or each other.
    fn check(&self) -> Check {
        let keys = &self.keys;
        require(
            keys.jitter == Time(0) || keys.kind == WorkloadKind::Periodic,
            "workload.jitter",
            "is for the workload periodic",
        )?;
        require(
            keys.spread == Time(0) || keys.kind == WorkloadKind::Synchronised,
            "workload.spread",
            "is for the workload synchronised",
        )?;
        require(
            keys.spread <= keys.period,
            "workload.spread",
            "contradicts workload.period: the first requests come before the second ones, so it must be at \
             most the period",
        )?;
        require(
            keys.log.is_none() || keys.kind == WorkloadKind::Log,
            "workload.log",
            "is for the workload log; leave it out, or set it to \"\"",
        )?;
        require(
            keys.kind != WorkloadKind::Log || !keys.log.is_none(),
            "workload.log",
            "must name a file of lines seconds,device for the workload log",
        )?;
        let may_be_sent_once = match &self.activity {
            Activity::Flow(flow) => matches!(flow.offers, Offers::Stream { .. }),
            Activity::BackToBack(_) | Activity::Clocked(_) => true,
            Activity::Firmware | Activity::Cloud(_) | Activity::Reporting(_) => false,
        };
        require(
            self.reliability == Reliability::Confirmable || may_be_sent_once,
            "workload.reliability",
            "must be confirmable for transfers, firmware and low-power networks",
        )?;
        let may_be_server = matches!(self.activity, Activity::BackToBack(_) | Activity::Clocked(_));
        require(
            self.requester == Requester::Client || may_be_server,
            "workload.requester",
            "must be client for stream, transfer, firmware and low-power networks",
        )?;
        match &self.activity {
            Activity::Firmware => self.check_blocks(),
            Activity::Flow(flow) => self.check_flow(flow),
            Activity::Cloud(Cloud::Burst { duration, at, .. }) => require(
                at < duration,
                "workload.mesh.burst_at",
                "must be before workload.mesh.duration",
            ),
            _ => Ok(()),
        }
    }

    fn check_blocks(&self) -> Check {
        // RFC 7959 section 2.2: 2^4 to 2^10 bytes.
        let is_size =
            self.response_payload.is_power_of_two() && (16..=1024).contains(&self.response_payload);
        require(
            is_size,
            "workload.response_payload",
            "is the size of a block of the workload firmware: 16, 32, 64, 128, 256, 512 or 1024 bytes",
        )?;
        require(
            self.request_payload == 0,
            "workload.request_payload",
            "must be 0 for the workload firmware, which downloads",
        )?;
        require(
            self.exchanges <= 1 << 20,
            "workload.exchanges",
            "must be at most 1048576 blocks for the workload firmware (RFC 7959 section 2.2)",
        )
    }

    fn check_flow(&self, flow: &FlowTraffic) -> Check {
        require(
            self.request_payload > 0,
            "workload.request_payload",
            "must be 1 byte at least for the workloads stream and transfer, such as 67",
        )?;
        match &flow.offers {
            Offers::Stream { interval, duration } => {
                let shortest = interval.0.iter().filter(|time| time.0 > 0).min();
                require(
                    shortest.map_or(0, |time| duration.0 / time.0) <= MAX_MESSAGES,
                    "workload.flow.interval",
                    "offers more than 10000000 messages in workload.flow.duration",
                )
            }
            Offers::Transfer { bytes } => require(
                bytes.0.iter().all(|bytes| bytes.0.is_some_and(|bytes| bytes > 0)),
                "workload.flow.bytes",
                "must be a number of bytes, 1 at least, or a list of numbers",
            ),
        }
    }
}
