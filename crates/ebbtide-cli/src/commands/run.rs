//! `ebbtide run`: a scenario under one or more congestion controls.

use super::campaign::CampaignArgs;
use crate::failure::Failure;
use crate::output::{curve, table, until};
use ebbtide_report::render;
use ebbtide_sim::record::Store;
use ebbtide_sim::result::Report;
use ebbtide_sim::run::{
    Campaign, Results, Shard, TimeGrid, Until, UntilResults, document, left_out, report,
};
use ebbtide_sim::scenario::units::Time;
use ebbtide_sim::scenario::{
    Axis, LoadCurve, ScenarioError, Source, load, parse_controls, parse_set,
};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

/// The shortest step of a series, ns.
const MILLISECOND: u64 = 1_000_000;

/// Run a scenario: every combination of settings and congestion controls
#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// A built-in scenario (see `ebbtide list scenarios`) or a TOML file
    scenario: String,
    /// Congestion controls, separated by commas, or `all`. NAME:KEY=VALUE sets one of its
    /// settings, NAME+NAME gives each to half of the clients
    #[arg(long, value_name = "NAME[,NAME...]", default_value = "default,cocoa,fasor-token,ebb")]
    cc: String,
    /// Set a key of the scenario; several values make a sweep
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]")]
    set: Vec<String>,
    /// Draw goodput over a key whose values are spaced in equal ratios, such as clients=10..100000
    #[arg(long, value_name = "KEY=FROM..TO")]
    curve: Option<String>,
    /// Points of the curve, 2 to 50 [default: three for each factor of ten]
    #[arg(long, value_name = "N", requires = "curve", allow_negative_numbers = true)]
    points: Option<u32>,
    /// Exchanges of all clients together at a point of the curve at most; each client has at least one
    #[arg(long, value_name = "N", requires = "curve", default_value_t = 200_000)]
    work: u32,
    /// Search the value of a key up to which each control meets the requirements of the scenario, or does not
    /// collapse if it has none; KEY alone begins at the scenario's value
    #[arg(long, value_name = "KEY[=FROM..TO]", conflicts_with_all = ["curve", "shard", "exchanges", "series"])]
    until: Option<String>,
    /// If no control meets the requirements, search the rate, the buffer, the period and the number of devices
    /// with which one does, each by itself
    #[arg(long, conflicts_with_all = ["curve", "until", "shard"])]
    mend: bool,
    /// Compute only part I (from 1) of N of the replications, into --out
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<String>,
    /// Keep a row for each exchange as well, in --out
    #[arg(long, requires = "out")]
    exchanges: bool,
    /// Keep what happens in each step of time of every replication as well, in --out; the page shows its
    /// median
    #[arg(long, value_name = "STEP", requires = "out", num_args = 0..=1, default_missing_value = "1 s")]
    series: Option<String>,
    /// Clients with a series of their own, by number
    #[arg(long, value_name = "N[,N...]", requires = "series", value_delimiter = ',')]
    series_clients: Vec<u32>,
    #[command(flatten)]
    campaign: CampaignArgs,
}

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let axes = args.set.iter().map(|text| parse_set(text)).collect::<Result<Vec<_>, _>>();
    let mut axes = axes.map_err(Failure::usage)?;
    let curve = args.curve.as_ref().map(|text| LoadCurve::parse(text, args.points, args.work));
    let curve = curve.transpose().map_err(Failure::usage)?.map(|(curve, axis)| {
        axes.push(axis);
        curve
    });
    let source = load(&args.scenario).map_err(Failure::usage)?;
    let plan = SearchPlan { source: source.clone(), axes: axes.clone() };
    let (reps, seed) = (args.campaign.reps, args.campaign.seed);
    if let Some(text) = &args.until {
        return search(args, text, plan);
    }
    let mut campaign =
        Campaign::plan(source, axes, controls(&args.cc)?, reps, seed).map_err(Failure::usage)?;
    if let Some(curve) = curve {
        campaign = campaign.with_curve(curve);
    }
    campaign.percentile = args.campaign.percentile;
    campaign.exchanges = args.exchanges;
    campaign.over_time = grid(args, &campaign)?;
    let shard = args.shard.as_deref().map(parse_shard).transpose()?;
    let ran = args.campaign.run(&campaign, shard)?;
    let remedies = if args.mend { mend(args, &plan, &campaign, &ran.results)? } else { Vec::new() };
    let mut out = stdout().lock();
    if args.campaign.json {
        let mut document = document(&campaign, &ran.results);
        if args.mend {
            document["mend"] = remedies.iter().map(UntilResults::points_document).collect();
        }
        serde_json::to_writer_pretty(&mut out, &document).map_err(std::io::Error::from)?;
        writeln!(out)?;
        if let Some(left_out) = left_out(&campaign, &ran.results) {
            eprintln!("{left_out}");
        }
    } else if campaign.curve.is_some() {
        curve::write(&mut out, &campaign, &ran.results)?;
    } else {
        table::write(&mut out, &campaign, &ran.results)?;
        until::write_remedies(&mut out, &remedies)?;
        if !args.mend && is_missed(&campaign, &ran.results) {
            until::write_hint(&mut out)?;
        }
    }
    if let Some(store) = &ran.store {
        let path = save_report(store, &campaign, &ran.results)?;
        if !args.campaign.json {
            say_where(&mut out, &path, &ran.results, &campaign)?;
        }
    }
    ran.finish()
}

/// The series of each replication that `--series` asks for.
fn grid(args: &RunArgs, campaign: &Campaign) -> Result<Option<TimeGrid>, Failure> {
    let Some(text) = &args.series else { return Ok(None) };
    let step_ns = Time::parse(text).map(|step| step.0).filter(|step| *step >= MILLISECOND);
    let step_ns = step_ns.ok_or_else(|| {
        Failure::usage(format!("--series: '{text}' is not a time of at least 1 ms, such as '1 s'"))
    })?;
    let clients = args.series_clients.clone();
    let fewest = campaign.cells.iter().map(|spec| spec.scenario.clients.count).min().unwrap_or(0);
    match clients.iter().find(|client| **client >= fewest) {
        None => Ok(Some(TimeGrid { step_ns, clients })),
        Some(unknown) => Err(Failure::usage(format!(
            "--series-clients: there is no client {unknown}; there are 0 to {}",
            fewest.saturating_sub(1)
        ))),
    }
}

/// A scenario whose keys are searched.
struct SearchPlan {
    source: Source,
    axes: Vec<Axis>,
}

impl SearchPlan {
    fn until(&self, args: &RunArgs, text: &str) -> Result<Result<Until, ScenarioError>, Failure> {
        let (source, axes) = (self.source.clone(), self.axes.clone());
        let until = Until::plan(text, source, axes, controls(&args.cc)?, args.campaign.reps);
        Ok(until.map(|until| match args.campaign.seed {
            Some(seed) => until.with_seed(seed),
            None => until,
        }))
    }
}

/// Searches what would mend the requirements that no control meets, one key after another.
fn mend(
    args: &RunArgs,
    plan: &SearchPlan,
    campaign: &Campaign,
    results: &Results,
) -> Result<Vec<UntilResults>, Failure> {
    let Some(spec) = campaign.cells.first().filter(|_| is_missed(campaign, results)) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for key in spec.scenario.mending_keys() {
        // A key that has no number is not the one to change.
        if let Ok(until) = plan.until(args, &key)? {
            found.push(args.campaign.search(&until)?);
        }
    }
    Ok(found)
}

/// Whether there are requirements that no control meets at any setting.
fn is_missed(campaign: &Campaign, results: &Results) -> bool {
    let is_required = results.cells.iter().any(|(_, one)| !one.cell.outcome.checks.is_empty());
    let is_met = || results.judged(campaign.percentile).iter().any(|(_, own)| own.choose.is_some());
    is_required && !is_met()
}

/// Searches the breaking point of each control.
fn search(args: &RunArgs, text: &str, plan: SearchPlan) -> Result<(), Failure> {
    let until = plan.until(args, text)?.map_err(Failure::usage)?;
    let found = args.campaign.search(&until)?;
    let mut out = stdout().lock();
    if args.campaign.json {
        serde_json::to_writer_pretty(&mut out, &found.document()).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        until::write(&mut out, &found)?;
    }
    let Some(folder) = &args.campaign.out else { return Ok(()) };
    let store = Store::open(folder).map_err(Failure::work)?;
    let command = found.campaign.command_into(folder);
    let page = render(&Report { command, ..found.report() });
    let path = store.save_text("report.html", &page).map_err(Failure::work)?;
    if !args.campaign.json {
        writeln!(out, "\nReport: {}", path.display())?;
    }
    Ok(())
}

/// Writes the report of a folder, with the command that computes it again.
pub(crate) fn save_report(
    store: &Store,
    campaign: &Campaign,
    results: &Results,
) -> Result<PathBuf, Failure> {
    let command = campaign.command_into(store.folder());
    let page = render(&Report { command, ..report(campaign, results) });
    store.save_text("report.html", &page).map_err(Failure::work)
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
    parse_controls(text).map_err(Failure::usage)
}

fn parse_shard(text: &str) -> Result<Shard, Failure> {
    let parsed = text.split_once('/').and_then(|(index, of)| {
        let (index, of): (u32, u32) = (index.parse().ok()?, of.parse().ok()?);
        (1 <= index && index <= of).then(|| Shard { index: index - 1, of })
    });
    parsed.ok_or_else(|| Failure::usage(format!("--shard: '{text}' is not I/N with 1 <= I <= N")))
}
