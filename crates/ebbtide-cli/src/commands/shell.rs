//! `ebbtide completions` and `ebbtide man`: files for shells and manuals.

use crate::failure::Failure;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{Write, stdout};
use std::path::PathBuf;

/// Print a shell completion script
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Write man pages, one per command
#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The folder to write them to; without it the main page is printed
    folder: Option<PathBuf>,
}

pub(crate) fn completions<C: CommandFactory>(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "ebbtide", &mut script);
    Ok(stdout().write_all(&script)?)
}

pub(crate) fn man<C: CommandFactory>(args: &ManArgs) -> Result<(), Failure> {
    match &args.folder {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(C::command()).render(&mut page)?;
            Ok(stdout().write_all(&page)?)
        }
        Some(folder) => std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(C::command(), folder))
            .map_err(|error| Failure::work(format!("{}: {error}", folder.display()))),
    }
}
