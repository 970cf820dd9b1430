//! Work on separate threads, while the Python thread still handles Ctrl-C.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The interval at which signals are checked, so that Ctrl-C takes effect within a second.
const GLANCE: Duration = Duration::from_millis(100);

/// A slot for one value from another thread.
struct Slot<T> {
    place: Mutex<State<T>>,
    filled: Condvar,
}

enum State<T> {
    Waiting,
    Ready(T),
    /// The thread ended without a value because it panicked.
    Abandoned,
}

/// Fills the slot when it is dropped, in any case.
pub(crate) struct Promise<T>(Arc<Slot<T>>);

impl<T> Promise<T> {
    /// Stores the value.
    pub(crate) fn keep(self, value: T) {
        *self.0.place.lock().unwrap_or_else(PoisonError::into_inner) = State::Ready(value);
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let mut place = self.0.place.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Waiting = *place {
            *place = State::Abandoned;
        }
        self.0.filled.notify_all();
    }
}

/// Runs `work` on a thread of its own and waits for it, as [`wait`] does.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
    glance: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let begin = |promise: Promise<PyResult<T>>| {
        std::thread::Builder::new().name("ebbtide".into()).spawn(move || {
            promise.keep(work());
        })?;
        Ok(())
    };
    wait(py, begin, glance)?
}

/// Waits for the value that `begin` promises, without holding the interpreter lock. `glance` is
/// called about ten times a second.
///
/// # Errors
///
/// Returns the exception of a signal handler or of `glance`, such as KeyboardInterrupt. The work
/// then continues unattended, so the caller must tell it to stop.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    begin: impl FnOnce(Promise<T>) -> PyResult<()>,
    mut glance: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let slot = Arc::new(Slot { place: Mutex::new(State::Waiting), filled: Condvar::new() });
    begin(Promise(slot.clone()))?;
    loop {
        let state = py.detach(|| {
            let place = slot.place.lock().unwrap_or_else(PoisonError::into_inner);
            let waits = |state: &mut State<T>| matches!(state, State::Waiting);
            let waited = slot.filled.wait_timeout_while(place, GLANCE, waits);
            let (mut place, _) = waited.unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *place, State::Waiting)
        });
        match state {
            State::Ready(value) => return Ok(value),
            State::Abandoned => {
                return Err(PyRuntimeError::new_err("the work panicked; see standard error"));
            }
            State::Waiting => {
                py.check_signals()?;
                glance(py)?;
            }
        }
    }
}
