//! Threads that each drive a socket, so that a server uses several cores.

use crate::net::driver::Driver;
use crate::net::shared::Shared;
use std::io;
use std::sync::Arc;
use std::thread;
use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A thread with a runtime of its own. Workers share no queue, since nothing moves between them.
pub(super) struct Worker {
    /// The runtime, until it is driven.
    runtime: Option<Runtime>,
    handle: Handle,
    name: String,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may be dropped where blocking is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Worker {
    /// Creates a runtime that is not driven yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the system lacks the resources for one.
    pub(super) fn start(number: u32) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, name) = (runtime.handle().clone(), format!("ebbtide-{number}"));
        Ok(Self { runtime: Some(runtime), handle, name })
    }

    /// Sockets and tasks that are created while this guard is held belong to the worker.
    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Drives one of its sockets until that is closed. The task ends with the thread.
    pub(super) fn drive(mut self, shared: Arc<Shared>) -> JoinHandle<()> {
        let (runtime, name) = (self.runtime.take(), core::mem::take(&mut self.name));
        let (ended, end) = oneshot::channel();
        let closed = shared.clone();
        let driven = move || {
            if let Some(runtime) = runtime {
                // Running handlers end with the runtime, so the server waits for them first.
                let outcome = runtime.block_on(async { Driver::spawn(shared).await });
                // The receiver is gone if the server has been dropped.
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
