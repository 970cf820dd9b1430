//! Requests and their answers. A request is a line of JSON; what follows the line belongs to it as bytes. Answers are
//! JSON, except for the bytes of a replication. Several sessions with the same `open` share a campaign: some compute
//! replications, one adds them and shows what they come to.

use ebbtide_core::cc::Algorithm;
use ebbtide_report::{Look, looks, render};
use ebbtide_sim::record::RunRecord;
use ebbtide_sim::result::{Cell, CellSpec, CoarseTime, Course, CoursePoint, Report, Results};
use ebbtide_sim::run::{Campaign, TimeGrid, document, report};
use ebbtide_sim::scenario::{
    BUILTIN, Source, load, parse_controls, parse_count, parse_seed, parse_set,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

/// The length of a step of the series, ns; long replications have longer ones.
const STEP_NS: u64 = 100_000_000;

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// The built-in scenarios and the controls.
    List,
    /// Begins a campaign.
    Open(Plan),
    /// Runs one replication; the answer is its record and, in a second line, its course over time.
    Compute { cell: usize, replication: u32 },
    /// Adds a replication, whose bytes follow. Those of a cell come in the order of their numbers.
    Add { cell: usize },
    /// The verdict, the courses and the report on the records so far.
    Show,
    /// The document of `ebbtide run --json`.
    Document,
}

/// A campaign as the command line has it, with the texts of its options.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// The name of a scenario, or of the file with this text.
    scenario: String,
    #[serde(default)]
    toml: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    cc: String,
    reps: String,
    seed: String,
}

/// The state behind the page.
#[derive(Default)]
pub(crate) struct Session {
    campaign: Option<Campaign>,
    /// The records of each cell.
    records: Vec<Vec<RunRecord>>,
    /// The courses of each cell's replications.
    courses: Vec<Vec<CoarseTime>>,
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
                let made =
                    campaign.replicate(spec, replication).map_err(|error| error.to_string())?;
                let mut bytes = made.record.to_bytes().map_err(|error| error.to_string())?;
                bytes.push(b'\n');
                serde_json::to_writer(&mut bytes, &made.course)
                    .map_err(|error| error.to_string())?;
                Ok(bytes)
            }
            Request::Add { cell } => {
                let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
                let (record, course) = bytes.split_at(end);
                let record = RunRecord::from_bytes(record).map_err(|error| error.to_string())?;
                let course: Option<CoarseTime> =
                    serde_json::from_slice(course).map_err(|error| error.to_string())?;
                let own = self.records.get_mut(cell).ok_or("there is no such cell")?;
                own.push(record);
                self.courses[cell].extend(course);
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
        // As the command's parser of options says it.
        let option = |option: &str, text: &str, error: String| {
            format!("invalid value '{text}' for '{option}': {error}")
        };
        let reps =
            parse_count(&plan.reps).map_err(|error| option("--reps <N>", &plan.reps, error))?;
        let seed =
            parse_seed(&plan.seed).map_err(|error| option("--seed <S>", &plan.seed, error))?;
        let controls = parse_controls(&plan.cc)?;
        let source = match plan.toml {
            Some(toml) => Source::new(plan.scenario, toml),
            None => load(&plan.scenario).map_err(|error| error.to_string())?,
        };
        let text = source.text.clone();
        let axes = plan.set.iter().map(|text| parse_set(text)).collect::<Result<_, _>>();
        let axes = axes.map_err(|error| error.to_string())?;
        let campaign = Campaign::plan(source, axes, controls, Some(reps), Some(seed));
        let mut campaign = campaign.map_err(|error| error.to_string())?;
        campaign.over_time = Some(TimeGrid { step_ns: STEP_NS, clients: Vec::new() });
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
        self.courses = campaign.cells.iter().map(|_| Vec::new()).collect();
        self.campaign = Some(campaign);
        Ok(opened)
    }

    /// The results so far, each cell with its course.
    fn results(&self, campaign: &Campaign) -> Results {
        let mut results = campaign.results(&self.records);
        for (index, result) in &mut results.cells {
            result.cell.course = Course::new(self.courses[*index].clone());
        }
        results
    }

    fn show(&self) -> Result<Value, String> {
        let campaign = self.campaign()?;
        let results = self.results(campaign);
        let command = campaign.command_into(Path::new("results"));
        let report = Report { command, ..report(campaign, &results) };
        let looks = looks(&report);
        let settings = results.judged(campaign.percentile).into_iter().map(|(group, verdict)| {
            let rows = group.iter().map(|result| {
                let judgement = verdict.judgement_of(&result.cell.cc);
                let look = report.cells.iter().position(|cell| cell.cc == result.cell.cc);
                let look = look.and_then(|place| looks.get(place));
                row(&result.cell, judgement.map_or("", |found| found.word()), look)
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
        let page = render(&report);
        Ok(json!({ "replications": replications, "settings": settings, "report": page }))
    }
}

/// What a control does over time, for the animation.
fn course(course: &Course) -> Value {
    let quantities = course.quantities.iter().map(|quantity| {
        let values =
            |of: fn(&CoursePoint) -> f64| -> Vec<f64> { quantity.points.iter().map(of).collect() };
        json!({
            "name": quantity.name,
            "unit": quantity.unit,
            "low": values(|point| point.low),
            "median": values(|point| point.median),
            "high": values(|point| point.high),
        })
    });
    json!({ "step_s": course.step_s, "quantities": quantities.collect::<Vec<Value>>() })
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
fn row(cell: &Cell, judgement: &str, look: Option<&Look>) -> Value {
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
        "look": look.map(|look| json!({ "light": look.light, "dark": look.dark, "dash": look.dash })),
        "course": cell.course.as_ref().map(course),
    })
}
