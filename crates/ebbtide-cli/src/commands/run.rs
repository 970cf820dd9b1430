//! `ebbtide run`: a scenario under one or more congestion controls.

use crate::failure::Failure;
use crate::output::{json, progress::Bar, table};
use ebbtide_core::cc::Algorithm;
use ebbtide_sim::record::Store;
use ebbtide_sim::report::render;
use ebbtide_sim::run::{Campaign, CampaignError, Results, Shard, report};
use ebbtide_sim::scenario::{load, parse_set};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

/// Run a scenario: every combination of settings and congestion controls
#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// A built-in scenario (see `ebbtide list scenarios`) or a TOML file
    scenario: String,
    /// Congestion controls, separated by commas, or `all`. NAME:KEY=VALUE sets one of its
    /// settings, NAME+NAME gives each to half of the clients
    #[arg(long, value_name = "NAME[,NAME...]", default_value = "default,cocoa,fasor,fasor-token")]
    cc: String,
    /// Set a key of the scenario; several values make a sweep
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]")]
    set: Vec<String>,
    /// Replications of each cell [default: the scenario's]
    #[arg(long, value_name = "N")]
    reps: Option<u32>,
    /// Seed of all randomness [default: the scenario's]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "J")]
    jobs: Option<usize>,
    /// Keep results in this folder, with a report; what it already has is not run again
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Compute only part I (from 1) of N of the replications, into --out
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<String>,
}

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let axes = args.set.iter().map(|text| parse_set(text)).collect::<Result<_, _>>();
    let axes = axes.map_err(Failure::usage)?;
    let source = load(&args.scenario).map_err(Failure::usage)?;
    if args.reps == Some(0) {
        return Err(Failure::usage("--reps: must be at least 1"));
    }
    let run = (args.reps, args.seed);
    let campaign =
        Campaign::plan(source, axes, controls(&args.cc)?, run).map_err(Failure::usage)?;
    if args.jobs == Some(0) {
        return Err(Failure::usage("--jobs: must be at least 1"));
    }
    let shard = args.shard.as_deref().map(parse_shard).transpose()?;
    let store = args.out.as_deref().map(Store::open).transpose().map_err(Failure::work)?;
    if let Some(store) = &store {
        store.save_manifest(&campaign.manifest()).map_err(Failure::work)?;
    }
    let bar = Bar::new(campaign.runs());
    let results =
        in_pool(args.jobs, || campaign.run(store.as_ref(), shard, &bar))?.map_err(Failure::work)?;
    let interrupted = bar.finish();
    let mut out = stdout().lock();
    if args.json {
        json::write(&mut out, &campaign, &results)?;
    } else {
        table::write(&mut out, &campaign, &results)?;
    }
    if let Some(store) = &store {
        let path = store
            .save_text("report.html", &render(&report(&campaign, &results)))
            .map_err(Failure::work)?;
        if !args.json {
            say_where(&mut out, &path, &results, &campaign)?;
        }
    }
    if interrupted {
        let kept = match &args.out {
            Some(_) => "run the same command again to complete it",
            None => "with --out DIR finished work would have been kept",
        };
        return Err(Failure::work(format!("interrupted; {kept}")));
    }
    Ok(())
}

fn say_where(
    out: &mut impl Write,
    report: &Path,
    results: &Results,
    campaign: &Campaign,
) -> std::io::Result<()> {
    writeln!(out, "\nReport: {}", report.display())?;
    if results.reused > 0 {
        let all = campaign.runs();
        writeln!(out, "{} of {all} replications were there already.", results.reused)?;
    }
    Ok(())
}

/// The names in `--cc`.
pub(crate) fn controls(text: &str) -> Result<Vec<String>, Failure> {
    if text == "all" {
        return Ok(Algorithm::ALL.iter().map(|a| a.name().to_owned()).collect());
    }
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        return Err(Failure::usage(format!("--cc: '{}' is named twice", twice.1)));
    }
    Ok(names)
}

fn parse_shard(text: &str) -> Result<Shard, Failure> {
    let parsed = text.split_once('/').and_then(|(index, of)| {
        let (index, of): (u32, u32) = (index.parse().ok()?, of.parse().ok()?);
        (1 <= index && index <= of).then(|| Shard { index: index - 1, of })
    });
    parsed.ok_or_else(|| Failure::usage(format!("--shard: '{text}' is not I/N with 1 <= I <= N")))
}

/// Runs `work` on a pool of `jobs` threads.
pub(crate) fn in_pool<T: Send>(
    jobs: Option<usize>,
    work: impl FnOnce() -> Result<T, CampaignError> + Send,
) -> Result<Result<T, CampaignError>, Failure> {
    if jobs == Some(0) {
        return Err(Failure::usage("--jobs: must be at least 1"));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.unwrap_or(0)).build();
    Ok(pool.map_err(Failure::work)?.install(work))
}
