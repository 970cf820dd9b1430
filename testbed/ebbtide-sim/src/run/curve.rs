//! A campaign over one key, for curves.

use super::campaign::{Campaign, quoted, run_command};
use crate::scenario::LoadCurve;

/// The names of the key that a curve's work changes.
const EXCHANGES: [&str; 2] = ["exchanges", "workload.exchanges"];

impl Campaign {
    /// The same campaign with a curve over one of its keys. Where its clients ask for more exchanges than
    /// the curve's work allows, each asks for fewer.
    pub fn with_curve(mut self, curve: LoadCurve) -> Self {
        for spec in &mut self.cells {
            let most = (curve.work / spec.scenario.clients.count.max(1)).max(1);
            let own = &mut spec.scenario.workload.exchanges;
            if *own > most && !EXCHANGES.contains(&curve.key.as_str()) {
                *own = most;
                spec.derived.push((EXCHANGES[1].to_owned(), most.to_string()));
            }
        }
        let sets: Vec<(String, String)> = self
            .axes
            .iter()
            .filter(|axis| axis.key != curve.key)
            .map(|axis| (axis.key.clone(), axis.values.join(",")))
            .collect();
        let command =
            run_command(&self.source.place, &sets, &self.cc.join(","), self.reps, self.seed);
        let (range, points) = match curve.written.split_once(" --points ") {
            Some((range, points)) => (range, format!(" --points {points}")),
            None => (curve.written.as_str(), String::new()),
        };
        let range = quoted(&format!("{}={range}", curve.key));
        self.command = format!("{command} --curve {range}{points} --work {}", curve.work);
        self.curve = Some(curve);
        self
    }
}
