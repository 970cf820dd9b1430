//! The results of a campaign, cell by cell.

use super::judged::judge_cells;
use super::model::Cell;
use crate::judge::{Percentile, Verdict};

/// The version that results carry: other versions may compute other results.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One replication's figures, for intervals and for comparisons under the same luck.
#[derive(Clone, Debug, PartialEq)]
pub struct PerRun {
    /// The median flow completion time, s.
    pub median_fct: f64,
    /// The median over clients of unnecessary retransmissions.
    pub unnecessary: f64,
    /// Exchanges that took 0, 1, 2, ... retransmissions.
    pub by_retransmissions: Vec<u64>,
}

/// A cell's figures, and of each group of clients in a mixed run.
#[derive(Clone, Debug)]
pub struct CellResult {
    /// The figures.
    pub cell: Cell,
    /// Each part of a mixed run: the figures of the clients under one of the controls.
    pub halves: Vec<Cell>,
    /// Events handled in all replications.
    pub events: u64,
    /// Wall-clock seconds spent on all replications; zero for those that were read from disk.
    pub wall_s: f64,
    /// Simulated seconds of all replications.
    pub sim_s: f64,
    /// The figures of each replication, in order.
    pub per_run: Vec<PerRun>,
}

/// The computed results of a campaign.
#[derive(Clone, Debug)]
pub struct Results {
    /// In the order of [`Campaign::cells`](crate::run::Campaign::cells); cells that miss a replication are left out.
    pub cells: Vec<(usize, CellResult)>,
    /// The cells that are left out, in the same order, and how many of their replications are
    /// there: the others are another shard's, damaged, or were not begun.
    pub left_out: Vec<(usize, u32)>,
    /// Replications that were read from disk rather than computed.
    pub reused: u64,
}

impl Results {
    /// The complete cells by setting, in order, with the judgement on each setting.
    pub fn judged(&self, percentile: Percentile) -> Vec<(Vec<&CellResult>, Verdict)> {
        let mut groups: Vec<Vec<&CellResult>> = Vec::new();
        for (_, result) in &self.cells {
            match groups.last_mut() {
                Some(group) if group[0].cell.settings == result.cell.settings => group.push(result),
                _ => groups.push(vec![result]),
            }
        }
        let judged = groups.into_iter().map(|group| {
            let verdict = judge_cells(group.iter().map(|result| &result.cell), percentile);
            (group, verdict)
        });
        judged.collect()
    }
}
