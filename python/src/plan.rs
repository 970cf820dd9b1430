//! The testbed: plans, runs, reads and reports on campaigns.

use crate::control::{PythonControl, Raised, registry};
use crate::pool::{Cancel, in_pool};
use crate::{attended, errors};
use ebbtide_report::render;
use ebbtide_reproduce::{Paper, campaign_of, check_statements, compare, pages, plan, replications};
use ebbtide_sim::record::{AIR, Capture, Claim, PLACES, Store};
use ebbtide_sim::result::Report;
use ebbtide_sim::run::{
    Campaign, CellSpec, ChunkSize, Results, Shard, Tap, Trace, TraceFilter, document, left_out,
    report, simulate_with,
};
use ebbtide_sim::scenario::{self, Axis, ScenarioError, Source};
use pyo3::exceptions::{PyIndexError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A campaign, with every key and value validated.
#[pyclass(frozen)]
pub(crate) struct Plan {
    campaign: Arc<Campaign>,
    raised: Raised,
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (place, text, axes, cc, controls, reps=None, seed=None))]
    fn new(
        py: Python<'_>,
        place: String,
        text: String,
        axes: Vec<(String, Vec<String>)>,
        cc: Vec<String>,
        controls: Vec<Py<PythonControl>>,
        reps: Option<u32>,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let axes = axes.into_iter().map(|(key, values)| Axis { key, values }).collect();
        let (registry, raised) = registry(py, &controls)?;
        let source = Source::new(place, text).with_controls(registry);
        let plan = move || Campaign::plan(source, axes, cc, reps, seed);
        Self::planned(py, raised, plan)
    }

    /// The experiments of papers.
    #[staticmethod]
    #[pyo3(signature = (papers, reps=None, seed=None))]
    fn of_papers(
        py: Python<'_>,
        papers: Vec<String>,
        reps: Option<u32>,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let known: Vec<&str> = Paper::ALL.iter().map(|paper| paper.name()).collect();
        if let Some(name) = papers.iter().find(|name| !known.contains(&name.as_str())) {
            let hint = scenario::did_you_mean(name, known.iter().copied());
            let known = known.join(", ");
            let text = format!("papers: '{name}' cannot be reproduced; there are {known}{hint}");
            return Err(PyValueError::new_err(text));
        }
        let papers = Paper::named(&papers);
        Self::planned(py, Raised::default(), move || plan(&papers, reps, seed))
    }

    /// The campaign of a folder of results.
    #[staticmethod]
    fn of_folder(
        py: Python<'_>,
        folder: PathBuf,
        controls: Vec<Py<PythonControl>>,
    ) -> PyResult<Self> {
        let store = Store::open(&folder).map_err(|error| errors::store(&error))?;
        let manifest = store.load_manifest().map_err(|error| errors::store(&error))?;
        let (registry, raised) = registry(py, &controls)?;
        Self::planned(py, raised, move || campaign_of(&manifest, registry))
    }

    /// The same campaign with other numbers of replications, one per cell.
    fn with_reps(&self, reps: Vec<u32>) -> PyResult<Self> {
        let mut campaign = (*self.campaign).clone();
        if reps.len() != campaign.cells.len() {
            return Err(PyValueError::new_err("reps: takes one number per cell"));
        }
        campaign.reps = reps.iter().copied().max().unwrap_or_default();
        for (spec, reps) in campaign.cells.iter_mut().zip(reps) {
            spec.reps = reps;
        }
        Ok(Self { campaign: Arc::new(campaign), raised: self.raised.clone() })
    }

    /// The same campaign, whose verdict compares the times of this share of the exchanges, in percent, and which
    /// keeps a row for each exchange if that is wanted.
    fn with_options(&self, percentile: u8, exchanges: bool) -> PyResult<Self> {
        let share = percentile.to_string().parse();
        let wrong = |error: String| PyValueError::new_err(format!("percentile: {error}"));
        let mut campaign = (*self.campaign).clone();
        campaign.percentile = share.map_err(wrong)?;
        campaign.exchanges = exchanges;
        Ok(Self { campaign: Arc::new(campaign), raised: self.raised.clone() })
    }

    #[getter]
    fn place(&self) -> &str {
        &self.campaign.source.place
    }

    #[getter]
    fn text(&self) -> &str {
        &self.campaign.source.text
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.campaign.seed
    }

    #[getter]
    fn runs(&self) -> usize {
        self.campaign.runs()
    }

    #[getter]
    fn command(&self) -> &str {
        &self.campaign.command
    }

    /// The papers to reproduce; empty for a run.
    #[getter]
    fn papers(&self) -> Vec<String> {
        self.campaign.papers.clone()
    }

    /// The keys with more than one value.
    fn swept(&self) -> Vec<String> {
        self.campaign.swept()
    }

    /// Each cell: control, settings, replications, and the approximate number of messages of a
    /// replication.
    fn cells(&self) -> Vec<(String, Vec<(String, String)>, u32, u64)> {
        let cells = self.campaign.cells.iter();
        cells
            .map(|spec| (spec.cc.clone(), spec.settings.clone(), spec.reps, messages(spec)))
            .collect()
    }

    /// The `ebbtide replay` command of one replication.
    fn replay_command(&self, cell: usize, replication: u32) -> PyResult<String> {
        Ok(self.campaign.replay_command(self.cell(cell)?, replication))
    }

    /// The manifest of the folder of results, as JSON.
    fn manifest(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.campaign.manifest()).map_err(unwritable)
    }

    fn save_manifest(&self, folder: PathBuf) -> PyResult<()> {
        let store = Store::open(&folder).map_err(|error| errors::store(&error))?;
        store.save_manifest(&self.campaign.manifest()).map_err(|error| errors::store(&error))
    }

    /// The replications that a folder lacks, as (cell, replication), and all keys by cell.
    fn missing(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<(usize, u32)>> {
        let campaign = self.campaign.clone();
        py.detach(move || {
            let there = match folder.join("runs").is_dir() {
                true => Store::open(&folder)?.keys()?,
                false => BTreeSet::new(),
            };
            let cells = campaign.cells.iter().enumerate();
            Ok(cells
                .flat_map(|(index, spec)| {
                    let key = campaign.keys(spec);
                    let there = &there;
                    let missing = (0..spec.reps).filter(move |rep| !there.contains(&key(*rep)));
                    missing.map(move |rep| (index, rep)).collect::<Vec<_>>()
                })
                .collect())
        })
        .map_err(|error| errors::store(&error))
    }

    /// The keys of all replications of each cell.
    fn keys(&self, py: Python<'_>) -> Vec<Vec<String>> {
        let campaign = self.campaign.clone();
        py.detach(move || {
            let cells = campaign.cells.iter();
            cells.map(|spec| (0..spec.reps).map(campaign.keys(spec)).collect()).collect()
        })
    }

    /// Like `ebbtide run`: runs the missing replications and writes them to a folder.
    #[pyo3(signature = (folder, jobs=None, shard=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        jobs: Option<usize>,
        shard: Option<(u32, u32)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Figures> {
        let store = Store::open(&folder).map_err(|error| errors::store(&error))?;
        // Keeps other processes from writing into the folder until its report is written.
        let claim =
            store.claim(&self.campaign.manifest()).map_err(|error| errors::store(&error))?;
        let shard = shard.map(|(index, of)| Shard { index, of });
        self.attended(py, (store, Some(claim)), jobs, shard, progress)
    }

    /// The figures of a folder; nothing is run.
    #[pyo3(signature = (folder, jobs=None))]
    fn read(&self, py: Python<'_>, folder: PathBuf, jobs: Option<usize>) -> PyResult<Figures> {
        let store = Store::open(&folder).map_err(|error| errors::store(&error))?;
        // A share of the work that does not exist.
        let nothing = Shard { index: u32::MAX, of: 1 };
        self.attended(py, (store, None), jobs, Some(nothing), None)
    }

    /// Combines results in few files, and returns their number.
    fn compact(&self, py: Python<'_>, folder: PathBuf, most_rows: u64) -> PyResult<usize> {
        let campaign = self.campaign.clone();
        let compacted = py.detach(move || campaign.compact(&folder, ChunkSize::Rows(most_rows)));
        compacted.map_err(|error| errors::store(&error))
    }

    /// The keys whose files differ byte by byte, or that only one of the folders has.
    fn differing(&self, py: Python<'_>, one: PathBuf, other: PathBuf) -> PyResult<Vec<String>> {
        let campaign = self.campaign.clone();
        py.detach(move || {
            let (one, other) = (Store::open(&one)?, Store::open(&other)?);
            let keys = campaign.cells.iter().flat_map(|spec| {
                let key = campaign.keys(spec);
                (0..spec.reps).map(key).collect::<Vec<_>>()
            });
            // A damaged file differs.
            let differs = |key: &String| match (one.file(key), other.file(key)) {
                (Ok(one), Ok(other)) => one != other,
                _ => true,
            };
            Ok(keys.filter(differs).collect())
        })
        .map_err(|error| errors::store(&error))
    }

    /// Everything that happens in one replication, as JSON lines and as a capture.
    #[pyo3(signature = (cell, replication, trace=None, pcap=None))]
    fn replay(
        &self,
        py: Python<'_>,
        cell: usize,
        replication: u32,
        trace: Option<PathBuf>,
        pcap: Option<PathBuf>,
    ) -> PyResult<()> {
        let spec = self.cell(cell)?.clone();
        let (seed, raised) = (self.campaign.seed, self.raised.clone());
        let work = move || -> Result<(), PyErr> {
            let lines = trace.as_deref().map(create).transpose()?;
            let capture = match &pcap {
                None => None,
                Some(path) if spec.scenario.network.mesh().is_some() => {
                    Some(Capture::of_frames(create(path)?, &AIR)?)
                }
                Some(path) => {
                    let capture = Capture::new(create(path)?, &PLACES)?;
                    Some(capture.with_header(spec.scenario.network.header))
                }
            };
            let taps = capture.into_iter().map(|capture| Tap { place: None, capture }).collect();
            let trace = Trace::new(lines, taps, TraceFilter::default());
            let ran = simulate_with(&spec.scenario, &spec.controls, seed, replication, trace);
            let (_, trace) = ran.map_err(|error| errors::RunError::new_err(error.to_string()))?;
            Ok(trace.finish()?)
        };
        attended::run(py, move || raised.during(work), |_| Ok(()))
    }
}

/// The document of `run --json`, the figures of each cell's replications, a note on missing ones,
/// and the number of existing ones.
type Figures = (String, String, Option<String>, u64);

impl Plan {
    /// Plans on another thread: a plan of ten thousand cells takes seconds.
    fn planned(
        py: Python<'_>,
        raised: Raised,
        plan: impl FnOnce() -> Result<Campaign, ScenarioError> + Send + 'static,
    ) -> PyResult<Self> {
        let keeps = raised.clone();
        let work = move || keeps.during(|| plan().map_err(|error| errors::argument(&error)));
        let campaign = attended::run(py, work, |_| Ok(()))?;
        Ok(Self { campaign: Arc::new(campaign), raised })
    }

    fn cell(&self, index: usize) -> PyResult<&CellSpec> {
        let count = self.campaign.cells.len();
        let wrong = || PyIndexError::new_err(format!("cell {index}: there are {count}, from 0"));
        self.campaign.cells.get(index).ok_or_else(wrong)
    }

    /// Runs on a pool of threads, and writes the report.
    fn attended(
        &self,
        py: Python<'_>,
        (store, claim): (Store, Option<Claim>),
        jobs: Option<usize>,
        shard: Option<Shard>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Figures> {
        let campaign = self.campaign.clone();
        let work = move |cancel: &Cancel| -> PyResult<Figures> {
            let ran = campaign.run(Some(&store), shard, cancel);
            let results = ran.map_err(|error| errors::campaign(&error))?;
            save_report(&store, &campaign, &results)?;
            drop(claim);
            let document = document(&campaign, &results).to_string();
            let per_run = per_run(&results).to_string();
            Ok((document, per_run, left_out(&campaign, &results), results.reused))
        };
        let all = self.campaign.runs();
        in_pool(py, Cancel::of(&self.raised), (jobs, all, progress), work)
    }
}

fn save_report(store: &Store, campaign: &Campaign, results: &Results) -> PyResult<()> {
    let save = |name: &str, text: &str| {
        store.save_text(name, text).map(drop).map_err(|error| errors::store(&error))
    };
    if campaign.papers.is_empty() {
        let command = campaign.command_into(store.folder());
        return save("report.html", &render(&Report { command, ..report(campaign, results) }));
    }
    let papers = Paper::named(&campaign.papers);
    for page in pages(&papers, campaign, results) {
        save(&format!("{}.html", page.name), &render(&page.report))?;
    }
    let compared: Vec<Value> = papers
        .iter()
        .flat_map(|paper| {
            compare(*paper, campaign, results).into_iter().map(|row| {
                json!({"paper": paper.name(), "table": row.table, "cell": row.cell, "cc": row.cc,
                       "quantity": row.quantity, "published": row.published,
                       "measured": row.measured, "relative": row.relative,
                       "within": row.within, "is_outside": row.is_outside()})
            })
        })
        .collect();
    let statements: Vec<Value> = papers
        .iter()
        .flat_map(|paper| {
            let reps = replications(*paper, campaign);
            check_statements(*paper, campaign, results).into_iter().map(move |statement| {
                let holds = statement.holds_after(reps);
                json!({"paper": paper.name(), "says": statement.says, "holds": holds,
                       "measured": statement.measured})
            })
        })
        .collect();
    save("compared.json", &json!({"figures": compared, "statements": statements}).to_string())
}

/// The figures of each cell's replications, in order, from which intervals and paired comparisons
/// are computed.
fn per_run(results: &Results) -> Value {
    let cells = results.cells.iter().map(|(index, result)| {
        let medians: Vec<f64> = result.per_run.iter().map(|run| run.median_fct).collect();
        let unnecessary: Vec<f64> = result.per_run.iter().map(|run| run.unnecessary).collect();
        json!({"cell": index, "median_fct_s": medians, "unnecessary": unnecessary})
    });
    Value::Array(cells.collect())
}

/// The approximate number of messages of a replication, for comparing costs.
fn messages(spec: &CellSpec) -> u64 {
    let scenario = &spec.scenario;
    u64::from(scenario.clients.count).max(1) * u64::from(scenario.workload.exchanges).max(1)
}

fn create(path: &Path) -> PyResult<BufWriter<File>> {
    let failed = |error: std::io::Error| {
        PyOSError::new_err((error.raw_os_error(), error.to_string(), path.display().to_string()))
    };
    File::create(path).map(BufWriter::new).map_err(failed)
}

fn unwritable(error: serde_json::Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// The cells of one piece of work: settings, control and the numbers of the replications.
type Work = Vec<(Vec<(String, String)>, String, Vec<u32>)>;
/// The result of a piece of work: keys, failures as (key, cell, replication, error, replay),
/// seconds.
type Done = (Vec<String>, Vec<(String, String, u32, String, String)>, f64);

/// Runs a piece of work on this thread without holding the interpreter lock, and writes one file.
#[pyfunction]
#[pyo3(signature = (scenario, seed, work, controls, folder, cancel=None))]
pub(crate) fn run_chunk(
    py: Python<'_>,
    scenario: (String, String),
    seed: u64,
    work: Work,
    controls: Vec<Py<PythonControl>>,
    folder: PathBuf,
    cancel: Option<Cancel>,
) -> PyResult<Done> {
    let (registry, raised) = registry(py, &controls)?;
    let cancel = cancel.unwrap_or_default().with(&raised);
    let source = Source::new(scenario.0, scenario.1).with_controls(registry);
    let run = move || {
        let mut whole: Option<Campaign> = None;
        let mut tasks = Vec::new();
        for (settings, cc, replications) in work {
            let axes = settings.into_iter().map(|(key, value)| Axis { key, values: vec![value] });
            let reps = replications.iter().max().map(|last| last.saturating_add(1));
            let planned =
                Campaign::plan(source.clone(), axes.collect(), vec![cc], reps, Some(seed));
            let planned = planned.map_err(|error| errors::argument(&error))?;
            let whole =
                whole.get_or_insert_with(|| Campaign { cells: Vec::new(), ..planned.clone() });
            tasks.extend(replications.iter().map(|rep| (whole.cells.len(), *rep)));
            whole.cells.extend(planned.cells);
        }
        let Some(campaign) = whole else { return Ok((Vec::new(), Vec::new(), 0.0)) };
        let store = Store::open(&folder).map_err(|error| errors::store(&error))?;
        let done = campaign.run_chunk(&tasks, &store, &cancel);
        let done = done.map_err(|error| errors::store(&error))?;
        let failed = done.failed.into_iter();
        let failed = failed.map(|run| (run.key, run.cell, run.replication, run.error, run.replay));
        Ok((done.keys, failed.collect(), done.wall_s))
    };
    py.detach(move || raised.during(run))
}
