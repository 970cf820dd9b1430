//! The results of a map.

use super::measures::Measures;
use super::network::Network;
use super::regret::{COST_OF, Reference, Regret, Spread};
use super::run::Plan;
use crate::stats::quantile;

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
}

/// One network with the figures of every control.
#[derive(Clone, Debug)]
pub struct MapCell {
    /// The network.
    pub network: Network,
    /// The figures, in the order of the controls.
    pub measures: Vec<Measures>,
    /// How each control compares with the best published one.
    pub regrets: Vec<Regret>,
}

/// A control over all networks.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The control.
    pub cc: String,
    /// Its regret.
    pub regret: RegretSummary,
    /// Networks in which more is requested than the bottleneck can carry.
    pub overloaded: usize,
    /// Those of them in which goodput fell below half of the capacity.
    pub unsafe_in: usize,
    /// Those of these in which each client's share is at least one exchange a minute.
    pub unsafe_with_a_share: usize,
}

/// Regrets over all networks.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct RegretSummary {
    /// The delivered share minus the best published one's that 95 % of the networks reach.
    pub share_p5: f64,
    /// The same in the worst network.
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
    fn of(regrets: &[Regret]) -> Option<Self> {
        let mut shares: Vec<f64> = regrets.iter().map(|regret| regret.share).collect();
        shares.sort_unstable_by(f64::total_cmp);
        let spread = |of: fn(&Regret) -> Option<f64>| Spread::of(regrets.iter().filter_map(of));
        (!regrets.is_empty()).then(|| Self {
            share_p5: quantile(&shares, 0.05),
            share_worst: quantile(&shares, 0.0),
            median: spread(|regret| regret.median),
            p90: spread(|regret| regret.p90),
            cost: spread(|regret| regret.cost),
        })
    }
}

/// A network in which a control is worst, and the measure by which it is.
#[derive(Clone, Debug)]
pub struct Worst {
    /// The measure: `share`, `median` or `p90`.
    pub measure: &'static str,
    /// The regret.
    pub value: f64,
    /// The network's number.
    pub network: u32,
    /// The command that runs the control and the published ones in that network.
    pub command: String,
}

impl Map {
    pub(super) fn new(plan: &Plan, controls: &[&str], measured: &[Option<Measures>]) -> Self {
        let mut map = Self {
            controls: Vec::new(),
            cells: Vec::new(),
            left_out: Vec::new(),
            chance: Vec::new(),
        };
        map.controls = controls.iter().map(|name| (*name).to_owned()).collect();
        let place = |name: &str| controls.iter().position(|own| *own == name);
        let published: Vec<usize> = plan.published.iter().filter_map(|name| place(name)).collect();
        for (network, measures) in plan.networks.iter().zip(measured.chunks(controls.len().max(1)))
        {
            let whole: Option<Vec<Measures>> = measures.iter().copied().collect();
            let compared = whole.and_then(|measures| {
                let best: Vec<Measures> = published.iter().map(|place| measures[*place]).collect();
                let cost_of = place(COST_OF).map(|place| measures[place]);
                let reference = Reference::of(&best, cost_of)?;
                let regrets = measures.iter().map(|own| reference.regret(own)).collect();
                Some(MapCell { network: network.clone(), measures, regrets })
            });
            match compared {
                Some(cell) => map.cells.push(cell),
                None => map.left_out.push(network.number),
            }
        }
        map
    }

    /// Each control over all networks; empty for an empty map.
    #[must_use]
    pub fn summaries(&self) -> Vec<Summary> {
        let controls = self.controls.iter().enumerate();
        controls.filter_map(|(place, cc)| self.summary(place, cc)).collect()
    }

    /// How the best published controls differ from themselves; `None` unless it was asked for.
    #[must_use]
    pub fn chance(&self) -> Option<RegretSummary> {
        RegretSummary::of(&self.chance)
    }

    /// The figures of a control in one of the networks.
    pub(super) fn measures_of(&self, cell: &MapCell, cc: &str) -> Option<Measures> {
        let place = self.controls.iter().position(|own| own == cc)?;
        cell.measures.get(place).copied()
    }

    fn summary(&self, place: usize, cc: &str) -> Option<Summary> {
        let regrets: Vec<Regret> = self.cells.iter().map(|cell| cell.regrets[place]).collect();
        let safety = || {
            let judged = |cell: &MapCell| cell.measures[place].is_safe(&cell.network);
            self.cells.iter().filter_map(move |cell| Some((cell, judged(cell)?)))
        };
        let is_unsafe = |(_, safe): &(&MapCell, bool)| !safe;
        Some(Summary {
            cc: cc.to_owned(),
            regret: RegretSummary::of(&regrets)?,
            overloaded: safety().count(),
            unsafe_in: safety().filter(is_unsafe).count(),
            unsafe_with_a_share: safety()
                .filter(|pair| is_unsafe(pair) && pair.0.network.has_a_share())
                .count(),
        })
    }

    /// The networks in which a control is worst, `count` for each measure, the worst first.
    #[must_use]
    pub fn worst(&self, plan: &Plan, cc: &str, count: usize) -> Vec<Worst> {
        let Some(place) = self.controls.iter().position(|own| own == cc) else {
            return Vec::new();
        };
        let mut worst = Vec::new();
        for measure in ["share", "median", "p90"] {
            let value = |regret: &Regret| match measure {
                "share" => Some(regret.share),
                "median" => regret.median,
                _ => regret.p90,
            };
            let mut cells: Vec<(f64, &MapCell)> = self
                .cells
                .iter()
                .filter_map(|cell| Some((value(&cell.regrets[place])?, cell)))
                .collect();
            cells.sort_by(|a, b| {
                let order = a.0.total_cmp(&b.0);
                if measure == "share" { order } else { order.reverse() }
            });
            worst.extend(cells.into_iter().take(count).map(|(value, cell)| Worst {
                measure,
                value,
                network: cell.network.number,
                command: plan.command(&cell.network, &self.beside(plan, cc)),
            }));
        }
        worst
    }

    /// A control and the published ones, in the form of `--cc`.
    fn beside(&self, plan: &Plan, cc: &str) -> String {
        let others = plan.published.iter().map(String::as_str).filter(|other| *other != cc);
        std::iter::once(cc).chain(others).collect::<Vec<_>>().join(",")
    }
}
