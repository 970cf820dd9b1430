//! The UDP cells of four controls against the published medians.
//!
//! Every cell must be near; nothing is tuned per cell. The full set is for optimised builds.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{run, scenario};
use rayon::prelude::*;

const PUBLISHED: &str = include_str!("../published/fct_medians.csv");

#[derive(Clone, Debug)]
struct Published {
    workload: String,
    clients: u32,
    buffer: u64,
    errors: String,
    cc: String,
    median: f64,
}

fn published() -> Vec<Published> {
    let rows = PUBLISHED.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        let [_, workload, clients, buffer, errors, cc, median] = fields[..] else {
            panic!("seven fields: {row}")
        };
        Published {
            workload: workload.into(),
            clients: clients.parse().unwrap(),
            buffer: buffer.parse().unwrap(),
            errors: errors.into(),
            cc: cc.into(),
            median: median.parse().unwrap(),
        }
    })
    .collect()
}

impl Published {
    fn replications(&self) -> u32 {
        if self.errors == "none" { 20 } else { 40 }
    }

    /// The median over all clients of all replications, s, and whether the queue dropped anything.
    fn measure(&self, replications: u32) -> (f64, bool) {
        let clients = self.clients.to_string();
        let buffer = match self.buffer {
            1_410_000 => "infinite".to_owned(),
            bytes => bytes.to_string(),
        };
        let settings = [
            ("clients", clients.as_str()),
            ("buffer", &buffer),
            ("workload", &self.workload),
            ("errors", &self.errors),
        ];
        let scenario = scenario("nb-iot", &settings);
        let records: Vec<_> = (0..replications)
            .into_par_iter()
            .map(|replication| run(&scenario, &self.cc, 1, replication))
            .collect();
        let dropped =
            records.iter().any(|r| r.totals.up.dropped_queue + r.totals.down.dropped_queue > 0);
        let clients = records.iter().flat_map(|record| &record.clients);
        let mut fcts: Vec<f64> = clients.map(|client| client.fct.as_secs_f64()).collect();
        (ebbtide_sim::stats::summary(&mut fcts).median, dropped)
    }

    /// How far the median may be from the published one.
    fn tolerance(&self, dropped: bool) -> f64 {
        match self.errors.as_str() {
            "high" => 0.08,
            "low" => 0.015,
            _ if dropped => 0.04,
            _ if self.workload == "random" => 0.015,
            _ => 0.006,
        }
    }
}

/// Compares cells; the differences of all of them are printed, those too far off fail.
fn compare(cells: &[Published], replications: impl Fn(&Published) -> u32 + Sync) {
    let lines: Vec<(bool, String)> = cells
        .par_iter()
        .map(|cell| {
            let (measured, dropped) = cell.measure(replications(cell));
            let difference = measured / cell.median - 1.0;
            let tolerance = cell.tolerance(dropped);
            let line = format!(
                "{:>6.2} % (allowed {:.1}): {measured:.3} s, published {} s: {cell:?}",
                difference * 100.0,
                tolerance * 100.0,
                cell.median
            );
            (difference.abs() <= tolerance, line)
        })
        .collect();
    for (_, line) in &lines {
        println!("{line}");
    }
    let far: Vec<&str> = lines.iter().filter(|(near, _)| !near).map(|(_, l)| l.as_str()).collect();
    assert!(far.is_empty(), "{} of {} are off:\n{}", far.len(), lines.len(), far.join("\n"));
}

#[test]
fn the_published_table_has_the_cells_of_four_controls() {
    let cells = published();
    assert_eq!(cells.len(), 71);
    for cc in ["default", "cocoa", "fasor", "fasor-token"] {
        assert!(cells.iter().filter(|cell| cell.cc == cc).count() >= 15, "{cc}");
    }
}

#[test]
fn light_load_gives_the_published_medians() {
    let mut cells = published();
    cells.retain(|cell| cell.clients <= 50 && cell.errors == "none");
    assert!(cells.len() >= 16, "{}", cells.len());
    compare(&cells, |_| 3);
}

#[test]
fn a_hundred_clients_with_an_endless_queue_give_the_published_medians() {
    let mut cells = published();
    cells.retain(|cell| {
        let (workload, buffer) = (cell.workload.as_str(), cell.buffer);
        cell.clients == 100 && buffer > 1_000_000 && workload == "continuous"
    });
    assert_eq!(cells.len(), 4);
    compare(&cells, |_| 4);
}

#[test]
#[ignore = "a minute of simulation: the statistics step runs it optimised"]
fn every_cell_gives_the_published_median() {
    compare(&published(), Published::replications);
}
