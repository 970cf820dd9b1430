//! Where a server stores the state that outlives its program.

use core::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
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

/// Stores the state in a file, which is replaced by a new one once that is complete. Only the user who runs the server
/// can read it (Unix: mode 0600), and a file that others can read is not loaded, since it contains secrets.
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
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        refuse_if_shared(&file)?;
        let mut state = Vec::new();
        file.read_to_end(&mut state)?;
        Ok(Some(state))
    }

    fn save(&self, state: &[u8]) -> io::Result<()> {
        let mut new = self.path.clone().into_os_string();
        new.push(".new");
        let mut file = File::create(&new)?;
        keep_private(&file)?;
        file.write_all(state)?;
        file.sync_all()?;
        std::fs::rename(new, &self.path)?;
        // The new name has to survive a loss of power as well.
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

#[cfg(unix)]
fn refuse_if_shared(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if file.metadata()?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let shared = "the stored state contains secrets, and others can read it: allow that to its owner only (chmod 600)";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, shared))
}

#[cfg(not(unix))]
fn refuse_if_shared(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn keep_private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn keep_private(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_state_is_for_its_owner_alone_and_one_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = StateFile::new(&path);
        store.save(b"secret").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(store.load().unwrap().as_deref(), Some(&b"secret"[..]));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = store.load().unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
}
