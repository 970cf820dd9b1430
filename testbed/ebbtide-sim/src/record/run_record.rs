//! The measurements of one replication.

use super::background::{BackgroundFlow, BackgroundPackets};
use super::class::{ClassRecord, CrossRecord, LinkRecord};
use super::client::ClientRecord;
use super::delivery::Delivery;
use super::direction::DirectionCounts;
use super::flow::FlowRecord;
use super::phase::PhaseRecord;
use super::{Handshakes, MeasuredLosses, MeshRecord, Series};
use crate::histogram::SparseHistogram;
use crate::medium::lora::LoraCounts;
use crate::medium::nb_iot::{NbIotCounts, NbIotPower};
use crate::medium::wifi::WifiRecord;
use serde::{Deserialize, Serialize};

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

impl RunRecord {
    /// Mean power of the radio of a device, mW, of all nodes of a mesh or all devices of a cell; `None`
    /// where it is not known.
    pub fn power_mw(&self) -> Option<f64> {
        let totals = &self.totals;
        if let Some(mesh) = &totals.mesh {
            let sum: f64 = mesh.nodes.iter().map(|node| node.energy_mj).sum();
            return Some(sum / (mesh.measured_ns as f64 / 1e9) / mesh.nodes.len() as f64);
        }
        let all = (totals.sim_ns.max(1) as f64 * self.clients.len().max(1) as f64) as u64;
        let energy = match (&totals.lora, &totals.nb_iot) {
            (Some(lora), _) => lora.millijoules(all),
            (None, Some(cell)) => NbIotPower::TR_45_820.millijoules(cell.times, all),
            (None, None) => return None,
        };
        Some(energy / (all as f64 / 1e9))
    }
}

/// Measurements that do not belong to a single client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Exchanges that took 0, 1, 2, ... retransmissions.
    pub by_retransmissions: Vec<u64>,
    /// From the clients to the server.
    pub up: DirectionCounts,
    /// From the server to the clients.
    pub down: DirectionCounts,
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
    /// Measurements of each phase; empty in a scenario without phases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseRecord>,
    /// The links other than the bottleneck, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkRecord>,
    /// The frames of a LoRaWAN cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora: Option<LoraCounts>,
    /// The counts of a cell of NB-IoT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nb_iot: Option<NbIotCounts>,
    /// UDP traffic of others, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<CrossRecord>,
    /// The handshakes of DTLS, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Handshakes>,
    /// Losses as the endpoints measured them, if they have the option PM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredLosses>,
}
