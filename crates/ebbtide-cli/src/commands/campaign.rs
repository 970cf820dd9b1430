//! The common parts of the commands that run campaigns.

use super::forecast::forecast;
use crate::failure::Failure;
use crate::output::progress::CampaignBar;
use clap::Args;
use ebbtide_sim::judge::Percentile;
use ebbtide_sim::record::{Claim, Store};
use ebbtide_sim::run::{Campaign, Results, Shard};
use std::path::PathBuf;

/// The replications, the seed, and the folder of results.
#[derive(Args)]
pub(crate) struct CampaignArgs {
    /// Replications of each cell [default: the scenario's or the paper's]
    #[arg(long, value_name = "N", value_parser = at_least_one, allow_negative_numbers = true)]
    pub(crate) reps: Option<u32>,
    /// Seed of all randomness [default: the scenario's, 1]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "J", value_parser = at_least_one, allow_negative_numbers = true)]
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

/// A positive number.
fn at_least_one(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("takes a whole number, at least 1 and at most {}", u32::MAX)),
    }
}

/// Runs `work` on a pool of `jobs` threads.
pub(crate) fn in_pool<T: Send>(
    jobs: Option<u32>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    // Rayon takes 0 for one per core.
    let threads = jobs.map_or(0, |jobs| jobs as usize);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(pool.map_err(Failure::work)?.install(work))
}
