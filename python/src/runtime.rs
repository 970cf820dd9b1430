//! The thread that sockets live on.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::process;
use std::sync::{Mutex, PoisonError};
use tokio::runtime::{Builder, Handle};

static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

/// The runtime of this process, begun when it is first needed. A forked process has a copy of the
/// memory but not the thread, and begins its own.
pub(crate) fn handle() -> PyResult<Handle> {
    let mut place = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((pid, handle)) = &*place
        && *pid == process::id()
    {
        return Ok(handle.clone());
    }
    let failed = |error: std::io::Error| PyRuntimeError::new_err(error.to_string());
    // One thread: what a request costs is mostly being woken, and so only one has to be.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("ebbtide-io".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))
        .map_err(failed)?;
    *place = Some((process::id(), handle.clone()));
    Ok(handle)
}
