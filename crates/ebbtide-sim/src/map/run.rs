//! Running a map: every control in every network.

use super::journal::Journal;
use super::measures::Measures;
use super::network::Network;
use super::ranges::Ranges;
use super::regret::{Again, Best, COST_OF, PUBLISHED, Reference, Regret};
use super::result::{Map, MapCell};
use crate::record::Store;
use crate::run::{Progress, RunError, VERSION, simulate};
use crate::scenario::{Control, ScenarioError, Source};
use ebbtide_core::cc::Registry;
use rayon::prelude::*;
use std::fmt;
use std::path::Path;

/// The default maximum of clients times exchanges of one network, which bounds the cost of a
/// network.
pub const WORK: u64 = 6000;

/// The plan of a map.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario from which the networks are derived.
    pub source: Source,
    /// The name of the ranges' preset.
    pub preset: String,
    /// The ranges from which networks are drawn.
    pub ranges: Ranges,
    /// The networks.
    pub networks: Vec<Network>,
    /// The controls that are compared.
    pub cc: Vec<String>,
    /// The controls that they are compared with.
    pub published: Vec<String>,
    /// Replications of each control in each network.
    pub reps: u32,
    /// Seed of the draw and of every replication.
    pub seed: u64,
    /// Whether the best published controls are measured again, to show how far chance goes.
    chance: bool,
    /// The command that computes the same map.
    command: String,
}

/// The reason why a map could not be computed.
#[derive(Debug)]
pub enum MapError {
    /// A replication could not be run.
    Run {
        /// The command that runs the control in the network.
        command: String,
        /// The reason.
        error: RunError,
    },
    /// The results could not be written.
    Journal(std::io::Error),
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { command, error } => write!(f, "{command}: {error}"),
            Self::Journal(error) => write!(f, "the results cannot be written: {error}"),
        }
    }
}

impl std::error::Error for MapError {}

impl Plan {
    /// Draws the networks and checks the controls.
    ///
    /// # Errors
    ///
    /// Returns an error if a network is not valid or a control is not known; the message names it.
    pub fn new(
        source: Source,
        (preset, ranges): (&str, Ranges),
        (cc, published): (Vec<String>, Option<Vec<String>>),
        (networks, reps, seed): (u32, u32, u64),
        work: u64,
    ) -> Result<Self, ScenarioError> {
        let networks = Network::draw(&source, &ranges, (seed, networks), work)?;
        let mut words = vec![format!("ebbtide map --preset {preset}")];
        words.extend(ranges.changes().iter().map(|range| format!("--range '{range}'")));
        words.push(format!("--networks {} --cc {}", networks.len(), cc.join(",")));
        words.extend(published.iter().map(|against| format!("--against {}", against.join(","))));
        words.push(format!("--reps {reps} --seed {seed} --work {work}"));
        let command = words.join(" ");
        let published = published.unwrap_or_else(|| PUBLISHED.map(str::to_owned).to_vec());
        let plain = source.scenario(&[])?;
        for name in cc.iter().chain(&published) {
            plain.control_config(name)?;
        }
        let preset = preset.to_owned();
        let chance = false;
        Ok(Self { source, preset, ranges, networks, cc, published, reps, seed, chance, command })
    }

    /// The same plan, in which the best published controls of each network are measured again in as
    /// many other replications. Their difference from themselves is chance, which no control can
    /// avoid: the reference is the minimum over several controls.
    #[must_use]
    pub fn with_chance(mut self) -> Self {
        self.chance = true;
        self.command.push_str(" --chance");
        self
    }

    /// The `ebbtide map` that computes the same map.
    #[must_use]
    pub fn command_line(&self) -> &str {
        &self.command
    }

    /// The controls to run, each once: those compared, those compared with, and the reference for
    /// costs.
    #[must_use]
    pub fn controls(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        let named = self.cc.iter().chain(&self.published).map(String::as_str);
        for name in named.chain([COST_OF]) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        all
    }

    /// The number of pairs of network and control.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.networks.len() * self.controls().len()
    }

    /// The seed of a network's replications, the same for all controls. Each network has its own
    /// seed; otherwise chance would affect all networks in the same way.
    const fn seed_of(&self, network: &Network) -> u64 {
        self.seed.wrapping_mul(1_000_000).wrapping_add(network.number as u64)
    }

    /// The command that runs some controls in a network again.
    #[must_use]
    pub fn command(&self, network: &Network, controls: &str) -> String {
        crate::run::run_command(
            &self.source.place,
            &network.settings,
            controls,
            (self.reps, self.seed_of(network)),
        )
    }

    /// Runs the missing pairs on the current rayon pool, network by network. Pairs that have not
    /// begun when `progress` reports that the time is over are left out.
    ///
    /// # Errors
    ///
    /// Returns the first error. Results that were finished before it are kept if there is a
    /// folder.
    pub fn run(&self, folder: Option<&Path>, progress: &impl Progress) -> Result<Map, MapError> {
        let journal = match folder {
            Some(folder) => Journal::open(folder).map_err(MapError::Journal)?,
            None => Journal::nowhere(),
        };
        let controls = self.controls();
        let count = controls.len();
        let measured: Result<Vec<Option<Measures>>, MapError> = (0..self.networks.len() * count)
            .into_par_iter()
            .with_max_len(1)
            .map(|pair| {
                let network = &self.networks[pair / count];
                let measures =
                    self.one(network, (controls[pair % count], 0), &journal, progress)?;
                progress.finished(0.0);
                Ok(measures)
            })
            .collect();
        let mut map = Map::new(self, &controls, &measured?);
        if self.chance {
            let again: Result<Vec<Option<Regret>>, MapError> = map
                .cells
                .par_iter()
                .map(|cell| self.again(&map, cell, &journal, progress))
                .collect();
            map.chance = again?.into_iter().flatten().collect();
        }
        Ok(map)
    }

    /// The difference between the best published controls of a network and themselves in other
    /// replications.
    fn again(
        &self,
        map: &Map,
        cell: &MapCell,
        journal: &Journal,
        progress: &impl Progress,
    ) -> Result<Option<Regret>, MapError> {
        let first = |name: &str| map.measures_of(cell, name);
        let published: Option<Vec<Measures>> = self.published.iter().map(|cc| first(cc)).collect();
        let Some(published) = published else { return Ok(None) };
        let reference = Reference::of(&published, first(COST_OF));
        let (Some(best), Some(reference)) = (Best::of(&published), reference) else {
            return Ok(None);
        };
        let by = |place: usize| self.published[place].as_str();
        let names = [by(best.share), by(best.median), by(best.p90), COST_OF];
        // Often one control is the best one by several measures; it is run once.
        let mut again = [Measures::default(); 4];
        for (place, name) in names.into_iter().enumerate() {
            let same = names[..place].iter().position(|earlier| *earlier == name);
            let measured = match same {
                Some(earlier) => Some(again[earlier]),
                None => self.one(&cell.network, (name, self.reps), journal, progress)?,
            };
            let Some(measured) = measured else { return Ok(None) };
            again[place] = measured;
        }
        let [share, median, p90, cost] = again;
        Ok(Some(reference.regret_of_chance(&Again { share, median, p90, cost })))
    }

    /// The figures of a control in a network, from the replication `first` on: read from the journal,
    /// computed, or left out.
    fn one(
        &self,
        network: &Network,
        (cc, first): (&str, u32),
        journal: &Journal,
        progress: &impl Progress,
    ) -> Result<Option<Measures>, MapError> {
        let control: Vec<Control> = network.scenario.control_config(cc).into_iter().collect();
        let key = self.key(network, (cc, first), &control);
        if let Some(known) = journal.get(&key) {
            return Ok(Some(known));
        }
        let fail = |error| MapError::Run { command: self.command(network, cc), error };
        let mut records = Vec::new();
        for replication in first..first.saturating_add(self.reps) {
            if progress.is_cancelled() {
                return Ok(None);
            }
            let record =
                simulate(&network.scenario, &control, self.seed_of(network), replication, false);
            records.push(record.map_err(fail)?);
        }
        let measures = Measures::of(network, &records);
        journal.add(key, (network.number, cc), measures).map_err(MapError::Journal)?;
        Ok(Some(measures))
    }

    fn key(&self, network: &Network, (cc, first): (&str, u32), control: &[Control]) -> String {
        let settings: String =
            network.settings.iter().map(|(key, value)| format!("{key}={value};")).collect();
        let from = if first == 0 { String::new() } else { format!(" from {first}") };
        let run = format!("{} {}{from}", self.reps, self.seed_of(network));
        // Of a control from outside, the name says less than its version.
        let control = match self.source.custom == Registry::default() {
            true => cc.to_owned(),
            false => format!("{control:?}"),
        };
        Store::key(&[&self.source.text, &settings, &control, &run, VERSION])
    }
}
