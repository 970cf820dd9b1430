//! Where a server stores the state that outlives its program.

use core::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a server stores what it must know after a restart, even after `kill -9`: who observes what, with
/// tokens and sequence numbers; which addresses have echoed; the secret by which message IDs go on. Give it to
/// [`ServerConfig::state`](crate::ServerConfig::state).
///
/// Changes are stored a tenth of a second later: an observer that registers just before a crash has
/// to register again, which clients do when the last state is no longer fresh. Observers over connections
/// and DTLS are not stored, since their sessions end with the program.
pub trait StateStore: fmt::Debug + Send + Sync + 'static {
    /// The last state that was stored; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read. The server then does not start.
    fn load(&self) -> io::Result<Option<Vec<u8>>>;

    /// Stores a state in the place of the one before: wholly, or not at all. It is called on a thread that
    /// may block.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written. The server logs it and tries again soon.
    fn save(&self, state: &[u8]) -> io::Result<()>;
}

impl<S: StateStore + ?Sized> StateStore for Arc<S> {
    fn load(&self) -> io::Result<Option<Vec<u8>>> {
        S::load(self)
    }

    fn save(&self, state: &[u8]) -> io::Result<()> {
        S::save(self, state)
    }
}

/// Stores the state in a file, which is replaced by a new one once that is complete.
#[derive(Clone, Debug)]
pub struct StateFile {
    path: PathBuf,
}

impl StateFile {
    /// A file that need not be there yet; its folder must be.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl StateStore for StateFile {
    fn load(&self) -> io::Result<Option<Vec<u8>>> {
        match std::fs::read(&self.path) {
            Ok(state) => Ok(Some(state)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn save(&self, state: &[u8]) -> io::Result<()> {
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let mut file = File::create(&new)?;
        file.write_all(state)?;
        file.sync_all()?;
        std::fs::rename(new, &self.path)?;
        // The new name has to survive a loss of power as well.
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}
