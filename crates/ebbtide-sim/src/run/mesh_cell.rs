//! The figures of a cell in a low-power network.

use super::cell::pool;
use crate::mesh::{MeshRecord, Messages};
use crate::record::RunRecord;
use crate::report::{MeshCell, MeshNode};
use crate::stats::mean_and_half_width;

/// Computes a cell's figures from its replications; returns `None` for other networks.
pub(super) fn mesh_cell(records: &[RunRecord]) -> Option<MeshCell> {
    let runs: Vec<(&RunRecord, &MeshRecord)> =
        records.iter().filter_map(|record| Some((record, record.totals.mesh.as_ref()?))).collect();
    let first = runs.first()?;
    let over = |figure: &dyn Fn(&RunRecord, &MeshRecord) -> f64| {
        let values: Vec<f64> = runs.iter().map(|(record, mesh)| figure(record, mesh)).collect();
        let finite: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        mean_and_half_width(&finite)
    };
    let total = |field: fn(&Messages) -> u64| -> u64 {
        runs.iter().flat_map(|(_, mesh)| &mesh.messages).map(field).sum()
    };
    let messages = total(|m| m.offered);
    let share = |count: u64| count as f64 / messages.max(1) as f64;
    let given_up = total(|m| m.given_up);
    let (queue, air) = (total(|m| m.given_up_queue), total(|m| m.given_up_retries));
    let taken_up = messages - total(|m| m.busy);
    let retransmitted = |record: &RunRecord| -> u64 {
        record.clients.iter().map(|client| u64::from(client.retransmissions)).sum()
    };
    let retransmissions: u64 = runs.iter().map(|(record, _)| retransmitted(record)).sum();
    Some(MeshCell {
        requests_per_s: over(&|record, mesh| completed(record) / seconds(mesh)),
        exchange_s: over(&|record, _| {
            let counts = &record.totals.durations.0;
            let all: u64 = counts.iter().map(|(_, count)| count).sum();
            let sum: f64 = counts.iter().map(|(us, count)| *us as f64 * *count as f64).sum();
            sum / 1e6 / all as f64
        }),
        retries: over(&|record, _| {
            let classes = record.totals.by_retransmissions.iter().enumerate();
            let sum: f64 = classes.map(|(class, count)| class as f64 * *count as f64).sum();
            sum / completed(record)
        }),
        messages,
        loss: over(&|record, mesh| {
            // Devices of other classes have no messages.
            let of_sensor = |one: &&Messages| record.totals.classes.is_empty() || one.offered > 0;
            let losses: Vec<f64> = mesh.messages.iter().filter(of_sensor).map(loss).collect();
            losses.iter().sum::<f64>() / losses.len() as f64
        }),
        worst_loss: over(&|_, mesh| mesh.messages.iter().map(loss).fold(0.0, f64::max)),
        event_loss: over(&|_, mesh| {
            let sum = |field: fn(&Messages) -> u64| mesh.messages.iter().map(field).sum::<u64>();
            sum(|m| m.events_lost) as f64 / sum(|m| m.events) as f64
        }),
        lost_busy: share(total(|m| m.busy)),
        lost_queue: share(queue),
        lost_retries: share(air),
        lost_otherwise: share(given_up - queue - air),
        no_route: {
            let sum =
                |of: fn(&MeshRecord) -> u64| runs.iter().map(|(_, mesh)| of(mesh)).sum::<u64>();
            sum(|mesh| mesh.lost.route) as f64 / sum(|mesh| mesh.datagrams).max(1) as f64
        },
        retransmissions_per_message: retransmissions as f64 / taken_up.max(1) as f64,
        early: over(&|record, mesh| {
            let early: u64 = mesh.messages.iter().map(|m| m.early).sum();
            early as f64 / retransmitted(record) as f64
        }),
        first_timeout: pool(runs.iter().map(|(_, mesh)| &mesh.first_timeouts)),
        strong_rtt: pool(runs.iter().map(|(_, mesh)| &mesh.strong_rtt)),
        weak_rtt: pool(runs.iter().map(|(_, mesh)| &mesh.weak_rtt)),
        power_mw: over(&|_, mesh| {
            let sum: f64 = mesh.nodes.iter().map(|node| node.energy_mj).sum();
            sum / seconds(mesh) / mesh.nodes.len() as f64
        })
        .0,
        completed_by_s: completed_by(&runs),
        nodes: (0..first.1.nodes.len()).map(|node| mean_node(&runs, node)).collect(),
    })
}

fn completed(record: &RunRecord) -> f64 {
    record.totals.by_retransmissions.iter().sum::<u64>() as f64
}

fn seconds(mesh: &MeshRecord) -> f64 {
    mesh.measured_ns as f64 / 1e9
}

/// The share of a client's messages that were lost, of those whose fate is known.
fn loss(messages: &Messages) -> f64 {
    let lost = messages.busy + messages.given_up;
    lost as f64 / (lost + messages.delivered).max(1) as f64
}

/// The instants by which each percent was completed, between the equal parts of the time in which
/// they were counted.
fn completed_by(runs: &[(&RunRecord, &MeshRecord)]) -> Vec<f64> {
    let parts = runs.iter().map(|(_, mesh)| mesh.completions.len()).max().unwrap_or(0);
    let all: u64 = runs.iter().flat_map(|(_, mesh)| &mesh.completions).sum();
    if all == 0 {
        return Vec::new();
    }
    let of = |part: usize| -> u64 {
        runs.iter().filter_map(|(_, mesh)| mesh.completions.get(part)).sum()
    };
    let width = runs.iter().map(|(_, mesh)| seconds(mesh)).fold(0.0, f64::max) / parts as f64;
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

fn mean_node(runs: &[(&RunRecord, &MeshRecord)], node: usize) -> MeshNode {
    let mut sum = MeshNode::default();
    for (_, mesh) in runs {
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
    let place =
        runs.first().and_then(|(_, mesh)| mesh.nodes.get(node)).copied().unwrap_or_default();
    MeshNode {
        x: place.x,
        y: place.y,
        parent: place.parent,
        loss: sum.loss / count,
        peak_queue: sum.peak_queue / count,
        power_mw: sum.power_mw / count,
    }
}
