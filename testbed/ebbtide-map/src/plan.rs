//! The plan of a map: which controls run in which networks.

use super::draw::{Draw, draw};
use super::network::DrawnNetwork;
use super::ranges::{FLEETS, Ranges};
use super::regret::{COST_OF, PUBLISHED};
use super::strata::{Stratum, strata};
use ebbtide_sim::scenario::{ScenarioError, Source};

/// The name of the scenario from which the networks of a preset are derived.
pub fn scenario_of(preset: &str) -> &'static str {
    // `nb-iot` has settings of the papers' experiments.
    if preset == FLEETS { "fleet" } else { "nb-iot" }
}

/// The plan of a map.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario from which the networks are derived.
    pub source: Source,
    /// The name of the ranges' preset.
    pub preset: String,
    /// The ranges from which networks are drawn.
    pub ranges: Ranges,
    /// The parts of the draw; one, unless the preset has several.
    pub strata: Vec<Stratum>,
    /// The networks.
    pub networks: Vec<DrawnNetwork>,
    /// The controls that are compared.
    pub cc: Vec<String>,
    /// The controls that they are compared with.
    pub published: Vec<String>,
    /// Replications of each control in each network.
    pub reps: u32,
    /// Seed of the draw and of every replication.
    pub seed: u64,
    /// Whether the best published controls are measured again, to show how far chance goes.
    pub(super) chance: bool,
    /// The command that computes the same map.
    command: String,
}

/// Settings of a map.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// The name of the preset of ranges.
    pub preset: String,
    /// The ranges from which the networks are drawn.
    pub ranges: Ranges,
    /// The controls to compare.
    pub cc: Vec<String>,
    /// The controls to compare them with; [`PUBLISHED`] if there are none.
    pub published: Option<Vec<String>>,
    /// The number of networks.
    pub networks: u32,
    /// Replications of each control in each network.
    pub reps: u32,
    /// Seed of the draw and of every replication.
    pub seed: u64,
    /// The maximum of clients times exchanges of a network, unless the preset has a budget for each stratum.
    pub work: Option<u64>,
}

impl Plan {
    /// Draws the networks and checks the controls.
    ///
    /// # Errors
    ///
    /// Returns an error if a network is not valid, a control is not known, or ranges contradict each
    /// other; the message names them.
    pub fn new(source: Source, settings: PlanSettings) -> Result<Self, ScenarioError> {
        let PlanSettings { preset, ranges, cc, published, networks, reps, seed, work } = settings;
        let strata = strata(&preset, &ranges, work)?;
        let networks = draw(&source, &strata, Draw { seed, networks })?;
        let mut words = vec![format!("ebbtide map --preset {preset}")];
        words.extend(ranges.changes().iter().map(|range| format!("--range '{range}'")));
        words.push(format!("--networks {} --cc {}", networks.len(), cc.join(",")));
        words.extend(published.iter().map(|against| format!("--against {}", against.join(","))));
        words.push(format!("--reps {reps} --seed {seed}"));
        if preset != FLEETS {
            words.extend(strata.iter().map(|stratum| format!("--work {}", stratum.work)));
        }
        let command = words.join(" ");
        let published = published.unwrap_or_else(|| PUBLISHED.map(str::to_owned).to_vec());
        let plain = source.scenario(&[])?;
        for name in cc.iter().chain(&published) {
            plain.control_config(name)?;
        }
        let chance = false;
        Ok(Self {
            source,
            preset,
            ranges,
            strata,
            networks,
            cc,
            published,
            reps,
            seed,
            chance,
            command,
        })
    }

    /// The same plan, in which the best published controls of each network are measured again in as
    /// many other replications. Their difference from themselves is chance, which no control can
    /// avoid: the reference is the minimum over several controls.
    pub fn with_chance(mut self) -> Self {
        self.chance = true;
        self.command.push_str(" --chance");
        self
    }

    /// The `ebbtide map` that computes the same map.
    pub fn command_line(&self) -> &str {
        &self.command
    }

    /// The controls to run, each once: those compared, those compared with, and the reference for
    /// costs.
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
    pub fn pairs(&self) -> usize {
        self.networks.len() * self.controls().len()
    }

    /// The seed of a network's replications, the same for all controls. Each network has its own
    /// seed; otherwise chance would affect all networks in the same way.
    pub(super) const fn seed_of(&self, network: &DrawnNetwork) -> u64 {
        self.seed.wrapping_mul(1_000_000).wrapping_add(network.number as u64)
    }

    /// The command that runs some controls in a network again.
    pub fn command(&self, network: &DrawnNetwork, controls: &str) -> String {
        ebbtide_sim::run::run_command(
            &network.source.place,
            &network.settings,
            controls,
            self.reps,
            self.seed_of(network),
        )
    }
}
