//! The figures of a cell of replications with a LoRaWAN cell.

use crate::medium::Energy;
use crate::medium::lora::LoraCounts;
use crate::record::RunRecord;
use crate::report::LoraFrames;

/// Computes a cell's figures from its replications; returns `None` for other networks.
pub(super) fn lora_cell(records: &[RunRecord]) -> Option<LoraFrames> {
    let runs: Vec<(&RunRecord, LoraCounts)> =
        records.iter().filter_map(|record| Some((record, record.totals.lora?))).collect();
    let sum = |field: fn(&LoraCounts) -> u64| runs.iter().map(|(_, counts)| field(counts)).sum();
    let both = |field: fn(&LoraCounts) -> [u64; 2]| {
        runs.iter().fold([0; 2], |sum, (_, counts)| [0, 1].map(|i| sum[i] + field(counts)[i]))
    };
    // The mean of a figure over replications, from the counts, the devices, and the time, ns.
    let mean = |figure: fn(&LoraCounts, f64, u64) -> f64| {
        let each = runs.iter().map(|(record, counts)| {
            figure(counts, record.clients.len().max(1) as f64, record.totals.sim_ns.max(1))
        });
        each.sum::<f64>() / runs.len() as f64
    };
    (!runs.is_empty()).then(|| LoraFrames {
        uplinks: sum(|one| one.uplinks),
        polls: sum(|one| one.polls),
        collided: sum(|one| one.collided),
        deaf: sum(|one| one.deaf),
        faded: sum(|one| one.faded),
        downlinks: both(|one| one.downlinks),
        overflows: both(|one| one.overflows),
        device_share: mean(|one, devices, ns| one.radio.transmit_ns as f64 / devices / ns as f64),
        gateway_share: mean(|one, _, ns| one.downlink_ns.iter().sum::<u64>() as f64 / ns as f64),
        power_mw: mean(|one, devices, ns| {
            let all = (ns as f64 * devices) as u64;
            Energy::SX1276.millijoules(one.radio, all) / (all as f64 / 1e9)
        }),
    })
}
