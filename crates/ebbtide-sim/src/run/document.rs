//! The JSON document of `run --json`.

use super::campaign::{Campaign, CellResult, Results, VERSION};
use super::cell_spec::CellSpec;
use crate::judge::{Judgement, Outcome, Percentile, SHARES, Verdict};
use crate::report::judge_classes;
use crate::report::{Cell, PacketCounts, Summary};
use serde_json::{Map, Value, json};

/// One document: `scenario`, `seed`, `version` and one cell per combination and control.
#[must_use]
pub fn document(campaign: &Campaign, results: &Results) -> Value {
    let judged = results.judged(campaign.percentile);
    let verdict_on = |cell: &Cell| {
        let of =
            |(group, _): &&(Vec<&CellResult>, Verdict)| group[0].cell.settings == cell.settings;
        judged.iter().find(of).and_then(|(_, verdict)| verdict.of(&cell.cc))
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
                "unnecessary_retransmissions": summary(&cell.unnecessary),
                "duplicate_responses": summary(&cell.duplicates),
                "exchanges_by_retransmissions": cell.by_retransmissions,
                "completed": cell.completed,
                "failed": cell.failed,
                "packets": {"up": packets(&cell.packets.up), "down": packets(&cell.packets.down)},
                "rtt_s": summary(&cell.rtt),
                "exchange_duration_s": summary(&cell.duration),
                "timeouts": summary(&cell.timeouts),
                "probes": summary(&cell.probes),
                "largest_timeout_s": summary(&cell.largest_timeout),
                "utilisation": {"up": cell.utilisation_up, "down": cell.utilisation_down},
                "goodput_bps": number(cell.goodput_bps),
                "jain": number(cell.jain),
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
            let notes = campaign.cells.get(*index).map_or(&[][..], CellSpec::notes);
            if !notes.is_empty() {
                object.insert("notes".into(), notes.into());
            }
            if let Some(mesh) = &cell.mesh {
                object.insert("mesh".into(), serde_json::to_value(mesh).unwrap_or_default());
            }
            if let Some(wifi) = &cell.wifi {
                object.insert("wifi".into(), serde_json::to_value(wifi).unwrap_or_default());
            }
            if let Some(tcp) = &cell.background {
                object.insert("background".into(), serde_json::to_value(tcp).unwrap_or_default());
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
            if let Some(lora) = &cell.lora {
                object.insert("lora".into(), serde_json::to_value(lora).unwrap_or_default());
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
            if !result.halves.is_empty() {
                let halves = result.halves.iter();
                let halves = halves.map(|half| {
                    json!({"cc": half.cc, "fct_s": summary(&half.fct),
                           "unnecessary_retransmissions": summary(&half.unnecessary)})
                });
                object.insert("halves".into(), halves.collect());
            }
            Value::Object(object)
        })
        .collect();
    json!({
        "scenario": campaign.source.place,
        "seed": campaign.seed,
        "version": VERSION,
        "cells": cells,
        "settings": judged
            .iter()
            .map(|(group, verdict)| setting(group, verdict, campaign.percentile))
            .collect::<Vec<Value>>(),
    })
}

/// The figures that a cell is judged by.
fn outcome(outcome: &Outcome) -> Map<String, Value> {
    let all = &outcome.all;
    let by = all.delivered_by_s.iter().zip(SHARES);
    let by: Map<String, Value> =
        by.map(|(time, share)| (share.to_string(), (*time).into())).collect();
    let value = json!({
        "asked": outcome.asked,
        "delivered": number(all.delivered),
        "arrived": number(all.arrived),
        "unnecessary_share": number(all.unnecessary_share),
        "transmissions_per_delivered": number(all.transmissions_per_delivered),
        "bytes_per_delivered": number(all.bytes_per_delivered),
        "delivered_by_s": by,
        "goodput_share": number(all.goodput_share),
        "deadline_missed": all.deadline_missed,
        "fairness": number(all.fairness),
    });
    if let Value::Object(object) = value { object } else { Map::new() }
}

/// The figures of one class of clients.
fn class(cell: &Cell) -> Value {
    let value = json!({
        "class": cell.class,
        "control": cell.own_control,
        "clients": cell.clients,
        "fct_s": summary(&cell.fct),
        "fct_limit_s": cell.fct_limit_s,
        "unnecessary_retransmissions": summary(&cell.unnecessary),
        "exchanges_by_retransmissions": cell.by_retransmissions,
        "completed": cell.completed,
        "failed": cell.failed,
        "rtt_s": summary(&cell.rtt),
        "exchange_duration_s": summary(&cell.duration),
        "goodput_bps": number(cell.goodput_bps),
        "jain": number(cell.jain),
    });
    let mut object = if let Value::Object(object) = value { object } else { Map::new() };
    object.extend(outcome(&cell.outcome));
    if let Some(flows) = &cell.flows {
        object.insert("flows".into(), serde_json::to_value(flows).unwrap_or_default());
    }
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
