//! The thread of the sockets.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::process;
use std::sync::{Mutex, PoisonError};
use tokio::runtime::{Builder, Handle};

static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

/// The runtime of this process, started when it is first needed. A forked process has a copy of
/// the memory but not the thread, and starts its own.
pub(crate) fn handle() -> PyResult<Handle> {
    let mut place = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((pid, handle)) = &*place
        && *pid == process::id()
    {
        return Ok(handle.clone());
    }
    let failed = |error: std::io::Error| PyRuntimeError::new_err(error.to_string());
    // A single thread: most of the cost of a request is waking threads, so only one is used.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("ebbtide-io".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))
        .map_err(failed)?;
    *place = Some((process::id(), handle.clone()));
    Ok(handle)
}
