//! The phases of a cell one by one.

use super::cell_spec::CellSpec;
use crate::record::{ClientRecord, PhaseRecord, RunRecord, Totals};
use crate::scenario::PhaseTable;

/// A phase as a cell of its own: its figures are those of exchanges, and no link limits it.
pub(super) fn spec(spec: &CellSpec, phase: &PhaseTable) -> CellSpec {
    let mut scenario = spec.scenario.clone();
    scenario.require = phase.require;
    (scenario.phase, scenario.power_cut) = (Vec::new(), Vec::new());
    scenario.device_move = Vec::new();
    CellSpec { scenario, ..spec.clone() }
}

/// A replication as one phase saw it: all clients are one, which has the sums.
pub(super) fn own_record(record: &RunRecord, index: usize) -> Option<RunRecord> {
    let own = record.totals.phases.get(index)?;
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let client = ClientRecord {
        asked: count(own.asked),
        arrived: count(own.completed),
        completed: count(own.completed),
        failed: count(own.failed),
        in_time: count(own.in_time),
        unnecessary: count(own.unnecessary),
        needless: count(own.unnecessary),
        ..ClientRecord::default()
    };
    let PhaseRecord { by_retransmissions, rtt, durations, after, .. } = own.clone();
    let mut totals = Totals {
        by_retransmissions,
        rtt,
        durations,
        done_ns: own.ended_ns.saturating_sub(own.from_ns),
        sim_ns: record.totals.sim_ns,
        ..Totals::default()
    };
    totals.delivery.transmissions = own.transmissions;
    totals.delivery.after = after;
    Some(RunRecord { replication: record.replication, clients: vec![client], totals, wall_s: 0.0 })
}
