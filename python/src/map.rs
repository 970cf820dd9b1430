//! Maps: controls over networks that are drawn from ranges.

use crate::control::{PythonControl, Raised, registry};
use crate::pool::{Cancel, in_pool};
use crate::{attended, errors};
use ebbtide_map::{Map, MapError, Plan, PlanSettings, Ranges, document, render, scenario_of};
use ebbtide_sim::run::Progress;
use ebbtide_sim::scenario::load;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A map whose networks are drawn and whose controls are known.
#[pyclass(frozen)]
pub(crate) struct MapPlan {
    plan: Arc<Plan>,
    raised: Raised,
}

#[pymethods]
impl MapPlan {
    /// `draw` is the number of networks, of replications, the seed, and the maximum of clients
    /// times exchanges.
    #[new]
    fn new(
        py: Python<'_>,
        preset: String,
        ranges: Vec<String>,
        cc: Vec<String>,
        against: Option<Vec<String>>,
        draw: (u32, u32, u64, Option<u64>),
        controls: Vec<Py<PythonControl>>,
    ) -> PyResult<Self> {
        let (networks, reps, seed, work) = draw;
        let (registry, raised) = registry(py, &controls)?;
        let planned = move || {
            let ranges = Ranges::new(&preset, &ranges)?;
            let source = load(scenario_of(&preset))?.with_controls(registry);
            let published = against;
            let settings =
                PlanSettings { preset, ranges, cc, published, networks, reps, seed, work };
            Plan::new(source, settings)
        };
        let keeps = raised.clone();
        let work = move || keeps.during(|| planned().map_err(|error| errors::argument(&error)));
        let plan = attended::run(py, work, |_| Ok(()))?;
        Ok(Self { plan: Arc::new(plan), raised })
    }

    /// Runs the missing pairs of network and control. Returns the document of `ebbtide map --json`,
    /// and the networks in which each compared control is worst.
    #[pyo3(signature = (folder=None, within=None, jobs=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        folder: Option<PathBuf>,
        within: Option<f64>,
        jobs: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(String, String)> {
        let until = within.and_then(|seconds| {
            Instant::now().checked_add(Duration::try_from_secs_f64(seconds).ok()?)
        });
        let plan = self.plan.clone();
        let work = move |cancel: &Cancel| {
            let watch = Watch { cancel, until };
            let map = plan.run(folder.as_deref(), &watch).map_err(|error| failed(&error))?;
            if let Some(folder) = &folder {
                std::fs::write(folder.join("map.html"), render(&plan, &map))?;
            }
            Ok((document(&plan, &map).to_string(), worst(&plan, &map).to_string()))
        };
        let all = self.plan.pairs();
        in_pool(py, Cancel::of(&self.raised), (jobs, all, progress), work)
    }
}

fn failed(error: &MapError) -> PyErr {
    match error {
        MapError::Run { .. } => errors::RunError::new_err(error.to_string()),
        MapError::Journal(_) => PyOSError::new_err(error.to_string()),
    }
}

fn worst(plan: &Plan, map: &Map) -> Value {
    let networks = plan.cc.iter().flat_map(|cc| {
        map.worst(plan, cc, 2).into_iter().map(move |one| {
            json!({"cc": cc, "measure": one.measure, "value": one.value,
                   "network": one.network, "command": one.command})
        })
    });
    networks.collect()
}

/// Also ends the work when its time is over.
struct Watch<'a> {
    cancel: &'a Cancel,
    until: Option<Instant>,
}

impl Progress for Watch<'_> {
    fn finished(&self, simulated_s: f64) {
        self.cancel.finished(simulated_s);
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled() || self.until.is_some_and(|until| Instant::now() >= until)
    }
}
