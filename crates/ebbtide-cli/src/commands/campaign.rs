//! The common parts of the commands that run campaigns.

use super::forecast::forecast;
use crate::failure::Failure;
use crate::output::progress::CampaignBar;
use clap::Args;
use ebbtide_sim::judge::Percentile;
use ebbtide_sim::record::{Claim, Store};
use ebbtide_sim::run::{Campaign, Results, Shard, Until, UntilResults};
use ebbtide_sim::scenario::{parse_count, parse_seed};
use std::path::PathBuf;

/// The replications, the seed, and the folder of results.
#[derive(Args)]
pub(crate) struct CampaignArgs {
    /// Replications of each cell [default: the scenario's or the paper's]
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(crate) reps: Option<u32>,
    /// Seed of all randomness [default: the scenario's, 1]
    #[arg(long, value_name = "S", value_parser = parse_seed, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "J", value_parser = parse_count, allow_negative_numbers = true)]
    jobs: Option<u32>,
    /// Keep results in this folder, with a report; what it already has is not run again
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Compare the times by which this share of the exchanges was delivered: 50, 90, 99 or 100 %
    #[arg(long, value_name = "P", default_value = "99")]
    pub(crate) percentile: Percentile,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// The result of a campaign.
pub(crate) struct CampaignOutcome {
    pub(crate) results: Results,
    /// The folder of results, with `--out`.
    pub(crate) store: Option<Store>,
    interrupted: bool,
    /// Keeps other processes from writing into the folder until its report is written.
    _claim: Option<Claim>,
}

impl CampaignArgs {
    /// Runs the missing replications, with a progress bar.
    pub(crate) fn run(
        &self,
        campaign: &Campaign,
        shard: Option<Shard>,
    ) -> Result<CampaignOutcome, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        unreachable(campaign)?;
        forecast(campaign, self.jobs.map_or(cores, |jobs| jobs as usize))?;
        let store = self.out.as_deref().map(Store::open).transpose().map_err(Failure::work)?;
        let claim = store.as_ref().map(|store| store.claim(&campaign.manifest()));
        let claim = claim.transpose().map_err(Failure::work)?;
        let bar = CampaignBar::new(campaign.runs());
        let run = || campaign.run(store.as_ref(), shard, &bar);
        let results = in_pool(self.jobs, run)?.map_err(Failure::work)?;
        Ok(CampaignOutcome { results, store, interrupted: bar.finish(), _claim: claim })
    }
}

impl CampaignArgs {
    /// Runs a search, with the number of its replications so far.
    pub(crate) fn search(&self, until: &Until) -> Result<UntilResults, Failure> {
        let bar = CampaignBar::unbounded();
        let found = in_pool(self.jobs, || until.run(&bar))?;
        bar.finish();
        found.map_err(Failure::work)
    }
}

impl CampaignOutcome {
    /// The error of an interruption, after the available results have been shown.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        match (self.interrupted, &self.store) {
            (false, _) => Ok(()),
            (true, Some(_)) => {
                Err(Failure::work("interrupted; run the same command again to complete it"))
            }
            (true, None) => {
                Err(Failure::work("interrupted; with --out DIR finished work would have been kept"))
            }
        }
    }
}

/// Says which requirements no control can meet; refuses a campaign none of whose cells can meet its own.
fn unreachable(campaign: &Campaign) -> Result<(), Failure> {
    let found = campaign.unreachable_requirements();
    let Some((_, first)) = found.first() else { return Ok(()) };
    let is_hopeless = |(index, _): (usize, _)| found.iter().any(|(cell, _)| *cell == index);
    if campaign.cells.iter().enumerate().all(is_hopeless) {
        return Err(Failure::usage(format!("{first}; no control can meet this")));
    }
    let mut said: Vec<String> = Vec::new();
    for (index, sentence) in &found {
        let settings = campaign.cells[*index].settings.iter();
        let settings: Vec<String> = settings.map(|(key, value)| format!("{key}={value}")).collect();
        let line = format!("{}: {sentence}; no control can meet this", settings.join(" "));
        if !said.contains(&line) {
            eprintln!("{line}");
            said.push(line);
        }
    }
    Ok(())
}

/// Threads at most.
const MOST_THREADS: usize = 1024;

/// Runs `work` on a pool of `jobs` threads.
pub(crate) fn in_pool<T: Send>(
    jobs: Option<u32>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    // Rayon takes 0 for one per core. More threads than a machine has cores share them: beyond that
    // they only take time to start.
    let threads = jobs.map_or(0, |jobs| (jobs as usize).min(MOST_THREADS));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(pool.map_err(Failure::work)?.install(work))
}
