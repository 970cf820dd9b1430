//! A map as JSON.

use super::regret::Spread;
use super::result::{Map, RegretSummary};
use super::run::Plan;
use serde_json::{Value, json};

/// The map as one JSON document.
#[must_use]
pub fn document(plan: &Plan, map: &Map) -> Value {
    let three = |spread: Option<Spread>| {
        spread.map(|s| json!({"mean": s.mean, "p95": s.p95, "worst": s.worst}))
    };
    let regret = |regret: &RegretSummary| {
        json!({
            "share": {"p5": regret.share_p5, "worst": regret.share_worst},
            "median": three(regret.median),
            "p90": three(regret.p90),
            "transmissions": three(regret.cost),
        })
    };
    let summaries = map.summaries().into_iter().map(|s| {
        let mut summary = regret(&s.regret);
        summary["cc"] = s.cc.into();
        summary["overloaded"] = s.overloaded.into();
        summary["unsafe"] = s.unsafe_in.into();
        summary["unsafe_with_a_share"] = s.unsafe_with_a_share.into();
        summary
    });
    let networks = map.cells.iter().map(|cell| {
        let controls = map.controls.iter().zip(cell.measures.iter().zip(&cell.regrets));
        let controls: serde_json::Map<String, Value> = controls
            .map(|(cc, (measures, regret))| {
                let value = json!({
                    "measures": measures,
                    "regret": {
                        "share": regret.share, "median": regret.median,
                        "p90": regret.p90, "transmissions": regret.cost,
                    },
                    "safe": measures.is_safe(&cell.network),
                });
                (cc.clone(), value)
            })
            .collect();
        let settings: serde_json::Map<String, Value> = cell
            .network
            .settings
            .iter()
            .map(|(key, value)| (key.clone(), value.clone().into()))
            .collect();
        json!({
            "network": cell.network.number,
            "settings": settings,
            "load": cell.network.load(),
            "idle_s": cell.network.idle_s,
            "exchange_s": cell.network.exchange_s,
            "buffer_bdp": cell.network.buffer_bdp(),
            "controls": controls,
        })
    });
    let ranges: serde_json::Map<String, Value> =
        plan.ranges.written().map(|(name, range)| (name.to_owned(), range.into())).collect();
    json!({
        "command": plan.command_line(),
        "preset": plan.preset,
        "ranges": ranges,
        "reps": plan.reps,
        "seed": plan.seed,
        "published": plan.published,
        "summaries": summaries.collect::<Vec<_>>(),
        "chance": map.chance().as_ref().map(regret),
        "networks": networks.collect::<Vec<_>>(),
        "left_out": map.left_out,
    })
}
