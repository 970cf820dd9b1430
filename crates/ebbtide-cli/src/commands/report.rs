//! `ebbtide report`: the HTML page on a folder of results.

use super::campaign::in_pool;
use super::reproduce::write_pages;
use super::run::save_report;
use crate::failure::Failure;
use ebbtide_core::cc::Registry;
use ebbtide_reproduce::{Paper, campaign_of};
use ebbtide_sim::judge::Percentile;
use ebbtide_sim::record::Store;
use ebbtide_sim::run::{Campaign, Results, Shard, left_out};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Write the report on a folder of results as one HTML file
#[derive(clap::Args)]
pub(crate) struct ReportArgs {
    /// A folder that `run --out` made
    folder: PathBuf,
    /// Compare the times by which this share of the exchanges was delivered: 50, 90, 99 or 100 %
    #[arg(long, value_name = "P", default_value = "99")]
    percentile: Percentile,
    /// Open it in the browser
    #[arg(long)]
    open: bool,
}

/// Reads a folder of results: its place, its campaign, and the available results.
pub(crate) fn read(folder: &Path) -> Result<(Store, Campaign, Results), Failure> {
    if !folder.join("manifest.json").is_file() {
        let place = folder.display();
        let message = format!("{place}: is not a folder that `ebbtide run --out` made");
        return Err(Failure::usage(message));
    }
    let store = Store::open(folder).map_err(Failure::work)?;
    let manifest = store.load_manifest().map_err(Failure::work)?;
    let campaign = campaign_of(&manifest, Registry::default()).map_err(Failure::work)?;
    store.refuse_foreign_files().map_err(Failure::work)?;
    // A share of the work that does not exist: results are read from disk, and nothing is run.
    let nothing = Shard { index: u32::MAX, of: 1 };
    let results =
        in_pool(None, || campaign.run(Some(&store), Some(nothing), &()))?.map_err(Failure::work)?;
    Ok((store, campaign, results))
}

pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let (store, mut campaign, results) = read(&args.folder)?;
    campaign.percentile = args.percentile;
    if let Some(left_out) = left_out(&campaign, &results) {
        let advice = format!("{left_out} To complete it: {}", campaign.command_into(&args.folder));
        if results.cells.is_empty() {
            return Err(Failure::work(format!("{}: {advice}", args.folder.display())));
        }
        eprintln!("{advice}");
    }
    if !campaign.papers.is_empty() {
        let papers = Paper::named(&campaign.papers);
        return write_pages(&mut stdout().lock(), &store, &papers, &campaign, &results, false);
    }
    let path = save_report(&store, &campaign, &results)?;
    writeln!(stdout(), "{}", path.display())?;
    if args.open {
        let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        Command::new(opener)
            .arg(&path)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| Failure::work(format!("{opener}: {error}; open the file yourself")))?;
    }
    Ok(())
}
