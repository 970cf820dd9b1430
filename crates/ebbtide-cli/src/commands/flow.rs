//! `ebbtide bench --scenario`: a scenario's clients with real sockets.

use crate::client::{block_on, flow};
use crate::failure::Failure;
use crate::output::number::significant;
use clap::Args;
use ebbtide::Uri;
use ebbtide::congestion::ControlConfig;
use ebbtide_sim::result::Summary;
use ebbtide_sim::run::simulate;
use ebbtide_sim::scenario::{
    Activity, BackToBack, Control, Override, Scenario, combinations, load, parse_set,
};
use ebbtide_sim::stats::summary;
use serde_json::json;
use std::io::{self, Write};
use std::time::Duration;

#[derive(Args, Debug)]
pub(crate) struct FlowArgs {
    /// Instead of a load, the clients of a scenario: as many, with its workload (continuous or
    /// random) and its parameters, for their flow completion times
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["clients", "window", "duration", "requests", "addresses", "method", "payload", "engine"])]
    scenario: Option<String>,
    /// Set a key of the scenario
    #[arg(long, value_name = "KEY=VALUE", requires = "scenario")]
    set: Vec<String>,
    /// Seed of the sizes of batches, as in `run` [default: the scenario's]
    #[arg(long, value_name = "S", requires = "scenario")]
    seed: Option<u64>,
    /// Simulate the same with N replications as well, and print the result next to the measured
    /// one
    #[arg(long, value_name = "N", requires = "scenario", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    simulate: Option<u32>,
}

impl FlowArgs {
    /// Whether a scenario was named.
    pub(crate) const fn is_asked_for(&self) -> bool {
        self.scenario.is_some()
    }
}

/// The scenario with this name, with settings applied that have one value each.
pub(crate) fn scenario(name: &str, set: &[String]) -> Result<Scenario, Failure> {
    let axes = set.iter().map(|text| parse_set(text)).collect::<Result<Vec<_>, _>>();
    let axes = axes.map_err(Failure::usage)?;
    if let Some(axis) = axes.iter().find(|axis| axis.values.len() > 1) {
        let key = &axis.key;
        return Err(Failure::usage(format_args!("--set {key}: takes one value here, not a sweep")));
    }
    let settings: Vec<Override> = combinations(&axes).into_iter().next().unwrap_or_default();
    load(name).and_then(|source| source.scenario(&settings)).map_err(Failure::usage)
}

/// Runs the flows and prints their durations.
///
/// # Errors
///
/// Returns an error if an argument is wrong. Failed exchanges lead to exit code 1.
pub(crate) fn run(args: &FlowArgs, uri: &str, cc: &str, as_json: bool) -> Result<(), Failure> {
    let name = args.scenario.as_deref().unwrap_or_default();
    let scenario = scenario(name, &args.set)?;
    let parsed: Uri = uri.parse()?;
    let Control::Udp(control) = scenario.control_config(cc).map_err(Failure::usage)? else {
        return Err(Failure::usage("--cc tcp: the URI chooses TCP, as in coap+tcp://HOST"));
    };
    let activity = scenario.workload.activity();
    if !matches!(activity, Activity::BackToBack(BackToBack::Continuous | BackToBack::Random(_))) {
        return Err(Failure::usage("--scenario: only workloads continuous and random have flows"));
    }
    if scenario.workload.request_payload > 0 || scenario.coap.nstart > 1 {
        let message = "--scenario: only GET (request_payload = 0) with nstart = 1";
        return Err(Failure::usage(message));
    }
    let seed = args.seed.unwrap_or(scenario.run.seed);
    let flows = block_on(flow::run(&parsed, &scenario, control.clone(), seed))?;
    let sum = |field: fn(&flow::Flow) -> u64| flows.iter().map(field).sum::<u64>();
    let (completed, failed) = (sum(|f| f.completed.into()), sum(|f| f.failed.into()));
    let retransmissions = sum(|flow| flow.retransmissions);
    let each: Vec<f64> = flows.iter().map(|flow| flow.completion.as_secs_f64()).collect();
    let fct = summary(&mut each.clone());
    let durations = flows.iter().flat_map(|flow| &flow.durations);
    let duration = summary(&mut durations.map(Duration::as_secs_f64).collect::<Vec<_>>());
    let simulated = args.simulate.map(|reps| simulated(&scenario, control, seed, reps));
    let mut simulated = simulated.transpose()?;
    let mut out = io::stdout().lock();
    if as_json {
        let beside = simulated.as_mut().map(|each| {
            let fct = summary(each);
            json!({"fct_s": seven(&fct), "fct_each_s": each})
        });
        let document = json!({
            "uri": uri, "scenario": name, "settings": args.set, "cc": cc,
            "clients": flows.len(), "completed": completed, "failed": failed,
            "retransmissions": retransmissions,
            "fct_s": seven(&fct), "exchange_duration_s": seven(&duration), "fct_each_s": each,
            "simulated": beside,
        });
        writeln!(out, "{document}")?;
    } else {
        writeln!(
            out,
            "{name}, {cc}, {} clients: {completed} completed, {failed} failed",
            flows.len()
        )?;
        line(&mut out, "FCT, s", &fct)?;
        if let Some(each) = &mut simulated {
            line(&mut out, "simulated", &summary(each))?;
        }
        line(&mut out, "exchange, s", &duration)?;
        writeln!(out, "{retransmissions} retransmissions")?;
    }
    if failed > 0 {
        return Err(Failure::work(format_args!("{failed} exchanges had no correct answer")));
    }
    Ok(())
}

/// The simulated flow completion times of all clients of all replications, s.
fn simulated(
    scenario: &Scenario,
    control: ControlConfig,
    seed: u64,
    reps: u32,
) -> Result<Vec<f64>, Failure> {
    let mut each = Vec::new();
    for replication in 0..reps {
        let record = simulate(scenario, &[control.clone().into()], seed, replication, false);
        let clients = record.map_err(Failure::work)?.clients;
        each.extend(clients.iter().map(|client| client.fct.as_secs_f64()));
    }
    Ok(each)
}

fn line(out: &mut impl Write, what: &str, s: &Summary) -> io::Result<()> {
    let [median, p10, p90, max] = [s.median, s.p10, s.p90, s.max].map(significant);
    writeln!(out, "{what:<12} {median:>8} median, {p10} to {p90} (10 % to 90 %), {max} at most")
}

fn seven(s: &Summary) -> serde_json::Value {
    json!({"min": s.min, "p10": s.p10, "p25": s.p25, "median": s.median, "p75": s.p75,
           "p90": s.p90, "max": s.max})
}
