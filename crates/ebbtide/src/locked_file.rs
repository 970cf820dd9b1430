//! Files that processes lock.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;
use std::process;
use std::time::Duration;

/// How often to try to lock a file, and the pause after each try: who has it may be about to drop it.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// A file that is locked until the process that has locked it drops this.
#[derive(Debug)]
pub struct LockedFile {
    file: File,
    /// The process that has locked it.
    holder: u32,
}

impl LockedFile {
    /// Locks a file for this process alone, and waits for that up to a tenth of a second.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind `ResourceBusy` if it is locked, and of the kind `Unsupported`
    /// if the file system has no locks.
    #[expect(clippy::disallowed_methods, reason = "another program moves on in real time")]
    pub fn new(file: File) -> io::Result<Self> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            match file.try_lock() {
                Ok(()) => return Ok(Self::held(file)),
                Err(TryLockError::WouldBlock) if tries > 0 => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Locks a file for several processes, and waits until no process has it alone.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, of the kind `Unsupported` if the file system has no locks.
    pub fn shared(file: File) -> io::Result<Self> {
        file.lock_shared()?;
        Ok(Self::held(file))
    }

    fn held(file: File) -> Self {
        Self { file, holder: process::id() }
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

/// Closing the file would not suffice: a process that starts another one shares its open files, and
/// so their locks, with that one for a moment.
impl Drop for LockedFile {
    fn drop(&mut self) {
        // A forked process drops its copy of what is still in use here.
        if self.holder == process::id() {
            // It is closed now in any case.
            let _ = self.file.unlock();
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_although_another_process_still_has_the_file() {
        let path = tempfile::tempdir().unwrap();
        let path = path.path().join("file");
        let first = LockedFile::new(File::create(&path).unwrap()).unwrap();
        // As the file of a process that was started, until its program is loaded.
        let shared = first.try_clone().unwrap();
        let busy = LockedFile::new(File::open(&path).unwrap()).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
        drop(first);
        assert!(LockedFile::new(File::open(&path).unwrap()).is_ok());
        drop(shared);
    }

    #[test]
    fn a_lock_does_not_end_in_a_forked_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let parent = LockedFile::new(File::create(&path).unwrap()).unwrap();
        // Its child has the same file, and the memory in which the holder is.
        let file = parent.try_clone().unwrap();
        drop(LockedFile { file, holder: process::id() ^ 1 });
        let busy = LockedFile::new(File::open(&path).unwrap()).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
    }
}
