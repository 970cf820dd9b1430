//! Work in a thread of its own.

use std::io;

/// Runs `work` in a separate thread, whose namespace is not shared.
pub(super) fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().map_err(|_| io::Error::other("a thread panicked"))
    })
}
