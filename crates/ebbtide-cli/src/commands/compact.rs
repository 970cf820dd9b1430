//! `ebbtide compact`: the small files of a folder of results, put together.

use crate::failure::Failure;
use ebbtide_core::cc::Registry;
use ebbtide_reproduce::campaign_of;
use ebbtide_sim::record::Store;
use ebbtide_sim::run::ChunkSize;
use std::io::{Write, stdout};
use std::path::PathBuf;

/// Put the replications of a folder of results together in a few large files
#[derive(clap::Args)]
pub(crate) struct CompactArgs {
    /// A folder that `run --out` made
    folder: PathBuf,
    /// About how large a file becomes, MB
    #[arg(long, value_name = "MB", default_value = "100",
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    size: u64,
}

pub(crate) fn run(args: &CompactArgs) -> Result<(), Failure> {
    let place = args.folder.display();
    if !args.folder.join("manifest.json").is_file() {
        let message = format!("{place}: is not a folder that `ebbtide run --out` made");
        return Err(Failure::usage(message));
    }
    let store = Store::open(&args.folder).map_err(Failure::work)?;
    let manifest = store.load_manifest().map_err(Failure::work)?;
    let campaign = campaign_of(&manifest, Registry::default()).map_err(Failure::work)?;
    let files = campaign
        .compact(&args.folder, ChunkSize::Bytes(args.size * 1_000_000))
        .map_err(Failure::work)?;
    let plural = if files == 1 { "" } else { "s" };
    Ok(writeln!(stdout(), "{files} file{plural} in {place}/chunks")?)
}
