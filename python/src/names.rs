//! Scenarios, controls and quantities by name.

use crate::errors;
use ebbtide_core::cc::Algorithm;
use ebbtide_sim::scenario::units::in_base_unit;
use ebbtide_sim::scenario::{self, BUILTIN, Q_BLOCK, Q_BLOCK_ABOUT, Source, TCP, TCP_ABOUT};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A built-in scenario or a file: its place and its validated text.
#[pyfunction]
pub(crate) fn scenario_of_name(name: &str) -> PyResult<(String, String)> {
    let source = scenario::load(name).map_err(|error| errors::argument(&error))?;
    Ok((source.place, source.text))
}

/// A scenario from JSON, as validated TOML text.
#[pyfunction]
pub(crate) fn scenario_of_json(place: String, json: &str) -> PyResult<String> {
    let wrong = |error: &dyn std::fmt::Display| {
        PyValueError::new_err(format!("{place}: is not a scenario: {error}"))
    };
    let table: toml::Table = serde_json::from_str(json).map_err(|error| wrong(&error))?;
    let text = toml::to_string(&table).map_err(|error| wrong(&error))?;
    let source = Source::new(place.clone(), text);
    source.scenario(&[]).map_err(|error| errors::argument(&error))?;
    Ok(source.text)
}

/// The built-in scenarios: name, title, and the short names of their settings.
#[pyfunction]
pub(crate) fn scenarios() -> PyResult<Vec<(&'static str, String, Vec<String>)>> {
    BUILTIN
        .iter()
        .map(|builtin| {
            let scenario = scenario::load(builtin.name).and_then(|source| source.scenario(&[]));
            let scenario = scenario.map_err(|error| errors::argument(&error))?;
            Ok((builtin.name, scenario.title, scenario.keys.into_keys().collect()))
        })
        .collect()
}

/// The values of `cc`: name, source and description.
#[pyfunction]
pub(crate) fn controls() -> Vec<(&'static str, &'static str, &'static str)> {
    let controls = Algorithm::ALL.iter().map(|a| (a.name(), a.source(), a.about()));
    controls
        .chain([(TCP, scenario::TCP_SOURCE, TCP_ABOUT)])
        .chain([(Q_BLOCK, scenario::Q_BLOCK_SOURCE, Q_BLOCK_ABOUT)])
        .collect()
}

/// A quantity such as `30 kbit/s` in its base unit: 30000.0 and `bit/s`.
#[pyfunction]
pub(crate) fn quantity(text: &str) -> Option<(f64, &'static str)> {
    in_base_unit(text)
}
