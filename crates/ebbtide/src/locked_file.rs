//! Files that one process has for itself.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;
use std::time::Duration;

/// How often to try to lock a file, and the pause after each try: who has it may be about to drop it.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// A file that is locked until this is dropped.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Locks a file, and waits for that up to a tenth of a second.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind `ResourceBusy` if it is locked, and of the kind `Unsupported`
    /// if the file system has no locks.
    #[expect(clippy::disallowed_methods, reason = "another program moves on in real time")]
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if tries > 0 => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

/// Closing the file would not suffice: a process that starts another one shares its open files, and
/// so their locks, with that one for a moment.
impl Drop for LockedFile {
    fn drop(&mut self) {
        // It is closed now in any case.
        let _ = self.0.unlock();
    }
}

#[cfg(all(test, unix))]
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
}
