//! The nodes of a low-power network, and when its exchanges were completed.

use super::model::MeshNode;
use crate::medium::low_power::{MeshRecord, Messages};
use crate::record::RunRecord;

pub(super) fn seconds(mesh: &MeshRecord) -> f64 {
    mesh.measured_ns as f64 / 1e9
}

/// The share of a client's messages that were lost, of those whose fate is known.
pub(super) fn loss(messages: &Messages) -> f64 {
    let lost = messages.busy + messages.given_up;
    lost as f64 / (lost + messages.delivered).max(1) as f64
}

/// The instants by which each percent was completed, between the equal parts of the time in which
/// they were counted.
pub(super) fn completed_by(runs: &[&MeshRecord]) -> Vec<f64> {
    let parts = runs.iter().map(|mesh| mesh.completions.len()).max().unwrap_or(0);
    let all: u64 = runs.iter().flat_map(|mesh| &mesh.completions).sum();
    if all == 0 {
        return Vec::new();
    }
    let of =
        |part: usize| -> u64 { runs.iter().filter_map(|mesh| mesh.completions.get(part)).sum() };
    let width = runs.iter().map(|mesh| seconds(mesh)).fold(0.0, f64::max) / parts as f64;
    let (mut part, mut before) = (0, 0);
    let quantiles = (0..=100u64).map(|percent| {
        let wanted = percent as f64 / 100.0 * all as f64;
        while part + 1 < parts && ((before + of(part)) as f64) < wanted {
            before += of(part);
            part += 1;
        }
        let within = (wanted - before as f64) / of(part).max(1) as f64;
        width * (part as f64 + within.clamp(0.0, 1.0))
    });
    quantiles.collect()
}

/// Every node, means over replications; none in other networks.
pub(super) fn mesh_nodes(records: &[RunRecord]) -> Vec<MeshNode> {
    let runs: Vec<&MeshRecord> =
        records.iter().filter_map(|record| record.totals.mesh.as_ref()).collect();
    let count = runs.first().map_or(0, |mesh| mesh.nodes.len());
    (0..count).map(|node| mean_node(&runs, node)).collect()
}

fn mean_node(runs: &[&MeshRecord], node: usize) -> MeshNode {
    let mut sum = MeshNode::default();
    for mesh in runs {
        let Some(record) = mesh.nodes.get(node) else { continue };
        let own = mesh.client_nodes.iter().position(|host| *host as usize == node);
        let frames = &record.frames;
        let given_up = frames.no_ack + frames.no_access + record.overflows;
        sum.loss += match own.and_then(|client| mesh.messages.get(client)) {
            Some(messages) => loss(messages),
            None => given_up as f64 / (frames.accepted + record.overflows).max(1) as f64,
        };
        sum.peak_queue += f64::from(record.peak_queue);
        sum.power_mw += record.energy_mj / seconds(mesh);
    }
    let count = runs.len() as f64;
    let place = runs.first().and_then(|mesh| mesh.nodes.get(node)).copied().unwrap_or_default();
    MeshNode {
        x: place.x,
        y: place.y,
        parent: place.parent,
        loss: sum.loss / count,
        peak_queue: sum.peak_queue / count,
        power_mw: sum.power_mw / count,
    }
}
