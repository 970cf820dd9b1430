//! Threads that drive a socket each, so that a server uses several cores.

use crate::net::driver::Driver;
use crate::net::shared::Shared;
use std::io;
use std::sync::Arc;
use std::thread;
use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A thread with a runtime of its own. Nothing moves from one to another, so that they share no queue.
pub(super) struct Worker {
    /// Until it is driven.
    runtime: Option<Runtime>,
    handle: Handle,
    name: String,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may be dropped where nothing may block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Worker {
    /// A runtime that nothing drives yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no resources for one.
    pub(super) fn start(number: u32) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, name) = (runtime.handle().clone(), format!("ebbtide-{number}"));
        Ok(Self { runtime: Some(runtime), handle, name })
    }

    /// Sockets and tasks that are made while this is held belong to the worker.
    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Drives a socket that belongs to it until that is closed. The task ends with the thread.
    pub(super) fn drive(mut self, shared: Arc<Shared>) -> JoinHandle<()> {
        let (runtime, name) = (self.runtime.take(), core::mem::take(&mut self.name));
        let (ended, end) = oneshot::channel();
        let closed = shared.clone();
        let driven = move || {
            if let Some(runtime) = runtime {
                // Handlers that are at work end with the runtime: the server waits for them before.
                let outcome = runtime.block_on(async { Driver::spawn(shared).await });
                // Nobody waits for it if the server has been dropped.
                let _ = ended.send(outcome);
            }
        };
        if let Err(error) = thread::Builder::new().name(name).spawn(driven) {
            tracing::error!(%error, "a worker cannot be started");
            closed.close();
        }
        tokio::spawn(async move {
            // A driver that panics ends the server with an error, whichever thread it runs on.
            if let Ok(Err(error)) = end.await
                && let Ok(reason) = error.try_into_panic()
            {
                std::panic::resume_unwind(reason);
            }
        })
    }
}
