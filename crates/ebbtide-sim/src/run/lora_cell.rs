//! The figures of a cell of replications with a LoRaWAN cell.

use crate::medium::Energy;
use crate::medium::lora::{LoraCounts, LoraFrames};
use crate::record::RunRecord;
use crate::report::LoraFigures;

/// Computes a cell's figures from its replications; returns `None` for other networks.
pub(super) fn lora_cell(records: &[RunRecord]) -> Option<LoraFigures> {
    let runs: Vec<(&RunRecord, LoraCounts)> =
        records.iter().filter_map(|record| Some((record, record.totals.lora?))).collect();
    // The mean of a figure over replications, from the counts, the devices, and the time, ns.
    let mean = |figure: fn(&LoraCounts, f64, u64) -> f64| {
        let each = runs.iter().map(|(record, counts)| {
            figure(counts, record.clients.len().max(1) as f64, record.totals.sim_ns.max(1))
        });
        each.sum::<f64>() / runs.len() as f64
    };
    let mut frames = LoraFrames::default();
    runs.iter().for_each(|(_, counts)| frames += &counts.frames);
    (!runs.is_empty()).then(|| LoraFigures {
        frames,
        device_share: mean(|one, devices, ns| one.radio.transmit_ns as f64 / devices / ns as f64),
        gateway_share: mean(|one, _, ns| one.downlink_ns.iter().sum::<u64>() as f64 / ns as f64),
        power_mw: mean(|one, devices, ns| {
            let all = (ns as f64 * devices) as u64;
            Energy::SX1276.millijoules(one.radio, all) / (all as f64 / 1e9)
        }),
    })
}
