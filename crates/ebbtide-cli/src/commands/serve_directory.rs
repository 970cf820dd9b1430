//! `--directory`: a resource directory beside the other resources.

use crate::failure::Failure;
use clap::Args;
use ebbtide::server::StateFile;
use ebbtide_proxy::{Directory, DirectoryConfig};
use std::path::{Path, PathBuf};

/// A directory of devices
#[derive(Args, Debug)]
pub(crate) struct DirectoryArgs {
    /// Let devices register their resources, and clients look them up: a resource directory (RFC 9176). With --state,
    /// registrations are stored next to that file, in FILE.directory
    #[arg(long)]
    directory: bool,
}

/// A state of its own next to that of the server.
pub(crate) fn beside(path: &Path, what: &str) -> StateFile {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".");
    beside.push(what);
    StateFile::new(PathBuf::from(beside))
}

impl DirectoryArgs {
    /// The directory, if it is asked for. Must be called within a tokio runtime.
    pub(crate) fn open(&self, state: Option<&Path>) -> Result<Option<Directory>, Failure> {
        if !self.directory {
            return Ok(None);
        }
        let config = match state {
            Some(path) => DirectoryConfig::new().state(beside(path, "directory")),
            None => DirectoryConfig::new(),
        };
        let failed = |error| Failure::work(format_args!("--state {error}"));
        Directory::open(config).map(Some).map_err(failed)
    }
}
