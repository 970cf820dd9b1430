//! Requests to end, by the terminal or a supervisor.

use crate::failure::Failure;
use std::future::pending;

/// SIGINT and SIGTERM, which no longer end the process once this exists.
#[derive(Debug)]
pub(crate) struct Interrupt {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Interrupt {
    /// Receives them from now on. Must be called within a tokio runtime.
    #[cfg(unix)]
    pub(crate) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let of = |kind| signal(kind).map_err(Failure::work);
        Ok(Self {
            interrupt: of(SignalKind::interrupt())?,
            terminate: of(SignalKind::terminate())?,
        })
    }

    /// Receives them from now on.
    #[cfg(not(unix))]
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self {})
    }

    /// Waits for one of them, and returns the exit code that shells give a process that it has ended. Cancel
    /// safe.
    pub(crate) async fn received(&mut self) -> u8 {
        #[cfg(unix)]
        let code = tokio::select! {
            Some(()) = self.interrupt.recv() => 130,
            Some(()) = self.terminate.recv() => 143,
            else => pending().await,
        };
        #[cfg(not(unix))]
        let code = match tokio::signal::ctrl_c().await {
            Ok(()) => 130,
            Err(_) => pending().await,
        };
        code
    }
}
