//! The figures of a cell whose clients send many messages.

use super::cell_spec::CellSpec;
use super::flows::{FlowCell, FlowFigures};
use super::pooled::pool;
use super::wire::wire_lengths;
use crate::record::{ClientRecord, FlowRecord, RunRecord};
use crate::stats::{jain, mean_and_half_width};

/// One flow of one replication, with what the client's record says of it.
type Flow<'r> = (&'r ClientRecord, &'r FlowRecord);

/// Computes a cell's figures from its replications; returns `None` for other workloads.
pub(super) fn flow_cell(spec: &CellSpec, records: &[RunRecord]) -> Option<FlowCell> {
    let runs: Vec<Vec<Flow<'_>>> = records.iter().map(flows).collect();
    let first = runs.first().filter(|flows| !flows.is_empty())?;
    let over = |figure: &dyn Fn(&[Flow<'_>]) -> f64| {
        let values = runs.iter().map(|flows| figure(flows));
        mean_and_half_width(&values.filter(|value| value.is_finite()).collect::<Vec<f64>>())
    };
    let sum = |flows: &[Flow<'_>], field: fn(&FlowRecord) -> u64| -> f64 {
        flows.iter().map(|(_, flow)| field(flow)).sum::<u64>() as f64
    };
    let bits = |client: &ClientRecord| {
        let groups = spec.controls.len().max(1);
        let control = spec.controls.get(usize::from(client.group) % groups);
        let transport = control.map(|control| control.transport()).unwrap_or_default();
        wire_lengths(&spec.scenario, transport).0 * 8.0
    };
    let throughput = |(client, flow): &Flow<'_>| {
        flow.delivered as f64 * bits(client) / seconds(flow.start_ns, flow.end_ns)
    };
    let all = || runs.iter().flatten().map(|(_, flow)| *flow);
    Some(FlowCell {
        flows: (0..first.len())
            .map(|place| {
                let own: Vec<Flow<'_>> = runs.iter().map(|flows| flows[place]).collect();
                figures(spec, &own, &throughput)
            })
            .collect(),
        delivered: over(&|flows| sum(flows, |flow| flow.delivered)),
        jain: over(&|flows| {
            let shares: Vec<f64> =
                flows.iter().map(|(_, flow)| flow.delivered_together as f64).collect();
            jain(&shares)
        }),
        fair_from_s: spec.scenario.workload.fair_from().0 as f64 / 1e9,
        loss: over(&|flows| {
            1.0 - sum(flows, |flow| flow.arrived) / sum(flows, |flow| flow.transmissions)
        }),
        retransmissions: over(&|flows| {
            flows.iter().map(|(client, _)| f64::from(client.retransmissions)).sum()
        }),
        throughput_bps: over(&|flows| flows.iter().map(throughput).sum()),
        delay_s: over(&|flows| {
            sum(flows, |flow| flow.delay_sum_ns) / 1e9 / sum(flows, |flow| flow.delivered)
        }),
        delay: pool(all().map(|flow| &flow.delay)),
        wait: pool(all().map(|flow| &flow.wait)),
    })
}

/// The flows of a replication; those of other clients than the record has are left out.
fn flows(record: &RunRecord) -> Vec<Flow<'_>> {
    let flow = |client: &ClientRecord| record.totals.flows.get(client.client as usize);
    record.clients.iter().filter_map(|client| Some((client, flow(client)?))).collect()
}

fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}

fn figures(
    spec: &CellSpec,
    runs: &[Flow<'_>],
    throughput: &dyn Fn(&Flow<'_>) -> f64,
) -> FlowFigures {
    let mean = |figure: &dyn Fn(&Flow<'_>) -> f64| {
        let values: Vec<f64> = runs.iter().map(figure).filter(|value| value.is_finite()).collect();
        mean_and_half_width(&values).0
    };
    let count = |field: fn(&FlowRecord) -> u64| mean(&|(_, flow)| field(flow) as f64);
    let (client, group) = runs.first().map_or((0, 0), |(client, _)| (client.client, client.group));
    FlowFigures {
        client,
        cc: spec.cc.split('+').nth(group.into()).unwrap_or(&spec.cc).to_owned(),
        start_s: count(|flow| flow.start_ns) / 1e9,
        end_s: count(|flow| flow.end_ns) / 1e9,
        offered: count(|flow| flow.offered),
        refused: count(|flow| flow.refused),
        sent: count(|flow| flow.sent),
        delivered: count(|flow| flow.delivered),
        reordered: count(|flow| flow.reordered),
        retransmissions: mean(&|(client, _)| client.retransmissions.into()),
        unnecessary: mean(&|(client, _)| client.unnecessary.into()),
        probes: count(|flow| flow.probes),
        given_up: count(|flow| flow.given_up),
        loss: mean(&|(_, flow)| 1.0 - flow.arrived as f64 / flow.transmissions as f64),
        throughput_bps: mean(&throughput),
        delay_s: mean(&|(_, flow)| flow.delay_sum_ns as f64 / 1e9 / flow.delivered as f64),
    }
}
