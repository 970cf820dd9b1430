//! A map as JSON.

use super::plan::Plan;
use super::ranges::Ranges;
use super::regret::Spread;
use super::result::{Map, MapSummary, RegretSummary};
use serde_json::{Value, json};

/// The map as one JSON document.
pub fn document(plan: &Plan, map: &Map) -> Value {
    let three = |spread: Option<Spread>| {
        spread.map(|s| json!({"mean": s.mean, "p95": s.p95, "worst": s.worst}))
    };
    let regret = |regret: &RegretSummary| {
        json!({
            "share": {"mean": regret.share_mean, "p5": regret.share_p5, "worst": regret.share_worst},
            "median": three(regret.median),
            "p90": three(regret.p90),
            "transmissions": three(regret.cost),
        })
    };
    let summary = |s: MapSummary| {
        let mut summary = regret(&s.regret);
        summary["cc"] = s.cc.into();
        summary["overloaded"] = s.overloaded.into();
        summary["unsafe"] = s.unsafe_in.into();
        summary["unsafe_with_a_share"] = s.unsafe_with_a_share.into();
        summary["unsafe_where_another_is_safe"] = s.unsafe_where_another_is_safe.into();
        summary
    };
    let strata = plan.strata.iter().enumerate().map(|(place, stratum)| {
        let drawn = plan.networks.iter().filter(|network| network.stratum == place).count();
        let summaries = map.summaries_in(place).into_iter().map(summary);
        json!({
            "name": stratum.name,
            "networks": drawn,
            "work": stratum.work,
            "ranges": written(&stratum.ranges),
            "summaries": summaries.collect::<Vec<_>>(),
        })
    });
    let networks = map.cells.iter().map(|cell| {
        let places = map.controls.iter().enumerate();
        let controls: serde_json::Map<String, Value> = places
            .map(|(place, cc)| {
                let (measures, regret) = (&cell.measures[place], &cell.regrets[place]);
                let safer: Vec<&str> =
                    cell.safer[place].iter().map(|other| map.controls[*other].as_str()).collect();
                let value = json!({
                    "measures": measures,
                    "regret": {
                        "share": regret.share, "median": regret.median,
                        "p90": regret.p90, "transmissions": regret.cost,
                    },
                    "safe": measures.is_safe(&cell.network),
                    "safe_there": safer,
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
            "stratum": plan.strata[cell.network.stratum].name,
            "settings": settings,
            "load": cell.network.load(),
            "idle_s": cell.network.idle_s,
            "exchange_s": cell.network.exchange_s,
            "buffer_bdp": cell.network.buffer_bdp(),
            "controls": controls,
        })
    });
    let strata: Vec<Value> = strata.collect();
    json!({
        "command": plan.command_line(),
        "preset": plan.preset,
        "ranges": written(&plan.ranges),
        "reps": plan.reps,
        "seed": plan.seed,
        "published": plan.published,
        "summaries": map.summaries().into_iter().map(summary).collect::<Vec<_>>(),
        "strata": strata,
        "rule": rule(map),
        "chance": map.chance().as_ref().map(regret),
        "networks": networks.collect::<Vec<_>>(),
        "left_out": map.left_out,
    })
}

fn written(ranges: &Ranges) -> serde_json::Map<String, Value> {
    ranges.written().map(|(name, range)| (name.to_owned(), range.into())).collect()
}

/// The result of the rule: the control to take as the default, its equals, and the step at which each other one falls.
fn rule(map: &Map) -> Value {
    let chosen = map.chosen();
    let name = |place: usize| map.controls[place].as_str();
    let beaten = chosen.beaten.iter().map(|one| {
        json!({
            "cc": name(one.place),
            "step": one.step.to_string(),
            "by": name(one.by),
            "mean": one.mean,
            "half": one.half,
        })
    });
    json!({
        "choose": chosen.best.map(name),
        "equals": chosen.equals.iter().map(|place| name(*place)).collect::<Vec<_>>(),
        "beaten": beaten.collect::<Vec<_>>(),
    })
}
