//! `ebbtide map`: controls over networks drawn from ranges.

use super::campaign::in_pool;
use super::forecast::fits;
use super::run::controls;
use crate::failure::Failure;
use crate::output::map::write;
use crate::output::progress::CampaignBar;
use clap::Args;
use ebbtide_map::{FLEETS, MapError, Plan, PlanSettings, Ranges, document, render, scenario_of};
use ebbtide_sim::run::Progress;
use ebbtide_sim::scenario::load;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Compare congestion controls over networks that are drawn from ranges
#[derive(Args)]
#[command(after_help = "Ranges, separated by commas where one of several is drawn: rate, uplink, \
    round-trip, variation, buffer, clients, exchanges, workload, errors, max-retransmit, payload, \
    direction, server, window, period, ack-timeout. A buffer is in bytes, in multiples of rate times \
    round trip (0.5..16 bdp), or infinite; an ack-timeout is a time, or path for one that fits the \
    path. Numbers are drawn evenly by their logarithm. The preset fleets draws 1 to 100,000 devices \
    in strata, each with a budget of its own.")]
pub(crate) struct MapArgs {
    /// Ranges to draw networks from: all, lpwan, cellular, satellite, wifi, wired, fleets
    #[arg(long, value_name = "NAME", default_value = "all")]
    preset: String,
    /// Another range instead of one of the preset's, such as clients=2..50
    #[arg(long, value_name = "KEY=LOW..HIGH")]
    range: Vec<String>,
    /// How many networks to draw
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    networks: u32,
    /// Congestion controls, separated by commas, or `all`
    #[arg(long, value_name = "NAME[,NAME...]", default_value = "ebb,fasor-token")]
    cc: String,
    /// The controls to compare with, of which the best in each network counts [default: default,
    /// cocoa, fasor, fasor-token, linux-rto, default-fb2, slow]
    #[arg(long, value_name = "NAME[,NAME...]")]
    against: Option<String>,
    /// Replications of each control in each network [default: 4, in fleets 3]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    reps: Option<u32>,
    /// Seed of the draw and of every replication
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    /// Also measure the best published controls of each network in as many other replications and
    /// compare them with themselves: a regret that no control can avoid
    #[arg(long)]
    chance: bool,
    /// The maximum of clients times exchanges of a network [default: 6000, in fleets one for each
    /// stratum]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    work: Option<u64>,
    /// Start nothing after this time; unfinished networks are left out and listed
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    within: Option<u32>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u32).range(1..),
        allow_negative_numbers = true)]
    jobs: Option<u32>,
    /// Keep results in this folder, with a page; existing results are not computed again
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the networks in which each control is worst, or unsafe where another one is safe, to
    /// this file, with the commands that run them
    #[arg(long, value_name = "FILE")]
    worst: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &MapArgs) -> Result<(), Failure> {
    let ranges = Ranges::new(&args.preset, &args.range).map_err(Failure::usage)?;
    let source = load(scenario_of(&args.preset)).map_err(Failure::usage)?;
    let published = args.against.as_deref().map(controls).transpose()?;
    // Three are the least whose confidence interval tells anything.
    let reps = args.reps.unwrap_or(if args.preset == FLEETS { 3 } else { 4 });
    let settings = PlanSettings {
        preset: args.preset.clone(),
        ranges,
        cc: controls(&args.cc)?,
        published,
        networks: args.networks,
        reps,
        seed: args.seed,
        work: args.work,
    };
    let plan = Plan::new(source, settings).map_err(Failure::usage)?;
    let plan = if args.chance { plan.with_chance() } else { plan };
    let largest = plan.networks.iter().map(|network| network.scenario.client_count()).max();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(cores, |jobs| jobs as usize).min(plan.pairs());
    fits(largest.unwrap_or(0), jobs)?;
    let watch = DeadlineBar::new(plan.pairs(), args.within);
    let map = in_pool(args.jobs, || plan.run(args.out.as_deref(), &watch))?;
    let map = map.map_err(|error: MapError| Failure::work(error))?;
    let interrupted = watch.bar.finish();
    let mut out = stdout().lock();
    if args.json {
        writeln!(out, "{:#}", document(&plan, &map))?;
    } else {
        write(&mut out, &plan, &map)?;
    }
    if let Some(path) = &args.worst {
        let failed = |error| Failure::work(format!("{}: {error}", path.display()));
        std::fs::write(path, map.worst_file(&plan)).map_err(failed)?;
        if !args.json {
            writeln!(out, "\nWorst networks: {}", path.display())?;
        }
    }
    if let Some(folder) = &args.out {
        let path = folder.join("map.html");
        std::fs::write(&path, render(&plan, &map)).map_err(Failure::work)?;
        if !args.json {
            writeln!(out, "\nPage: {}", path.display())?;
        }
    }
    if interrupted {
        return Err(Failure::work("interrupted; with --out the same command continues"));
    }
    Ok(())
}

/// A progress bar that stops the work when the time limit is reached.
struct DeadlineBar {
    bar: CampaignBar,
    until: Option<Instant>,
}

impl DeadlineBar {
    #[expect(clippy::disallowed_methods, reason = "how long to work is the user's wall clock")]
    fn new(pairs: usize, within: Option<u32>) -> Self {
        let until = within.map(|seconds| Instant::now() + Duration::from_secs(seconds.into()));
        Self { bar: CampaignBar::new(pairs), until }
    }
}

impl Progress for DeadlineBar {
    fn finished(&self, simulated_s: f64) {
        self.bar.finished(simulated_s);
    }

    #[expect(clippy::disallowed_methods, reason = "see above")]
    fn is_cancelled(&self) -> bool {
        self.bar.is_cancelled() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}
