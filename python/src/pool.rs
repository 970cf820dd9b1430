//! Work on a pool of threads, with progress and an end before its time.

use crate::attended;
use crate::control::Raised;
use ebbtide_sim::run::Progress;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Tells the work on other threads not to begin anything more.
#[pyclass(frozen, from_py_object)]
#[derive(Clone, Default)]
pub(crate) struct Cancel {
    told: Arc<AtomicBool>,
    finished: Arc<AtomicU64>,
    raised: Raised,
}

impl Cancel {
    /// Also begins nothing more when a control in Python has raised an exception.
    pub(crate) fn of(raised: &Raised) -> Self {
        Self { raised: raised.clone(), ..Self::default() }
    }

    /// The same for the controls of another run.
    pub(crate) fn with(&self, raised: &Raised) -> Self {
        Self { raised: raised.clone(), ..self.clone() }
    }
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Lets replications that have begun end, and begins no other.
    fn cancel(&self) {
        self.told.store(true, Ordering::Relaxed);
    }

    /// The number of finished replications.
    #[getter]
    fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }
}

impl Progress for Cancel {
    fn finished(&self, _simulated_s: f64) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.told.load(Ordering::Relaxed) || self.raised.is_raised()
    }
}

/// Runs `work` on a pool of threads, with `all` pieces. `progress` is called now and then, and at the end.
pub(crate) fn in_pool<T: Send + 'static>(
    py: Python<'_>,
    cancel: Cancel,
    (jobs, all, progress): (Option<usize>, usize, Option<Py<PyAny>>),
    work: impl FnOnce(&Cancel) -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let hears = cancel.clone();
    let work = move || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.unwrap_or(0)).build();
        let pool = pool.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        hears.raised.during(|| pool.install(|| work(&hears)))
    };
    let glance = |py: Python<'_>| match &progress {
        None => Ok(()),
        Some(progress) => progress.call1(py, (cancel.finished(), all)).map(drop),
    };
    let ended = attended::run(py, work, &glance);
    match &ended {
        Ok(_) => glance(py)?,
        Err(_) => cancel.cancel(),
    }
    ended
}
