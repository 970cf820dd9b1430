//! From results to the data of a report.

use super::campaign::Campaign;
use super::until::UntilResults;
use crate::result::{CellSpec, Origin, Report, Results, UntilPoint, VERSION, curves};
use crate::scenario::{ClassView, Override};

/// The cells named among those that are left out; more would fill the screen of a large sweep.
const NAMED: usize = 8;

/// Which cells the results leave out, and what there is of them; `None` if they are complete.
pub fn left_out(campaign: &Campaign, results: &Results) -> Option<String> {
    let missing = &results.left_out;
    if missing.is_empty() {
        return None;
    }
    if results.cells.is_empty() {
        let there: u32 = missing.iter().map(|(_, there)| there).sum();
        let all = campaign.runs();
        return Some(format!("No cell is complete: {there} of {all} replications are there."));
    }
    let swept = campaign.swept();
    let named = missing.iter().take(NAMED).filter_map(|(index, there)| {
        let mut spec = campaign.cells.get(*index)?.clone();
        spec.settings.retain(|(key, _)| swept.contains(key));
        Some(format!("{} ({there} of {} replications)", spec.name(), spec.reps))
    });
    let named: Vec<String> = named.collect();
    let more = match missing.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(format!("Left out: {}{more}.", named.join(", ")))
}

/// The JSON document of `run --json`.
pub fn document(campaign: &Campaign, results: &Results) -> serde_json::Value {
    let origin = Origin {
        scenario: &campaign.source.place,
        seed: campaign.seed,
        cells: &campaign.cells,
        percentile: campaign.percentile,
    };
    let mut document = crate::result::document(&origin, results);
    if let Some(curve) = &campaign.curve {
        document["curve"] = serde_json::json!({
            "key": curve.key,
            "work": curve.work,
            "lines": curves(&report(campaign, results)),
        });
    }
    document
}

impl UntilResults {
    /// The JSON document: the cells that were run, and the breaking points.
    pub fn document(&self) -> serde_json::Value {
        let mut document = document(&self.campaign, &self.results);
        document["until"] = self.points_document();
        document
    }

    /// The breaking points alone.
    pub fn points_document(&self) -> serde_json::Value {
        let value = |point: Option<&UntilPoint>| point.map(|point| point.value.clone());
        let points = self.points.iter().map(|one| {
            serde_json::json!({
                "cc": one.cc,
                "key": one.key,
                "side": one.side(),
                "meets": value(one.meets()),
                "surely_meets": value(one.surely_meets()),
                "surely_misses": value(one.surely_misses()),
                "required": one.required,
                "points": one.points,
            })
        });
        points.collect()
    }

    /// The report, with the command that computes it.
    pub fn report(&self) -> Report {
        Report { until: self.points.clone(), ..report(&self.campaign, &self.results) }
    }
}

/// The report on a campaign's results.
pub fn report(campaign: &Campaign, results: &Results) -> Report {
    let scenario = campaign.cells.first().map(|spec| &spec.scenario);
    let title = scenario.map_or_else(String::new, |scenario| scenario.title.clone());
    let fixed: Vec<Override> = campaign
        .axes
        .iter()
        .filter(|axis| axis.values.len() == 1)
        .map(|axis| Override { key: axis.key.clone(), value: axis.values[0].clone() })
        .collect();
    let text = match campaign.source.scenario(&fixed) {
        Ok(changed) if !fixed.is_empty() => toml::to_string_pretty(&changed).ok(),
        _ => None,
    };
    let swept = campaign.swept();
    let mut cells: Vec<_> = results.cells.iter().map(|(_, result)| result.cell.clone()).collect();
    let mut notes = Vec::new();
    let keeps_time = |class: &ClassView| class.scenario.workload.keeps_time();
    let is_periodic = scenario.is_some_and(|scenario| scenario.classes().iter().any(keeps_time));
    let is_mixed = scenario.is_some_and(|scenario| !scenario.classes().iter().all(keeps_time));
    if is_periodic && is_mixed {
        notes.push(
            "The clients of some classes keep time by themselves, so the times shown are those of single \
             exchanges, from the request to its first response, not of flows."
                .to_owned(),
        );
    } else if is_periodic {
        notes.push(
            "The workload goes by the clock: clients keep time by themselves, so the times shown are \
             those of single exchanges, from the request to its first response, not of flows."
                .to_owned(),
        );
    }
    let ours = results.cells.iter().filter_map(|(index, _)| campaign.cells.get(*index));
    let special = ours.map(CellSpec::notes).find(|own| !own.is_empty());
    notes.extend(special.into_iter().flatten().map(|note| (*note).to_owned()));
    for cell in &mut cells {
        cell.settings.retain(|(key, _)| swept.contains(key));
        if is_periodic {
            cell.fct = cell.spread("exchange_duration_s");
            cell.fct_ci = (f64::NAN, f64::NAN);
        }
    }
    let settings: Vec<String> =
        fixed.iter().map(|change| format!("{} {}", change.key, change.value)).collect();
    notes
        .extend(left_out(campaign, results).map(|which| format!("{which} Run the command again.")));
    Report {
        title,
        subtitle: settings.join(", "),
        scenario: campaign.source.place.clone(),
        description: scenario.map_or_else(String::new, |scenario| scenario.description.clone()),
        source: scenario.map_or_else(String::new, |scenario| scenario.source.clone()),
        command: campaign.command.clone(),
        version: VERSION.to_owned(),
        seed: campaign.seed,
        scenario_toml: text.unwrap_or_else(|| campaign.source.text.clone()),
        axes: swept,
        percentile: campaign.percentile,
        is_periodic,
        curve: campaign.curve.clone(),
        until: Vec::new(),
        cells,
        published: Vec::new(),
        notes,
    }
}
