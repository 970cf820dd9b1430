//! The results of a map.

use super::measures::{Measured, Measures};
use super::network::DrawnNetwork;
use super::plan::Plan;
use super::regret::{COST_OF, Reference, Regret, Spread};
use super::safety::safer;
use ebbtide_sim::stats::quantile;

/// The networks, and each control's figures in those that were finished.
#[derive(Clone, Debug)]
pub struct Map {
    /// All controls, first those that are compared.
    pub controls: Vec<String>,
    /// The networks in which every control was finished.
    pub cells: Vec<MapCell>,
    /// The numbers of the networks that were left out because the time limit was reached.
    pub left_out: Vec<u32>,
    /// How the best published controls differ from themselves in other replications; empty unless
    /// [`Plan::with_chance`] asks for it.
    pub chance: Vec<Regret>,
    /// The processor time that each stratum took now, s. Results that existed took none.
    pub cost_s: Vec<f64>,
}

/// One network with the figures of every control.
#[derive(Clone, Debug)]
pub struct MapCell {
    /// The network.
    pub network: DrawnNetwork,
    /// The figures, in the order of the controls.
    pub measures: Vec<Measures>,
    /// The figures of each replication, in the same order.
    pub runs: Vec<Vec<Measures>>,
    /// For each control the places of those that are safe where it is unsafe, beyond chance.
    pub safer: Vec<Vec<usize>>,
    /// How each control compares with the best published one.
    pub regrets: Vec<Regret>,
}

/// A control over all networks.
#[derive(Clone, Debug, PartialEq)]
pub struct MapSummary {
    /// The control.
    pub cc: String,
    /// Its regret over all networks.
    pub regret: RegretSummary,
    /// Networks in which more is requested than the bottleneck can carry.
    pub overloaded: usize,
    /// Those of them in which goodput fell below half of the capacity.
    pub unsafe_in: usize,
    /// Those of these in which each client's share is at least one exchange a minute.
    pub unsafe_with_a_share: usize,
    /// Those in which it is unsafe and another control of the comparison is safe, beyond chance.
    pub unsafe_where_another_is_safe: usize,
}

/// Regrets over all networks.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct RegretSummary {
    /// The delivered share minus the best published one's, mean.
    pub share_mean: f64,
    /// The difference of shares that 95 % of the networks reach.
    pub share_p5: f64,
    /// The difference of shares in the worst network.
    pub share_worst: f64,
    /// Medians divided by the best published one.
    pub median: Option<Spread>,
    /// 90th percentiles divided by the best published one.
    pub p90: Option<Spread>,
    /// Transmissions, probes included, per delivered exchange, divided by `fasor-token`'s.
    pub cost: Option<Spread>,
}

impl RegretSummary {
    /// The regrets over all networks; `None` if there are none.
    fn from_regrets(regrets: &[Regret]) -> Option<Self> {
        let mut shares: Vec<f64> = regrets.iter().map(|regret| regret.share).collect();
        shares.sort_unstable_by(f64::total_cmp);
        let spread =
            |of: fn(&Regret) -> Option<f64>| Spread::from_factors(regrets.iter().filter_map(of));
        (!regrets.is_empty()).then(|| Self {
            share_mean: shares.iter().sum::<f64>() / shares.len() as f64,
            share_p5: quantile(&shares, 0.05),
            share_worst: quantile(&shares, 0.0),
            median: spread(|regret| regret.median),
            p90: spread(|regret| regret.p90),
            cost: spread(|regret| regret.cost),
        })
    }
}

impl Map {
    pub(super) fn new(plan: &Plan, controls: &[&str], measured: &[Option<Measured>]) -> Self {
        let mut map = Self {
            controls: Vec::new(),
            cells: Vec::new(),
            left_out: Vec::new(),
            chance: Vec::new(),
            cost_s: vec![0.0; plan.strata.len()],
        };
        map.controls = controls.iter().map(|name| (*name).to_owned()).collect();
        let place = |name: &str| controls.iter().position(|own| *own == name);
        let published: Vec<usize> = plan.published.iter().filter_map(|name| place(name)).collect();
        for (network, measures) in plan.networks.iter().zip(measured.chunks(controls.len().max(1)))
        {
            let whole: Option<Vec<Measured>> = measures.iter().cloned().collect();
            let compared = whole.and_then(|measured| {
                let safer = safer(network, &measured);
                let (measures, runs): (Vec<Measures>, Vec<Vec<Measures>>) =
                    measured.into_iter().map(|own| (own.all, own.runs)).unzip();
                let best: Vec<Measures> = published.iter().map(|place| measures[*place]).collect();
                let cost_of = place(COST_OF).map(|place| measures[place]);
                let reference = Reference::from_published(&best, cost_of)?;
                let regrets = measures.iter().map(|own| reference.regret(own)).collect();
                Some(MapCell { network: network.clone(), measures, runs, safer, regrets })
            });
            match compared {
                Some(cell) => map.cells.push(cell),
                None => map.left_out.push(network.number),
            }
        }
        map
    }

    /// Each control over all networks; empty for an empty map.
    pub fn summaries(&self) -> Vec<MapSummary> {
        self.summaries_of(&|_| true)
    }

    /// Each control over the networks of a stratum; empty if none was finished.
    pub fn summaries_in(&self, stratum: usize) -> Vec<MapSummary> {
        self.summaries_of(&|cell| cell.network.stratum == stratum)
    }

    fn summaries_of(&self, belongs: &impl Fn(&MapCell) -> bool) -> Vec<MapSummary> {
        let cells: Vec<&MapCell> = self.cells.iter().filter(|cell| belongs(cell)).collect();
        let controls = self.controls.iter().enumerate();
        controls.filter_map(|(place, cc)| summary(&cells, place, cc)).collect()
    }

    /// How the best published controls differ from themselves; `None` unless it was asked for.
    pub fn chance(&self) -> Option<RegretSummary> {
        RegretSummary::from_regrets(&self.chance)
    }

    /// The figures of a control in one of the networks.
    pub(super) fn measures_of(&self, cell: &MapCell, cc: &str) -> Option<Measures> {
        let place = self.controls.iter().position(|own| own == cc)?;
        cell.measures.get(place).copied()
    }
}

/// A control over some networks.
fn summary(cells: &[&MapCell], place: usize, cc: &str) -> Option<MapSummary> {
    let regrets: Vec<Regret> = cells.iter().map(|cell| cell.regrets[place]).collect();
    let safety = || {
        let judged = |cell: &MapCell| cell.measures[place].is_safe(&cell.network);
        cells.iter().filter_map(move |cell| Some((*cell, judged(cell)?)))
    };
    let is_unsafe = |(_, safe): &(&MapCell, bool)| !safe;
    Some(MapSummary {
        cc: cc.to_owned(),
        regret: RegretSummary::from_regrets(&regrets)?,
        overloaded: safety().count(),
        unsafe_in: safety().filter(is_unsafe).count(),
        unsafe_where_another_is_safe: cells
            .iter()
            .filter(|cell| !cell.safer[place].is_empty())
            .count(),
        unsafe_with_a_share: safety()
            .filter(|pair| is_unsafe(pair) && pair.0.network.has_a_share())
            .count(),
    })
}
