//! From the records of a cell's replications to its figures.

use super::cell_spec::CellSpec;
use super::classes::{own_record, parts};
use super::figures::Figures;
use super::flow_cell::flow_cell;
use super::limit::{background_s, demand, physical_limit_s};
use super::link_cell;
use super::mesh_nodes::mesh_nodes;
use super::metrics::{GROUPS, LORA, MESH, NB_IOT};
use super::model::{Cell, Packets};
use super::phases;
use super::pooled::{handshakes, packets, percentiles};
use super::sample::Replications;
use crate::judge::{self, Demand, RequirementCheck, figures};
use crate::record::{ClientRecord, RunRecord};
use crate::scenario::{ClassView, PhaseTable};
use crate::stats::{mean_and_half_width, summary};

/// The figures of a cell. `records` are its replications in order.
pub fn summarise(spec: &CellSpec, records: &[RunRecord], command: String) -> Cell {
    let sample = Replications { records };
    let mut measured = Figures::default();
    GROUPS.iter().for_each(|group| group.measure(&sample, &mut measured));
    let seconds = |client: &ClientRecord| client.fct.as_nanos() as f64 / 1e9;
    let medians: Vec<f64> = records
        .iter()
        .map(|record| {
            let mut values: Vec<f64> = record.clients.iter().map(seconds).collect();
            summary(&mut values).median
        })
        .collect();
    let (centre, half) = mean_and_half_width(&medians);
    let classes = classes(spec, records, &command);
    let phases = phases(spec, records, &command);
    let mut outcome = figures(records, &demand(spec));
    outcome.checks.extend(classes.iter().chain(&phases).flat_map(checks_of_part));
    Cell {
        cc: spec.cc.clone(),
        settings: spec.settings.clone(),
        reps: u32::try_from(records.len()).unwrap_or(u32::MAX),
        clients: spec.scenario.clients.count,
        fct: summary(&mut sample.clients().map(seconds).collect::<Vec<f64>>()),
        // One replication says nothing about the next one.
        fct_ci: if medians.len() < 2 {
            (f64::NAN, f64::NAN)
        } else {
            (centre - half, centre + half)
        },
        fct_limit_s: physical_limit_s(spec) + background_s(spec, records),
        delivered_quantiles: percentiles(records, |record| &record.totals.delivery.after),
        duration_quantiles: percentiles(records, |record| &record.totals.durations),
        figures: measured,
        packets: Packets {
            up: packets(records, |record| &record.totals.up),
            down: packets(records, |record| &record.totals.down),
        },
        outcome,
        series: records.iter().filter_map(|record| record.totals.series.clone()).collect(),
        course: None,
        nodes: mesh_nodes(records),
        // The flows of classes are theirs.
        flows: if spec.scenario.class.is_empty() { flow_cell(spec, records) } else { None },
        security: handshakes(records),
        classes,
        links: link_cell::links(records),
        cross: link_cell::cross(records),
        class: String::new(),
        phase: String::new(),
        phases,
        own_control: None,
        is_periodic: false,
        command,
    }
}

/// The requirements of a class or a phase, with its name.
fn checks_of_part(part: &Cell) -> Vec<RequirementCheck> {
    let named = |check: &RequirementCheck| RequirementCheck {
        class: part.class.clone(),
        phase: part.phase.clone(),
        ..check.clone()
    };
    part.outcome.checks.iter().map(named).collect()
}

/// The figures of each phase; none in a scenario without phases.
fn phases(spec: &CellSpec, records: &[RunRecord], command: &str) -> Vec<Cell> {
    let figures = |(index, phase): (usize, &PhaseTable)| {
        let part = phases::spec(spec, phase);
        let own: Vec<RunRecord> =
            records.iter().filter_map(|record| phases::own_record(record, index)).collect();
        let mut cell = summarise(&part, &own, command.to_owned());
        // Its requirements are the phase's alone, those of classes are the whole run's.
        let demand = Demand {
            required: spec.scenario.requirements_of_phase(phase),
            each_s: 0.0,
            period_s: None,
            ..demand(&part)
        };
        (cell.outcome, cell.phase) = (judge::figures(&own, &demand), phase.name.clone());
        (cell.is_periodic, cell.fct_limit_s) = (true, 0.0);
        cell.classes.clear();
        cell
    };
    spec.scenario.phase.iter().enumerate().map(figures).collect()
}

/// The figures of each class; none in a scenario without classes.
fn classes(spec: &CellSpec, records: &[RunRecord], command: &str) -> Vec<Cell> {
    if spec.scenario.class.is_empty() {
        return Vec::new();
    }
    let figures = |(index, (class, part)): (usize, (ClassView, CellSpec))| {
        let own: Vec<RunRecord> =
            records.iter().filter_map(|record| own_record(record, index, &class)).collect();
        let mut cell = summarise(&part, &own, command.to_owned());
        (cell.class, cell.own_control) = (class.name, class.control);
        cell.links.clear();
        cell.cross.clear();
        cell.nodes.clear();
        [&LORA, &NB_IOT, &MESH].into_iter().for_each(|group| group.remove(&mut cell.figures));
        let workload = &part.scenario.workload;
        cell.is_periodic = workload.keeps_time() || workload.is_mesh();
        cell
    };
    parts(spec).into_iter().enumerate().map(figures).collect()
}
