//! The measurements of one replication.

use super::background::{BackgroundFlow, BackgroundPackets};
use super::class::{ClassRecord, CrossRecord, LinkRecord};
use super::delivery::Delivery;
use super::flow::FlowRecord;
use super::wifi::WifiRecord;
use super::{Handshakes, MeshRecord, Series};
use crate::medium::lora::LoraCounts;
use crate::net::LinkCounts;
use ebbtide_core::time::{Duration, Micros};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// One client's measurements.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRecord {
    /// Its number, from 0.
    pub client: u32,
    /// Which of the run's controls it used, from 0; above 0 only in mixed runs.
    pub group: u8,
    /// Flow completion time: from the first request to the end of the last exchange.
    pub fct: Duration,
    /// Transmissions of an exchange after the one whose response arrived first.
    pub unnecessary: u32,
    /// Duplicate responses received.
    pub duplicates: u32,
    /// Expired timeouts.
    pub timeouts: u32,
    /// Retransmissions, necessary or not.
    pub retransmissions: u32,
    /// Probes that its congestion control sent.
    pub probes: u32,
    /// The largest timeout armed.
    pub largest_timeout: Micros,
    /// Exchanges that got their response.
    pub completed: u32,
    /// Exchanges that failed, or were not accepted by a full queue.
    pub failed: u32,
    /// Payload of answered requests and of their first responses.
    pub payload_bytes: u64,
    /// Exchanges that its application asked for, those that were still open at the end included.
    pub asked: u32,
    /// Of them, those whose request reached the server.
    pub arrived: u32,
    /// Of them, those that were answered within the deadline; all that were answered without one.
    pub in_time: u32,
    /// Unnecessary transmissions of all exchanges: those after the one that was answered first,
    /// even if the client had given up by then.
    pub needless: u32,
}

/// One direction's packets.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Direction {
    /// Packets handed to the link.
    pub sent: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Packets that found the buffer full.
    pub dropped_queue: u64,
    /// Packets lost after the queue.
    pub lost_link: u64,
    /// Packets that the queue discipline marked (ECN).
    #[serde(default, skip_serializing_if = "crate::record::is_zero")]
    pub marked: u64,
    /// Bytes that passed the serialiser.
    pub bytes: u64,
    /// Time that the serialiser worked, ns.
    pub busy_ns: u64,
}

impl From<LinkCounts> for Direction {
    fn from(counts: LinkCounts) -> Self {
        Self {
            sent: counts.sent,
            delivered: counts.delivered,
            dropped_queue: counts.dropped_queue,
            lost_link: counts.lost_link,
            marked: counts.marked,
            bytes: counts.bytes_serialised,
            busy_ns: counts.busy_ns,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Values in microseconds with a resolution of 1 %, and how often each occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SparseHistogram(pub Vec<(u64, u64)>);

/// The recorded values of a histogram.
pub(crate) fn sparse(histogram: &Histogram<u32>) -> SparseHistogram {
    let values = histogram.iter_recorded();
    SparseHistogram(
        values.map(|v| (v.value_iterated_to(), u64::from(v.count_at_value()))).collect(),
    )
}

impl SparseHistogram {
    /// The values of several histograms in ascending order, each once with how often it occurred.
    pub(crate) fn together<'h>(histograms: impl Iterator<Item = &'h Self>) -> Self {
        let mut all: Vec<(u64, u64)> = histograms.flat_map(|one| &one.0).copied().collect();
        all.sort_unstable_by_key(|(value, _)| *value);
        all.dedup_by(|(value, count), (kept, sum)| {
            let is_same = value == kept;
            *sum += if is_same { *count } else { 0 };
            is_same
        });
        Self(all)
    }
}

/// The measurements of one replication: all that reports and results are made from.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Which replication, from 0.
    pub replication: u32,
    /// Every client, in order.
    pub clients: Vec<ClientRecord>,
    /// Measurements of the replication as a whole.
    pub totals: Totals,
    /// Wall-clock time of the simulation, s. Nothing else differs between two runs of the same
    /// replication.
    pub wall_s: f64,
}

/// Measurements that do not belong to a single client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Exchanges that took 0, 1, 2, ... retransmissions.
    pub by_retransmissions: Vec<u64>,
    /// From the clients to the server.
    pub up: Direction,
    /// From the server to the clients.
    pub down: Direction,
    /// Round trips of the answered transmissions.
    pub rtt: SparseHistogram,
    /// How long exchanges took, from the request to the first response.
    pub durations: SparseHistogram,
    /// Until the last client was done, ns.
    pub done_ns: u64,
    /// Until the network was empty, ns.
    pub sim_ns: u64,
    /// Events handled.
    pub events: u64,
    /// Time series; only for the replications for which they were requested.
    pub series: Option<Series>,
    /// Measurements of a low-power network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshRecord>,
    /// Measurements of a Wi-Fi cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wifi: Option<WifiRecord>,
    /// Network cost of the clients, and the times until their exchanges were answered.
    pub delivery: Delivery,
    /// Measurements of TCP in the background.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundFlow>,
    /// Their packets at the bottleneck.
    #[serde(default, skip_serializing_if = "BackgroundPackets::is_none")]
    pub background_packets: BackgroundPackets,
    /// Measurements of senders of many messages: each client's flow, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowRecord>,
    /// Measurements of each class; empty in a scenario without classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassRecord>,
    /// The links other than the bottleneck, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkRecord>,
    /// The frames of a LoRaWAN cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<LoraCounts>,
    /// UDP traffic of others, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<CrossRecord>,
    /// The handshakes of DTLS, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Handshakes>,
}
