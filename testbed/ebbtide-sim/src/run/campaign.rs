//! Campaigns: every combination of settings and controls, every replication, in parallel.

use super::simulation::{Keep, Kept, simulate_keeping};
use crate::judge::Percentile;
use crate::record::{
    ClientRecord, Manifest, ManifestCell, RunError, RunIdentity, RunRecord, Store, StoreError,
    TimeGrid,
};
use crate::result::CoarseTime;
use crate::result::{Cell, CellResult, CellSpec, Course, PerRun, Results, VERSION, summarise};
use crate::result::{hash_of, identity};
use crate::scenario::{Axis, LoadCurve, ScenarioError, Source, WorkloadKind, combinations};
use crate::stats::summary;
use ebbtide_core::cc::Registry;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Mutex;

/// The plan of a run or reproduction: its cells, and the settings, controls and seed behind them.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The scenario's text.
    pub source: Source,
    /// Settings and sweeps.
    pub axes: Vec<Axis>,
    /// The controls' names, as given.
    pub cc: Vec<String>,
    /// Replications of a cell, unless the cell says otherwise.
    pub reps: u32,
    /// Seed of the random streams.
    pub seed: u64,
    /// The cells, in order: settings first, controls within.
    pub cells: Vec<CellSpec>,
    /// The papers that are reproduced; empty for a run.
    pub papers: Vec<String>,
    /// The command that computes everything again.
    pub command: String,
    /// The share of the exchanges by whose time the controls are compared.
    pub percentile: Percentile,
    /// Whether each replication's exchanges are kept as well, a row each.
    pub exchanges: bool,
    /// The series of each replication, if they are kept.
    pub over_time: Option<TimeGrid>,
    /// The key over which curves are drawn.
    pub curve: Option<LoadCurve>,
}

/// Which part of the replications to compute: those whose number leaves `index` divided by `of`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: u32,
    /// At least 1.
    pub of: u32,
}

/// An observer of finished replications, which may be called from any thread.
pub trait Progress: Sync {
    /// One more replication is done; `simulated_s` is how much time it covered.
    fn finished(&self, simulated_s: f64);

    /// Whether to stop: replications that have not begun are then left out.
    fn is_cancelled(&self) -> bool {
        false
    }
}

impl Progress for () {
    fn finished(&self, _simulated_s: f64) {}
}

/// Why a campaign stopped.
#[derive(Debug)]
pub enum CampaignError {
    /// A replication could not be run.
    Run {
        /// The cell, in words.
        cell: String,
        /// The replication.
        replication: u32,
        /// Why.
        error: RunError,
    },
    /// Results could not be kept.
    Store(StoreError),
}

impl fmt::Display for CampaignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { cell, replication, error } => {
                write!(f, "{cell}, replication {replication}: {error}")
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CampaignError {}

impl Campaign {
    /// Plans a campaign: applies every combination of settings and parses every control.
    ///
    /// # Errors
    ///
    /// Returns an error if a setting or a control is not possible. The message names it and the possible ones.
    pub fn plan(
        source: Source,
        axes: Vec<Axis>,
        cc: Vec<String>,
        reps: Option<u32>,
        seed: Option<u64>,
    ) -> Result<Self, ScenarioError> {
        let repeated = |(i, axis): &(usize, &Axis)| axes[..*i].iter().any(|a| a.key == axis.key);
        if let Some((_, axis)) = axes.iter().enumerate().find(repeated) {
            let message = "is set twice; values of a sweep go into one --set, with commas";
            return Err(ScenarioError::argument("--set", &axis.key, message));
        }
        let mut cells: Vec<CellSpec> = Vec::new();
        let mut defaults = None;
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for combination in combinations(&axes) {
            let scenario = source.scenario(&combination)?;
            defaults.get_or_insert(scenario.run.clone());
            let settings: Vec<(String, String)> =
                combination.into_iter().map(|change| (change.key, change.value)).collect();
            let words: Vec<String> =
                settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let words = words.join(" ");
            if let Some(other) = seen.insert(hash_of(&scenario), words.clone()) {
                let message = format!("is the same network as {other}; name it once");
                return Err(ScenarioError::argument("--set", &words, &message));
            }
            for name in &cc {
                let controls = name
                    .split('+')
                    .map(|part| scenario.control_config(part))
                    .collect::<Result<Vec<_>, _>>()?;
                if scenario.workload.kind() == WorkloadKind::Mixed && controls.len() < 2 {
                    return Err(ScenarioError::argument(
                        "--cc",
                        name,
                        "the mixed workload takes two controls on half of the clients each, such \
                         as default+fasor",
                    ));
                }
                scenario.check_tcp_buffers(name, &controls)?;
                if controls.len() > scenario.clients.count as usize {
                    let message = "has more controls than there are clients";
                    return Err(ScenarioError::argument("--cc", name, message));
                }
                let scenario = scenario.clone();
                let settings = settings.clone();
                let reps = reps.unwrap_or(scenario.run.reps);
                let (cc, derived) = (name.clone(), Vec::new());
                cells.push(CellSpec { cc, controls, settings, derived, scenario, reps });
            }
        }
        let run = defaults.unwrap_or_default();
        let (reps, seed) = (reps.unwrap_or(run.reps), seed.unwrap_or(run.seed));
        let sets: Vec<(String, String)> =
            axes.iter().map(|axis| (axis.key.clone(), axis.values.join(","))).collect();
        let command = run_command(&source.place, &sets, &cc.join(","), reps, seed);
        let (papers, percentile) = (Vec::new(), Percentile::default());
        let (exchanges, over_time, curve) = (false, None, None);
        Ok(Self {
            source,
            axes,
            cc,
            reps,
            seed,
            cells,
            papers,
            command,
            percentile,
            exchanges,
            over_time,
            curve,
        })
    }

    /// The requirements that no control can meet, by cell; each sentence once.
    pub fn unreachable_requirements(&self) -> Vec<(usize, String)> {
        let mut found: Vec<(usize, String)> = Vec::new();
        for (index, spec) in self.cells.iter().enumerate() {
            found.extend(spec.unreachable_requirements().into_iter().map(|text| (index, text)));
        }
        found
    }

    /// How many replications there are.
    pub fn runs(&self) -> usize {
        self.cells.iter().map(|cell| cell.reps as usize).sum()
    }

    /// [`Self::command`], with its results and series kept in this folder.
    pub fn command_into(&self, folder: &Path) -> String {
        let series = self.over_time.as_ref().map(TimeGrid::options).unwrap_or_default();
        format!("{}{series} --out {}", self.command, quoted(&folder.to_string_lossy()))
    }

    /// The keys that take more than one value.
    pub fn swept(&self) -> Vec<String> {
        let swept = self.axes.iter().filter(|axis| axis.values.len() > 1);
        swept.map(|axis| axis.key.clone()).collect()
    }

    /// Runs what is missing, on the current rayon pool, and summarises every complete cell. With a
    /// `store`, what it has is not run again and what is run is kept.
    ///
    /// # Errors
    ///
    /// The first failure; what was finished before is kept.
    pub fn run(
        &self,
        store: Option<&Store>,
        shard: Option<Shard>,
        progress: &impl Progress,
    ) -> Result<Results, CampaignError> {
        let collected: Vec<Mutex<Collected>> =
            self.cells.iter().map(|_| Mutex::default()).collect();
        let tasks: Vec<(usize, u32)> = self
            .cells
            .iter()
            .enumerate()
            .flat_map(|(index, cell)| (0..cell.reps).map(move |replication| (index, replication)))
            .collect();
        let outcome: Vec<Result<bool, CampaignError>> = tasks
            .into_par_iter()
            .with_max_len(1)
            .enumerate()
            .map(|(task, (index, replication))| {
                let mine = shard.is_none_or(|shard| task as u32 % shard.of == shard.index)
                    && !progress.is_cancelled();
                let found = self.one(index, replication, store, mine)?;
                let Some(FoundRun { record, course, reused }) = found else { return Ok(false) };
                progress.finished(record.totals.sim_ns as f64 / 1e9);
                let Ok(mut place) = collected[index].lock() else { return Ok(reused) };
                place.records.push(record);
                place.courses.extend(course);
                if place.records.len() == self.cells[index].reps as usize {
                    let mut records = std::mem::take(&mut place.records);
                    records.sort_unstable_by_key(|record| record.replication);
                    let mut result = self.result(index, &records);
                    result.cell.course = Course::new(std::mem::take(&mut place.courses));
                    place.result = Some(result);
                }
                Ok(reused)
            })
            .collect();
        let mut reused = 0;
        for one in outcome {
            reused += u64::from(one?);
        }
        let mut results = Results { cells: Vec::new(), left_out: Vec::new(), reused };
        for (index, place) in collected.into_iter().enumerate() {
            let Collected { records, result, .. } = place.into_inner().unwrap_or_default();
            match result {
                Some(result) => results.cells.push((index, result)),
                None => results.left_out.push((index, records.len() as u32)),
            }
        }
        Ok(results)
    }

    /// One replication, read or run; `None` if another shard is to run it.
    fn one(
        &self,
        index: usize,
        replication: u32,
        store: Option<&Store>,
        mine: bool,
    ) -> Result<Option<FoundRun>, CampaignError> {
        let spec = &self.cells[index];
        let key = store.map(|_| self.keys(spec)(replication));
        if let (Some(store), Some(key)) = (store, &key)
            && let Some(record) = store.load(key).map_err(CampaignError::Store)?
            && (!self.exchanges || store.has_exchanges(key).map_err(CampaignError::Store)?)
            && (self.over_time.is_none() || store.has_over_time(key))
        {
            let over_time = store.load_over_time(key).map_err(CampaignError::Store)?;
            let course = over_time.as_ref().map(CoarseTime::new);
            return Ok(Some(FoundRun { record, course, reused: true }));
        }
        if !mine {
            return Ok(None);
        }
        let kept = self.compute(spec, replication).map_err(|error| CampaignError::Run {
            cell: spec.name(),
            replication,
            error,
        })?;
        if let (Some(store), Some(key)) = (store, &key) {
            if self.exchanges {
                // The replication's own file comes last: what it stands for is then complete.
                self.identified(spec, key, |identity| {
                    store.save_exchanges(identity, replication, &kept.exchanges)
                })
                .map_err(CampaignError::Store)?;
            }
            if let Some(over_time) = &kept.over_time {
                self.identified(spec, key, |identity| {
                    store.save_over_time(identity, replication, over_time)
                })
                .map_err(CampaignError::Store)?;
            }
            let bytes = self.encode(spec, key, &kept.record).map_err(CampaignError::Store)?;
            store.save(key, &bytes).map_err(CampaignError::Store)?;
        }
        let course = kept.over_time.as_ref().map(CoarseTime::new);
        Ok(Some(FoundRun { record: kept.record, course, reused: false }))
    }

    /// Runs one replication, with what is to be kept of it.
    pub(super) fn compute(&self, spec: &CellSpec, replication: u32) -> Result<Kept, RunError> {
        // Series of one replication show what all of them do; more would only fill the disk.
        let (series, exchanges) = (replication == 0, self.exchanges);
        let keep = Keep { series, exchanges, over_time: self.over_time.clone() };
        let timer = crate::wall::Stopwatch::start();
        let mut kept =
            simulate_keeping(&spec.scenario, &spec.controls, self.seed, replication, &keep)?;
        kept.record.wall_s = timer.seconds();
        Ok(kept)
    }

    /// Runs one replication of a cell, for a program that spreads a campaign itself and keeps records in its own way.
    ///
    /// # Errors
    ///
    /// Returns an error if the replication cannot be run.
    pub fn replicate(&self, spec: &CellSpec, replication: u32) -> Result<Replication, RunError> {
        let kept = self.compute(spec, replication)?;
        let course = kept.over_time.as_ref().map(CoarseTime::new);
        Ok(Replication { record: kept.record, course })
    }

    /// Summarises records that [`Self::replicate`] made: those of each cell, in the order of the cells and of the
    /// replications. Cells without a record are left out.
    pub fn results(&self, records: &[Vec<RunRecord>]) -> Results {
        let mut results = Results { cells: Vec::new(), left_out: Vec::new(), reused: 0 };
        for (index, own) in records.iter().enumerate().take(self.cells.len()) {
            match own.as_slice() {
                [] => results.left_out.push((index, 0)),
                own => results.cells.push((index, self.result(index, own))),
            }
        }
        results
    }

    /// A replication as the bytes of its file.
    pub(super) fn encode(
        &self,
        spec: &CellSpec,
        key: &str,
        record: &RunRecord,
    ) -> Result<Vec<u8>, StoreError> {
        self.identified(spec, key, |identity| Store::encode(identity, record))
    }

    /// Hands the identity of a cell's replication to `use_it`.
    fn identified<T>(
        &self,
        spec: &CellSpec,
        key: &str,
        use_it: impl FnOnce(&RunIdentity<'_>) -> T,
    ) -> T {
        use_it(&RunIdentity {
            scenario: &spec.scenario.name,
            settings: &spec.settings_json(),
            cc: &spec.cc,
            seed: self.seed,
            version: VERSION,
            scenario_hash: &hash_of(&spec.scenario),
            key,
        })
    }

    /// The keys of a cell's replications. The scenario's text about itself is not part of them.
    pub fn keys(&self, spec: &CellSpec) -> impl Fn(u32) -> String + use<> {
        let (scenario, controls) = (identity(&spec.scenario), format!("{:?}", spec.controls));
        let seed = self.seed.to_string();
        let key = Store::keys_with(&[&scenario, &controls, &spec.cc, &seed]);
        move |replication| key(&[&replication.to_string(), VERSION])
    }

    fn result(&self, index: usize, records: &[RunRecord]) -> CellResult {
        let spec = &self.cells[index];
        let names: Vec<&str> = spec.cc.split('+').collect();
        let halves = match names.len() {
            0 | 1 => Vec::new(),
            _ => (0..names.len()).map(|group| self.half(spec, &names, group, records)).collect(),
        };
        let per_run = records.iter().map(|record| {
            let over = |field: &dyn Fn(&ClientRecord) -> f64| {
                summary(&mut record.clients.iter().map(field).collect::<Vec<f64>>()).median
            };
            PerRun {
                median_fct: over(&|client| client.fct.as_nanos() as f64 / 1e9),
                unnecessary: over(&|client| client.unnecessary.into()),
                by_retransmissions: record.totals.by_retransmissions.clone(),
            }
        });
        CellResult {
            cell: summarise(spec, records, self.cell_command(spec)),
            halves,
            events: records.iter().map(|record| record.totals.events).sum(),
            wall_s: records.iter().map(|record| record.wall_s).sum(),
            sim_s: records.iter().map(|record| record.totals.sim_ns as f64 / 1e9).sum(),
            per_run: per_run.collect(),
        }
    }

    /// The figures of the clients under one of a mixed cell's controls.
    fn half(&self, spec: &CellSpec, names: &[&str], group: usize, records: &[RunRecord]) -> Cell {
        let mut own = records.to_vec();
        for record in &mut own {
            record.clients.retain(|client| usize::from(client.group) == group);
            record.totals.series = None;
        }
        let others = names.iter().enumerate().filter(|(other, _)| *other != group);
        let others: Vec<&str> = others.map(|(_, name)| *name).collect();
        let mut cell = summarise(spec, &own, self.cell_command(spec));
        cell.cc = format!("{} beside {}", names[group], others.join(", "));
        cell.clients = own.first().map_or(0, |record| record.clients.len() as u32);
        cell
    }

    fn cell_command(&self, spec: &CellSpec) -> String {
        // Papers run several built-in scenarios.
        let place = if self.papers.is_empty() { &self.source.place } else { &spec.scenario.name };
        let settings = [&spec.settings[..], &spec.derived[..]].concat();
        run_command(place, &settings, &spec.cc, spec.reps, self.seed)
    }

    /// The `ebbtide replay` that runs one replication of a cell again.
    pub fn replay_command(&self, spec: &CellSpec, replication: u32) -> String {
        let mut command = format!("ebbtide replay {}", quoted(&self.source.place));
        for (key, value) in spec.settings.iter().chain(&spec.derived) {
            command.push_str(&format!(" --set {}", quoted(&format!("{key}={value}"))));
        }
        command.push_str(&format!(" --cc {} --rep {replication} --seed {}", spec.cc, self.seed));
        command
    }

    /// Returns the manifest for the folder of results.
    pub fn manifest(&self) -> Manifest {
        let cells = self.cells.iter().map(|spec| ManifestCell {
            cc: spec.cc.clone(),
            settings: spec.settings.clone(),
            scenario_hash: hash_of(&spec.scenario),
            runs: (0..spec.reps)
                .map(self.keys(spec))
                .map(|key| format!("runs/{key}.parquet"))
                .collect(),
        });
        Manifest {
            scenario: self.source.place.clone(),
            scenario_toml: self.source.text.clone(),
            scenario_hash: self
                .source
                .scenario(&[])
                .map_or_else(|_| String::new(), |s| hash_of(&s)),
            seal: String::new(),
            set: self.axes.clone(),
            cc: self.cc.clone(),
            reps: self.reps,
            seed: self.seed,
            version: VERSION.to_owned(),
            papers: self.papers.clone(),
            command: self.command.clone(),
            curve: self.curve.clone(),
            series: self.over_time.clone(),
            cells: cells.collect(),
        }
    }

    /// The campaign that a manifest describes, unless it is a reproduction of papers (the crate
    /// `ebbtide-reproduce` handles both). `controls` are the congestion controls from outside that it names.
    ///
    /// # Errors
    ///
    /// Returns an error if this version does not understand the scenario of the manifest, or if a
    /// control is missing.
    pub fn from_manifest(manifest: &Manifest, controls: Registry) -> Result<Self, ScenarioError> {
        let source = Source::new(&manifest.scenario, &manifest.scenario_toml);
        let source = source.with_controls(controls);
        let (set, cc) = (manifest.set.clone(), manifest.cc.clone());
        let (reps, seed) = (Some(manifest.reps), Some(manifest.seed));
        let mut campaign = Self::plan(source, set, cc, reps, seed)?;
        if let Some(curve) = &manifest.curve {
            campaign = campaign.with_curve(curve.clone());
        }
        campaign.over_time.clone_from(&manifest.series);
        // A campaign that goes on until its intervals are narrow has cells of different lengths.
        for (spec, cell) in campaign.cells.iter_mut().zip(&manifest.cells) {
            spec.reps = u32::try_from(cell.runs.len()).unwrap_or(u32::MAX);
        }
        Ok(campaign)
    }
}

/// The `ebbtide run` that computes some cells again.
pub fn run_command(
    place: &str,
    settings: &[(String, String)],
    cc: &str,
    reps: u32,
    seed: u64,
) -> String {
    let mut command = format!("ebbtide run {}", quoted(place));
    for (key, value) in settings {
        command.push_str(&format!(" --set {}", quoted(&format!("{key}={value}"))));
    }
    command.push_str(&format!(" --cc {cc} --reps {reps} --seed {seed}"));
    command
}

/// A replication for a program that spreads a campaign itself.
#[derive(Clone, Debug)]
pub struct Replication {
    /// Its measurements.
    pub record: RunRecord,
    /// Its course over time, if the campaign keeps series.
    pub course: Option<CoarseTime>,
}

/// A replication that was read or run.
struct FoundRun {
    record: RunRecord,
    course: Option<CoarseTime>,
    reused: bool,
}

#[derive(Default)]
struct Collected {
    records: Vec<RunRecord>,
    courses: Vec<CoarseTime>,
    result: Option<CellResult>,
}

/// Quotes an argument for a shell if it needs to be.
pub(super) fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/+:".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}
