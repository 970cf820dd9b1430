//! Where a server stores the state that outlives its program.

use crate::locked_file::LockedFile;
use core::fmt;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Where a server stores what it must know after a restart, even after `kill -9`: who observes what, with
/// tokens and sequence numbers; which addresses have echoed; the secret by which message IDs go on. Give it to
/// [`ServerConfig::state`](crate::ServerConfig::state).
///
/// Changes are stored a tenth of a second later: an observer that registers just before a crash has
/// to register again, which clients do when the last state is no longer fresh. Sessions over DTLS
/// 1.2 are stored with their keys; observers over DTLS 1.3 and over connections are not, since
/// these end with the program.
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

    /// Appends changes to the state that was stored last, on a thread that may block. Returns false if the store
    /// cannot append, as by default; then the whole state is saved.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be written, or only in part. The whole state is then saved.
    fn append(&self, changes: &[u8]) -> io::Result<bool> {
        let _ = changes;
        Ok(false)
    }

    /// Moves a state that is not valid out of the way, and says where to. The server then starts without one.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be moved. The server then does not start. By default it is overwritten.
    fn set_aside(&self) -> io::Result<String> {
        Ok("overwritten".to_owned())
    }
}

impl<S: StateStore + ?Sized> StateStore for Arc<S> {
    fn load(&self) -> io::Result<Option<Vec<u8>>> {
        S::load(self)
    }

    fn save(&self, state: &[u8]) -> io::Result<()> {
        S::save(self, state)
    }

    fn append(&self, changes: &[u8]) -> io::Result<bool> {
        S::append(self, changes)
    }

    fn set_aside(&self) -> io::Result<String> {
        S::set_aside(self)
    }
}

/// Stores the state in a file, which is replaced by a new one once that is complete; changes are appended. Only the
/// user who runs the server can read it (Unix: mode 0600), and a file that others can read is not loaded, since it
/// contains secrets. A file that is not valid is renamed to end with `.bad`.
///
/// While a process has loaded it, it holds a lock (`.lock` beside the file), and other processes cannot load it.
#[derive(Clone, Debug)]
pub struct StateFile {
    path: PathBuf,
    lock: Arc<Mutex<Option<Arc<LockedFile>>>>,
}

impl StateFile {
    /// A file that need not be there yet; its folder must be.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), lock: Arc::default() }
    }

    /// The path with something behind it.
    fn beside(&self, end: &str) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(end);
        path.into()
    }

    /// Names the file in an error.
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        self.hold()?;
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

    /// Locks the file for this process. Servers of one process that follow each other share the lock.
    fn hold(&self) -> io::Result<()> {
        static HELD: Mutex<BTreeMap<PathBuf, Weak<LockedFile>>> = Mutex::new(BTreeMap::new());
        let mut own = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if own.is_some() {
            return Ok(());
        }
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let path = std::path::absolute(self.beside(".lock"))?;
        held.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = held.get(&path).and_then(Weak::upgrade) {
            *own = Some(lock);
            return Ok(());
        }
        let lock = File::create(&path)?;
        keep_private(&lock)?;
        let lock = match LockedFile::new(lock) {
            Ok(lock) => Arc::new(lock),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                let why = "another process uses this state: give each server a file of its own";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
            }
            // Some file systems have no locks.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
            Err(error) => return Err(error),
        };
        held.insert(path, Arc::downgrade(&lock));
        *own = Some(lock);
        Ok(())
    }

    fn replace(&self, state: &[u8]) -> io::Result<()> {
        let new = self.beside(".new");
        let mut file = File::create(&new)?;
        keep_private(&file)?;
        file.write_all(state)?;
        file.sync_all()?;
        std::fs::rename(new, &self.path)?;
        // The new name has to survive a loss of power as well.
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn extend(&self, changes: &[u8]) -> io::Result<bool> {
        // If it was removed, the whole state is written again.
        let mut file = match File::options().append(true).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        file.write_all(changes)?;
        file.sync_data()?;
        Ok(true)
    }
}

impl StateStore for StateFile {
    fn load(&self) -> io::Result<Option<Vec<u8>>> {
        self.read().map_err(|error| self.named(&error))
    }

    fn save(&self, state: &[u8]) -> io::Result<()> {
        self.replace(state).map_err(|error| self.named(&error))
    }

    fn append(&self, changes: &[u8]) -> io::Result<bool> {
        self.extend(changes).map_err(|error| self.named(&error))
    }

    fn set_aside(&self) -> io::Result<String> {
        let bad = self.beside(".bad");
        std::fs::rename(&self.path, &bad).map_err(|error| self.named(&error))?;
        Ok(bad.display().to_string())
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

#[cfg(unix)]
#[cfg(test)]
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
        assert!(error.to_string().contains("state: the stored state contains"), "{error}");
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
}
