//! Scenarios fitted to captures.

use crate::attended;
use ebbtide_fit::{FitError, Options, TakenAt, fit as fitted};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// Fits a scenario to a capture. Returns the document of `ebbtide fit --json`.
#[pyfunction]
#[pyo3(signature = (path, port, taken_at, name))]
pub(crate) fn fit(
    py: Python<'_>,
    path: PathBuf,
    port: u16,
    taken_at: Option<&str>,
    name: String,
) -> PyResult<String> {
    let place = |text: &str| {
        let message = format!("taken_at: '{text}' is not clients, server or link");
        TakenAt::from_name(text).ok_or_else(|| PyValueError::new_err(message))
    };
    let taken_at = taken_at.map(place).transpose()?;
    let options = Options { name, port, taken_at, ..Options::default() };
    let work = move || -> PyResult<String> {
        let shown = path.display().to_string();
        let file = File::open(&path)?;
        let found = fitted(BufReader::new(file), &options).map_err(|error| match error {
            FitError::Io(error) => PyOSError::new_err(format!("{shown}: {error}")),
            other => PyValueError::new_err(format!("{shown}: {other}")),
        })?;
        Ok(found.document().to_string())
    };
    attended::run(py, work, |_| Ok(()))
}
