//! Running a map: every control in every network.

use super::journal::Journal;
use super::measures::{Measured, Measures};
use super::network::DrawnNetwork;
use super::plan::Plan;
use super::regret::{Again, Best, COST_OF, Reference, Regret};
use super::result::{Map, MapCell};
use ebbtide_core::cc::Registry;
use ebbtide_sim::record::Store;
use ebbtide_sim::run::{Progress, RunError, VERSION, simulate};
use ebbtide_sim::scenario::Control;
use ebbtide_sim::wall::ThreadTime;
use rayon::prelude::*;
use std::fmt;
use std::path::Path;

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
        let measured: Result<Vec<(Option<Measured>, f64)>, MapError> = (0..self.networks.len()
            * count)
            .into_par_iter()
            .with_max_len(1)
            .map(|pair| {
                let network = &self.networks[pair / count];
                let watch = ThreadTime::start();
                let measures = self.one(network, controls[pair % count], 0, &journal, progress)?;
                progress.finished(0.0);
                Ok((measures, watch.seconds()))
            })
            .collect();
        let (measured, costs): (Vec<Option<Measured>>, Vec<f64>) = measured?.into_iter().unzip();
        let mut map = Map::new(self, &controls, &measured);
        for (network, costs) in self.networks.iter().zip(costs.chunks(count.max(1))) {
            map.cost_s[network.stratum] += costs.iter().sum::<f64>();
        }
        if self.chance {
            let again: Result<Vec<Option<Regret>>, MapError> = map
                .cells
                .par_iter()
                .map(|cell| self.regret_of_chance(&map, cell, &journal, progress))
                .collect();
            map.chance = again?.into_iter().flatten().collect();
        }
        Ok(map)
    }

    /// The difference between the best published controls of a network and themselves in other
    /// replications.
    fn regret_of_chance(
        &self,
        map: &Map,
        cell: &MapCell,
        journal: &Journal,
        progress: &impl Progress,
    ) -> Result<Option<Regret>, MapError> {
        let first = |name: &str| map.measures_of(cell, name);
        let published: Option<Vec<Measures>> = self.published.iter().map(|cc| first(cc)).collect();
        let Some(published) = published else { return Ok(None) };
        let reference = Reference::from_published(&published, first(COST_OF));
        let (Some(best), Some(reference)) = (Best::among(&published), reference) else {
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
                None => {
                    let own = self.one(&cell.network, name, self.reps, journal, progress)?;
                    own.map(|own| own.all)
                }
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
        network: &DrawnNetwork,
        cc: &str,
        first: u32,
        journal: &Journal,
        progress: &impl Progress,
    ) -> Result<Option<Measured>, MapError> {
        let control: Vec<Control> = network.scenario.control_config(cc).into_iter().collect();
        let key = self.key(network, cc, first, &control);
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
        let measured = Measured::from_records(network, &records);
        journal.add(key, network.number, cc, measured.clone()).map_err(MapError::Journal)?;
        Ok(Some(measured))
    }

    fn key(&self, network: &DrawnNetwork, cc: &str, first: u32, control: &[Control]) -> String {
        let settings: String =
            network.settings.iter().map(|(key, value)| format!("{key}={value};")).collect();
        let from = if first == 0 { String::new() } else { format!(" from {first}") };
        let run = format!("{} {}{from}", self.reps, self.seed_of(network));
        // Of a control from outside, the name says less than its version.
        let control = match self.source.custom == Registry::default() {
            true => cc.to_owned(),
            false => format!("{control:?}"),
        };
        Store::key(&[&network.source.text, &settings, &control, &run, VERSION])
    }
}
