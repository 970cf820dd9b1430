//! Work on threads of its own, while Python's goes on hearing of Ctrl-C.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often signals are looked at: Ctrl-C within a second, with room.
const GLANCE: Duration = Duration::from_millis(100);

/// A place for one value that another thread leaves.
struct Slot<T> {
    place: Mutex<State<T>>,
    filled: Condvar,
}

enum State<T> {
    Waiting,
    Ready(T),
    /// The thread ended without a value: it panicked.
    Abandoned,
}

/// Fills the slot when it is dropped, whatever happened.
pub(crate) struct Promise<T>(Arc<Slot<T>>);

impl<T> Promise<T> {
    /// Leaves the value.
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

/// Waits for what `begin` promises, the interpreter released. `glance` is called about ten times a
/// second.
///
/// # Errors
///
/// What a signal's handler or `glance` raises, such as KeyboardInterrupt; the work then goes on
/// unattended, so whoever began it tells it to stop.
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
