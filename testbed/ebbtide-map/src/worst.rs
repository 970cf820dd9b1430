//! The networks in which controls are worst, each with the command that runs it again.

use super::plan::Plan;
use super::result::{Map, MapCell};
use std::fmt::Write;

/// Networks of each control for each measure in the file of worst networks.
const LISTED: usize = 5;

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

/// A network in which a control is unsafe and others are safe, beyond chance.
#[derive(Clone, Debug)]
pub struct Unsafe {
    /// The network's number.
    pub network: u32,
    /// Its stratum.
    pub stratum: String,
    /// The control's goodput over the capacity that link errors leave.
    pub goodput: f64,
    /// The controls that are safe there, with theirs.
    pub safe: Vec<(String, f64)>,
    /// The command that runs the control and those in that network.
    pub command: String,
}

impl Map {
    /// The networks in which a control is worst, `count` for each measure, the worst first.
    pub fn worst(&self, plan: &Plan, cc: &str, count: usize) -> Vec<Worst> {
        let Some(place) = self.controls.iter().position(|own| own == cc) else {
            return Vec::new();
        };
        let mut worst = Vec::new();
        for measure in ["share", "median", "p90"] {
            let value = |cell: &MapCell| match measure {
                "share" => Some(cell.regrets[place].share),
                "median" => cell.regrets[place].median,
                _ => cell.regrets[place].p90,
            };
            let mut cells: Vec<(f64, &MapCell)> =
                self.cells.iter().filter_map(|cell| Some((value(cell)?, cell))).collect();
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

    /// The networks in which a control is unsafe and another one of the comparison is safe, beyond
    /// chance, those with the least goodput first.
    pub fn unsafe_alone(&self, plan: &Plan, cc: &str) -> Vec<Unsafe> {
        let Some(place) = self.controls.iter().position(|own| own == cc) else {
            return Vec::new();
        };
        let network = |cell: &MapCell| {
            let carried = 1.0 - cell.network.scenario.average_loss();
            let goodput = |place: usize| cell.measures[place].goodput as f64 / 1000.0 / carried;
            let mut safe: Vec<(String, f64)> = cell.safer[place]
                .iter()
                .map(|other| (self.controls[*other].clone(), goodput(*other)))
                .collect();
            safe.sort_by(|a, b| b.1.total_cmp(&a.1));
            let names = std::iter::once(cc).chain(safe.iter().map(|(name, _)| name.as_str()));
            let names: Vec<&str> = names.collect();
            Unsafe {
                network: cell.network.number,
                stratum: plan.strata[cell.network.stratum].name.clone(),
                goodput: goodput(place),
                command: plan.command(&cell.network, &names.join(",")),
                safe,
            }
        };
        let cells = self.cells.iter().filter(|cell| !cell.safer[place].is_empty());
        let mut networks: Vec<Unsafe> = cells.map(network).collect();
        networks.sort_by(|a, b| a.goodput.total_cmp(&b.goodput));
        networks
    }

    /// A control and the published ones, in the form of `--cc`.
    fn beside(&self, plan: &Plan, cc: &str) -> String {
        let others = plan.published.iter().map(String::as_str).filter(|other| *other != cc);
        std::iter::once(cc).chain(others).collect::<Vec<_>>().join(",")
    }

    /// The text of a file that lists, for each control, the networks in which it is unsafe where
    /// another one is safe, and those in which it is worst. Each has the command that runs it again.
    pub fn worst_file(&self, plan: &Plan) -> String {
        let mut text = format!("# {}\n", plan.command_line());
        for cc in &self.controls {
            let alone = self.unsafe_alone(plan, cc);
            let _ = writeln!(
                text,
                "\n# {cc}: unsafe in {} networks where another control is safe",
                alone.len()
            );
            for one in alone {
                let safe: Vec<String> =
                    one.safe.iter().map(|(name, goodput)| format!("{name} {goodput:.2}")).collect();
                let _ = writeln!(
                    text,
                    "# network {} ({}): goodput {:.2} of what link errors leave; safe are {}\n{}",
                    one.network,
                    one.stratum,
                    one.goodput,
                    safe.join(", "),
                    one.command
                );
            }
            let _ = writeln!(text, "# {cc}: worst networks");
            for one in self.worst(plan, cc, LISTED) {
                let value = match one.measure {
                    "share" => format!("{:+.2} points", 100.0 * one.value),
                    _ => format!("{:.3}", one.value),
                };
                let _ = writeln!(
                    text,
                    "# {} {value}, network {}\n{}",
                    one.measure, one.network, one.command
                );
            }
        }
        text
    }
}
