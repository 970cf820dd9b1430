//! How fast low-power networks are simulated: simulated seconds per second, on one core.
//!
//! `cargo bench -p ebbtide-sim --bench low_power`. The first row is the grid that ns-3.37's lr-wpan
//! simulates at 330 to 700 seconds a second: 5 x 5 nodes, 10 m, 60 bytes each 7.68 s from 24 of them,
//! static routes; here every datagram is a Confirmable request and is answered.
#![allow(clippy::unwrap_used, reason = "a benchmark stops by panicking")]

use ebbtide_sim::run::simulate;
use ebbtide_sim::scenario::{Override, load};

/// Replications of each row; the fastest counts.
const TRIES: u32 = 5;

type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const ROWS: [Row; 4] = [
    (
        "5 x 5, 60 bytes each 7.68 s, 15 m",
        "lln-grid",
        &[
            ("n", "5"),
            ("duration", "24 h"),
            ("load", "1100 bit/s"),
            // With 16 bytes of CoAP 60.
            ("workload.mesh.message", "44"),
            ("workload.mesh.fragment", "64"),
            // The MAC of the standard.
            ("network.mesh.csma.min_be", "3"),
            ("network.mesh.csma.max_be", "5"),
            ("network.mesh.csma.max_backoffs", "4"),
            ("network.mesh.csma.max_retries", "3"),
            ("network.mesh.csma.retry_interval", "0 s"),
            ("network.mesh.lowpan.neighbours", "8"),
            ("network.mesh.radio.reliable", "15.0"),
            ("network.mesh.radio.reach", "15.1"),
            ("network.mesh.radio.interference", "30.0"),
            ("network.mesh.lowpan.addresses", "short"),
        ],
    ),
    ("6 x 6, 3 kbit/s", "lln-grid", &[("n", "6"), ("load", "3 kbit/s")]),
    ("many-to-many", "lln-cloud", &[("workload", "many-to-many"), ("duration", "1 h")]),
    (
        "many-to-many, ContikiMAC",
        "lln-cloud",
        &[("workload", "many-to-many"), ("duty_cycle", "contikimac")],
    ),
];

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn main() {
    println!("{:<36} {:>12} {:>12}", "", "sim s per s", "events/s");
    for (name, scenario, settings) in ROWS {
        let changes: Vec<Override> = settings
            .iter()
            .map(|(key, value)| Override { key: (*key).to_owned(), value: (*value).to_owned() })
            .collect();
        let scenario = load(scenario).unwrap().scenario(&changes).unwrap();
        let controls = [scenario.control_config("default").unwrap()];
        let mut best = f64::INFINITY;
        let (mut simulated, mut events) = (0.0, 0);
        for replication in 0..TRIES {
            let start = std::time::Instant::now();
            let record = simulate(&scenario, &controls, 1, replication, false).unwrap();
            let seconds = start.elapsed().as_secs_f64();
            if seconds < best {
                best = seconds;
                simulated = record.totals.sim_ns as f64 / 1e9;
                events = record.totals.events;
            }
        }
        println!("{name:<36} {:>12.0} {:>12.0}", simulated / best, events as f64 / best);
    }
}
