//! Requests and their answers. A request is a line of JSON; what follows the line belongs to it as bytes. Answers are
//! JSON, except for the bytes of a record. Several sessions with the same `open` share a campaign: some compute
//! replications, one adds them and shows what they come to.

use ebbtide_core::cc::Algorithm;
use ebbtide_report::render;
use ebbtide_sim::record::RunRecord;
use ebbtide_sim::result::{Cell, CellSpec};
use ebbtide_sim::run::{Campaign, document, report};
use ebbtide_sim::scenario::{BUILTIN, Source, load, parse_set};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// The built-in scenarios and the controls.
    List,
    /// Begins a campaign.
    Open(Plan),
    /// Runs one replication; the answer is its record.
    Compute { cell: usize, replication: u32 },
    /// Adds a record, whose bytes follow. Those of a cell come in the order of their replications.
    Add { cell: usize },
    /// The verdict and the report on the records so far.
    Show,
    /// The document of `ebbtide run --json`.
    Document,
}

/// A campaign as the command line has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// The name of a scenario, or of the file with this text.
    scenario: String,
    #[serde(default)]
    toml: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    cc: Vec<String>,
    #[serde(default)]
    reps: Option<u32>,
    #[serde(default)]
    seed: Option<u64>,
}

/// The state behind the page.
#[derive(Default)]
pub(crate) struct Session {
    campaign: Option<Campaign>,
    /// The records of each cell.
    records: Vec<Vec<RunRecord>>,
}

impl Session {
    /// Answers a request; an error is an object with the key `error`.
    pub(crate) fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let end = request.iter().position(|byte| *byte == b'\n').unwrap_or(request.len());
        let (line, rest) = request.split_at(end);
        let read = serde_json::from_slice(line).map_err(|error| error.to_string());
        let answer =
            read.and_then(|request| self.fulfil(request, rest.get(1..).unwrap_or_default()));
        answer.unwrap_or_else(|error| json!({ "error": error }).to_string().into_bytes())
    }

    fn fulfil(&mut self, request: Request, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let text = |value: &Value| value.to_string().into_bytes();
        match request {
            Request::List => Ok(text(&list())),
            Request::Open(plan) => self.open(plan).map(|value| text(&value)),
            Request::Compute { cell, replication } => {
                let campaign = self.campaign()?;
                let spec = campaign.cells.get(cell).ok_or("there is no such cell")?;
                let record =
                    campaign.record(spec, replication).map_err(|error| error.to_string())?;
                record.to_bytes().map_err(|error| error.to_string())
            }
            Request::Add { cell } => {
                let record = RunRecord::from_bytes(bytes).map_err(|error| error.to_string())?;
                let own = self.records.get_mut(cell).ok_or("there is no such cell")?;
                own.push(record);
                Ok(text(&json!({ "records": own.len() })))
            }
            Request::Show => self.show().map(|value| text(&value)),
            Request::Document => {
                let campaign = self.campaign()?;
                let document = document(campaign, &campaign.results(&self.records));
                serde_json::to_vec_pretty(&document).map_err(|error| error.to_string())
            }
        }
    }

    fn campaign(&self) -> Result<&Campaign, String> {
        self.campaign.as_ref().ok_or_else(|| "nothing is open".to_owned())
    }

    fn open(&mut self, plan: Plan) -> Result<Value, String> {
        let source = match plan.toml {
            Some(toml) => Source::new(plan.scenario, toml),
            None => load(&plan.scenario).map_err(|error| error.to_string())?,
        };
        let text = source.text.clone();
        let axes = plan.set.iter().map(|text| parse_set(text)).collect::<Result<_, _>>();
        let axes = axes.map_err(|error| error.to_string())?;
        let campaign = Campaign::plan(source, axes, plan.cc, plan.reps, plan.seed);
        let campaign = campaign.map_err(|error| error.to_string())?;
        let cells = campaign.cells.iter().map(|spec| json!({ "cc": spec.cc, "reps": spec.reps }));
        let first = campaign.cells.first().ok_or("there is no control")?;
        let scenario = &first.scenario;
        let keys = keys(first);
        let opened = json!({
            "title": scenario.title,
            "description": scenario.description,
            "toml": text,
            "command": campaign.command,
            "seed": campaign.seed,
            "cells": cells.collect::<Vec<Value>>(),
            "keys": keys,
            "unreachable": campaign.unreachable_requirements(),
        });
        self.records = campaign.cells.iter().map(|_| Vec::new()).collect();
        self.campaign = Some(campaign);
        Ok(opened)
    }

    fn show(&self) -> Result<Value, String> {
        let campaign = self.campaign()?;
        let results = campaign.results(&self.records);
        let settings = results.judged(campaign.percentile).into_iter().map(|(group, verdict)| {
            let rows = group.iter().map(|result| {
                let judgement = verdict.judgement_of(&result.cell.cc);
                row(&result.cell, judgement.map_or("", |found| found.word()))
            });
            let label = group.first().map(|result| result.cell.settings.clone());
            json!({
                "settings": label,
                "sentence": verdict.sentence,
                "choose": verdict.choose,
                "rows": rows.collect::<Vec<Value>>(),
            })
        });
        let settings: Vec<Value> = settings.collect();
        let replications = self.records.iter().map(Vec::len).min();
        let page = render(&report(campaign, &results));
        Ok(json!({ "replications": replications, "settings": settings, "report": page }))
    }
}

fn list() -> Value {
    let scenarios = BUILTIN.iter().map(|builtin| builtin.name);
    let controls = Algorithm::ALL.iter().map(|control| control.name());
    json!({
        "scenarios": scenarios.collect::<Vec<&str>>(),
        "controls": controls.collect::<Vec<&str>>(),
    })
}

/// Keys that the form offers in addition to a scenario's short names, if no short name stands for them.
const OFFERED: [&str; 11] = [
    "clients.count",
    "network.up.rate",
    "network.down.rate",
    "network.up.delay",
    "network.up.buffer",
    "network.errors",
    "workload.exchanges",
    "workload.period",
    "workload.deadline",
    "require.in_time",
    "require.transmissions",
];

/// Those of them that a file need not have.
const OPTIONAL: [&str; 3] = ["workload.deadline", "require.in_time", "require.transmissions"];

/// The keys of the form with their values; an empty one is not set.
fn keys(spec: &CellSpec) -> Vec<Value> {
    let scenario = &spec.scenario;
    let named: Vec<&String> = scenario.keys.values().flatten().collect();
    let is_free = |key: &&str| !named.iter().any(|path| path == key);
    let names = scenario.keys.keys().map(String::as_str);
    let key = |name: &str| {
        let paths = scenario.keys.get(name).map(Vec::as_slice).unwrap_or_default();
        let is_errors = name == "network.errors" || paths == ["network.errors"];
        let none = || std::iter::once("none".to_owned());
        let profiles = || none().chain(scenario.errors.keys().cloned()).collect();
        let choices: Vec<String> = if is_errors { profiles() } else { Vec::new() };
        let absent = OPTIONAL.contains(&name).then(String::new);
        let value = spec.value_of(name).or(absent)?;
        // Classes of devices have their own numbers.
        let is_sum = name == "clients.count" && !scenario.class.is_empty();
        (!is_sum).then(|| json!({ "name": name, "value": value, "choices": choices }))
    };
    names.chain(OFFERED.into_iter().filter(is_free)).filter_map(key).collect()
}

/// A line of the table.
fn row(cell: &Cell, judgement: &str) -> Value {
    let all = &cell.outcome.all;
    let checks = cell.outcome.checks.iter().map(|check| {
        json!({ "text": check.text(), "found": check.found_text(), "met": check.met().is_met() })
    });
    json!({
        "cc": cell.cc,
        "judgement": judgement,
        "delivered": all.delivered,
        "delivered_by_99_s": all.delivered_by_s[2],
        "unnecessary": all.unnecessary_share,
        "sent": all.transmissions_per_delivered,
        "checks": checks.collect::<Vec<Value>>(),
    })
}
