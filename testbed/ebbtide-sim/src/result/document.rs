//! The JSON document of `run --json`.

use super::cell_spec::CellSpec;
use super::figures::Value as Figure;
use super::judged::{judge_classes, judge_phases};
use super::metric::Metric;
use super::metrics::{CELL, GROUPS, OUTCOME};
use super::model::{Cell, PacketCounts};
use super::results::{CellResult, Results, VERSION};
use crate::judge::{ControlOutcome, Judgement, Percentile, RequirementCheck, Verdict};
use crate::stats::Summary;
use serde_json::{Map, Value, json};

/// The scenario, the seed and the cells behind a document.
#[derive(Copy, Clone, Debug)]
pub struct Origin<'a> {
    /// The scenario, as `run` takes it.
    pub scenario: &'a str,
    /// Seed of the random streams.
    pub seed: u64,
    /// The cells, in order.
    pub cells: &'a [CellSpec],
    /// The share of the exchanges by whose time the controls are compared.
    pub percentile: Percentile,
}

/// One document: `scenario`, `seed`, `version` and one cell per combination and control.
pub fn document(origin: &Origin<'_>, results: &Results) -> Value {
    let judged = results.judged(origin.percentile);
    let verdict_on = |cell: &Cell| {
        let of =
            |(group, _): &&(Vec<&CellResult>, Verdict)| group[0].cell.settings == cell.settings;
        judged.iter().find(of).and_then(|(_, verdict)| verdict.judgement_of(&cell.cc))
    };
    let cells: Vec<Value> = results
        .cells
        .iter()
        .map(|(index, result)| {
            let cell = &result.cell;
            let mut object = Map::new();
            object.insert("cc".into(), cell.cc.clone().into());
            for (key, value) in &cell.settings {
                object.insert(key.clone(), as_written(value));
            }
            let rest = json!({
                "reps": cell.reps,
                "fct_s": summary(&cell.fct),
                "fct_median_ci95_s": [number(cell.fct_ci.0), number(cell.fct_ci.1)],
                "fct_limit_s": cell.fct_limit_s,
                "packets": {"up": packets(&cell.packets.up), "down": packets(&cell.packets.down)},
                "events": result.events,
                "wall_s": result.wall_s,
                "sim_s": result.sim_s,
            });
            if let Value::Object(rest) = rest {
                object.extend(rest);
            }
            object.extend(outcome(&cell.outcome));
            let judgement = verdict_on(cell).map(Judgement::word);
            object.insert("judgement".into(), judgement.into());
            let notes = origin.cells.get(*index).map_or(&[][..], CellSpec::notes);
            if !notes.is_empty() {
                object.insert("notes".into(), notes.into());
            }
            for group in GROUPS.iter().filter(|group| group.is_of(cell)) {
                insert(&mut object, cell, group.metrics.iter());
            }
            if !cell.nodes.is_empty() {
                let nodes = serde_json::to_value(&cell.nodes);
                nest(&mut object, "mesh.nodes", nodes.unwrap_or_default());
            }
            if let Some(security) = &cell.security {
                object
                    .insert("security".into(), serde_json::to_value(security).unwrap_or_default());
            }
            if let Some(flows) = &cell.flows {
                object.insert("flows".into(), serde_json::to_value(flows).unwrap_or_default());
            }
            if !cell.links.is_empty() {
                let links = serde_json::to_value(&cell.links);
                object.insert("links".into(), links.unwrap_or_default());
            }
            if !cell.cross.is_empty() {
                let of = |(name, counts): &(String, PacketCounts)| (name.clone(), packets(counts));
                let cross: Map<String, Value> = cell.cross.iter().map(of).collect();
                object.insert("cross".into(), cross.into());
            }
            if !cell.classes.is_empty() {
                let classes = cell.classes.iter().map(class);
                object.insert("classes".into(), classes.collect());
            }
            if !cell.phases.is_empty() {
                object.insert("phases".into(), cell.phases.iter().map(phase).collect());
            }
            if !result.halves.is_empty() {
                let halves = result.halves.iter();
                let halves = halves.map(|half| {
                    json!({"cc": half.cc, "fct_s": summary(&half.fct),
                           "unnecessary_retransmissions": summary(&half.spread("unnecessary_retransmissions"))})
                });
                object.insert("halves".into(), halves.collect());
            }
            Value::Object(object)
        })
        .collect();
    json!({
        "scenario": origin.scenario,
        "seed": origin.seed,
        "version": VERSION,
        "cells": cells,
        "settings": judged
            .iter()
            .map(|(group, verdict)| setting(group, verdict, origin.percentile))
            .collect::<Vec<Value>>(),
    })
}

/// Adds measured figures of a cell under their names.
fn insert<'m>(
    object: &mut Map<String, Value>,
    cell: &Cell,
    metrics: impl Iterator<Item = &'m Metric>,
) {
    for metric in metrics {
        if let Some(value) = cell.figures.get(metric.name) {
            nest(object, metric.name, value_of(value));
        }
    }
}

/// Sets a value in nested objects, into which the dots of its name lead.
fn nest(object: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => drop(object.insert(name.to_owned(), value)),
        Some((first, rest)) => {
            let inner = object.entry(first).or_insert(Value::Null);
            // A setting may have the name of a group.
            if !inner.is_object() {
                *inner = Map::new().into();
            }
            if let Value::Object(inner) = inner {
                nest(inner, rest, value);
            }
        }
    }
}

fn value_of(value: &Figure) -> Value {
    match value {
        Figure::Count(count) => (*count).into(),
        Figure::Number(value) => number(*value),
        Figure::Mean(mean, half) => json!([number(*mean), number(*half)]),
        Figure::Spread(spread) => summary(spread),
        Figure::Counts(counts) => counts.clone().into(),
        Figure::Quantiles(values) => values.iter().copied().map(number).collect(),
    }
}

/// The figures that a cell is judged by.
fn outcome(outcome: &ControlOutcome) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("asked".into(), outcome.asked.into());
    for metric in &OUTCOME {
        let value = (metric.value)(&outcome.all).map_or(Value::Null, number);
        nest(&mut object, metric.name, value);
    }
    if !outcome.checks.is_empty() {
        object.insert("requirements".into(), outcome.checks.iter().map(requirement).collect());
    }
    object
}

/// A requirement beside what the control has come to.
fn requirement(check: &RequirementCheck) -> Value {
    let wanted = &check.requirement;
    let mut value = json!({
        "figure": wanted.figure.key(),
        "required": number(wanted.wanted),
        "found": number(check.found),
        "half": number(check.half),
        "met": check.met().is_met(),
    });
    if !check.class.is_empty() {
        value["class"] = check.class.clone().into();
    }
    if !check.phase.is_empty() {
        value["phase"] = check.phase.clone().into();
    }
    if let Some(within) = wanted.within_s {
        value["deadline_s"] = number(within);
    }
    value
}

/// The figures of one class of clients.
fn class(cell: &Cell) -> Value {
    let value = json!({
        "class": cell.class,
        "control": cell.own_control,
        "clients": cell.clients,
        "fct_s": summary(&cell.fct),
        "fct_limit_s": cell.fct_limit_s,
    });
    let mut object = if let Value::Object(object) = value { object } else { Map::new() };
    insert(&mut object, cell, CELL.metrics.iter().filter(|metric| metric.of_classes));
    object.extend(outcome(&cell.outcome));
    if let Some(flows) = &cell.flows {
        object.insert("flows".into(), serde_json::to_value(flows).unwrap_or_default());
    }
    Value::Object(object)
}

/// The figures of one phase.
fn phase(cell: &Cell) -> Value {
    let mut object = Map::new();
    object.insert("phase".into(), cell.phase.clone().into());
    let names = ["exchange_duration_s", "rtt_s", "exchanges_by_retransmissions"];
    let own = CELL.metrics.iter().filter(|metric| names.contains(&metric.name));
    insert(&mut object, cell, own);
    object.extend(outcome(&cell.outcome));
    Value::Object(object)
}

/// The judgement on a setting.
fn setting(group: &[&CellResult], verdict: &Verdict, percentile: Percentile) -> Value {
    let settings = group.first().map_or(&[][..], |result| &result.cell.settings);
    let settings: Map<String, Value> =
        settings.iter().map(|(key, value)| (key.clone(), as_written(value))).collect();
    let words = |verdict: &Verdict| {
        json!({
            "sentence": verdict.sentence, "choose": verdict.choose, "percentile": verdict.percent,
        })
    };
    let mut value = json!({"settings": settings, "verdict": words(verdict)});
    let classes = judge_classes(group.iter().map(|result| &result.cell), percentile);
    if !classes.is_empty() {
        let class = |(cells, verdict): &(Vec<&Cell>, Verdict)| {
            let mut value = words(verdict);
            value["class"] = cells.first().map(|cell| cell.class.clone()).into();
            value
        };
        value["classes"] = classes.iter().map(class).collect();
    }
    let phases = judge_phases(group.iter().map(|result| &result.cell), percentile);
    if !phases.is_empty() {
        let phase = |(cells, verdict): &(Vec<&Cell>, Verdict)| {
            let mut value = words(verdict);
            value["phase"] = cells.first().map(|cell| cell.phase.clone()).into();
            value
        };
        value["phases"] = phases.iter().map(phase).collect();
    }
    value
}

/// Numbers as numbers: `clients` is compared and plotted, not only printed.
fn as_written(value: &str) -> Value {
    value.parse().map_or_else(|_| value.into(), Value::Number)
}

fn summary(s: &Summary) -> Value {
    json!({
        "min": number(s.min), "p10": number(s.p10), "p25": number(s.p25),
        "median": number(s.median), "p75": number(s.p75), "p90": number(s.p90),
        "max": number(s.max),
    })
}

/// Null where there is no number.
fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn packets(p: &PacketCounts) -> Value {
    let mut value = json!({
        "sent": p.sent, "delivered": p.delivered,
        "dropped_queue": p.dropped_queue, "lost_link": p.lost_link,
    });
    if p.marked > 0 {
        value["marked"] = p.marked.into();
    }
    value
}
