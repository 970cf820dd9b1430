//! The two studies of low-power networks: SOCNE14's tables and WiMob17's statements.

use super::measured_campaign::MeasuredCampaign;
use super::papers::{CellSettings, Paper};
use ebbtide_sim::result::Results;
use ebbtide_sim::result::{Cell, Comparison};
use ebbtide_sim::run::Campaign;

/// SOCNE14's tables, which begin with their source.
const TABLES: &str = include_str!("../published/socne14.csv");

/// The controls with which the workloads of SOCNE14 are run.
pub(super) const CLOUD_CONTROLS: [&str; 4] =
    ["default", "default-b", "cocoa-01", "cocoa-01:nstart=4"];
/// Without duty cycling, and with ContikiMAC, whose phase lock Contiki switches on by default.
pub(super) const DUTY_CYCLES: [&str; 2] = ["off", "contikimac-phase-lock"];

/// WiMob17's loads of the whole network.
pub(super) const LOADS: [&str; 6] =
    ["0.5 kbit/s", "1 kbit/s", "1.5 kbit/s", "2 kbit/s", "2.5 kbit/s", "3 kbit/s"];
/// WiMob17's grids.
pub(super) const SIZES: [&str; 4] = ["3", "4", "5", "6"];

/// The code with which WiMob17's cells are run, of which the paper leaves both open.
#[derive(Copy, Clone, Debug)]
pub(super) struct Code {
    /// The first words of its statements.
    pub(super) label: &'static str,
    /// The wait between frames for a neighbour.
    pub(super) spacing: (&'static str, &'static str),
    /// CoCoA+.
    pub(super) cocoa: &'static str,
}

/// The paper's text with a CSMA that does not wait between frames, and what Contiki's releases and
/// CoCoA's authors have.
pub(super) const CODES: [Code; 2] = [
    Code { label: "", spacing: ("spacing", "0 s"), cocoa: "cocoa-plus" },
    Code {
        label: "CSMA of Contiki's releases, code of CoCoA's authors: ",
        spacing: ("spacing", "125 ms"),
        cocoa: "cocoa-plus:code=contiki",
    },
];

/// The grids with events, the time between these, and the bytes of their reports. The second code runs
/// only those of which the text says something.
pub(super) fn events_of(code: Code) -> Vec<(&'static str, &'static str, &'static str)> {
    if !code.label.is_empty() {
        return vec![("6", "10 min", "192"), ("6", "30 min", "192")];
    }
    let mut all = Vec::new();
    for n in SIZES {
        for interval in ["5 min", "10 min", "30 min"] {
            all.extend(["96", "192", "384"].map(|message| (n, interval, message)));
        }
    }
    all
}

/// The cells of a study; empty for the other papers.
pub(super) fn cells(paper: Paper) -> Vec<CellSettings> {
    let owned = |pairs: &[(&str, &str)], cc: &str| -> CellSettings {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        (pairs.collect(), cc.to_owned())
    };
    let mut all = Vec::new();
    match paper {
        Paper::Socne14 => {
            for duty_cycle in DUTY_CYCLES {
                for workload in ["baseline", "many-to-many", "burst"] {
                    all.extend(CLOUD_CONTROLS.iter().map(|cc| {
                        owned(&[("workload", workload), ("duty_cycle", duty_cycle)], cc)
                    }));
                }
            }
        }
        Paper::Wimob17 => {
            for code in CODES {
                let both = |settings: &[(&str, &str)]| {
                    let settings = [settings, &[code.spacing]].concat();
                    ["default", code.cocoa].map(|cc| owned(&settings, cc))
                };
                for n in SIZES {
                    for load in LOADS {
                        all.extend(both(&[("workload", "monitoring"), ("n", n), ("load", load)]));
                    }
                }
                for (n, interval, message) in events_of(code) {
                    all.extend(both(&[
                        ("workload", "events"),
                        ("n", n),
                        ("event_interval", interval),
                        ("event_message", message),
                    ]));
                }
            }
        }
        Paper::Rcoap21 | Paper::Anrw18 | Paper::Thesis19 => {}
    }
    all
}

/// The measured cell with these settings under a control.
pub(super) fn find<'r>(
    measured: MeasuredCampaign<'r>,
    scenario: &str,
    wanted: &[(&str, &str)],
    cc: &str,
) -> Option<&'r Cell> {
    measured.results.cells.iter().find_map(|(index, result)| {
        let spec = &measured.campaign.cells[*index];
        let has =
            |(key, value): &(&str, &str)| spec.settings.iter().any(|(k, v)| k == key && v == value);
        let is_it = spec.scenario.name == scenario && spec.cc == cc && wanted.iter().all(has);
        is_it.then_some(&result.cell)
    })
}

/// Compares SOCNE14's tables with measured values.
pub(super) fn compare(campaign: &Campaign, results: &Results) -> Vec<Comparison> {
    let measured = MeasuredCampaign { campaign, results };
    let mut rows = Vec::new();
    let lines = TABLES.lines().filter(|line| !line.starts_with('#')).skip(1);
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    const COLUMNS: [(usize, &str); 3] = [
        (3, "requests served per second"),
        (4, "seconds per exchange"),
        (5, "retries per request"),
    ];
    let tables = DUTY_CYCLES.into_iter().flat_map(|duty| COLUMNS.map(|column| (duty, column)));
    for (duty_cycle, (column, quantity)) in tables {
        for line in lines.iter().filter(|line| line[0] == duty_cycle) {
            let [workload, cc] = [line[1], line[2]];
            let wanted = [("workload", workload), ("duty_cycle", duty_cycle)];
            let found = find(measured, Paper::Socne14.scenario(), &wanted, cc);
            let (Some(cell), Ok(published)) = (found, line[column].parse::<f64>()) else {
                continue;
            };
            let is_off = duty_cycle == DUTY_CYCLES[0];
            let each = cell.mean("mesh.exchange_s");
            let (measured, half) = match column {
                3 => cell.mean("mesh.requests_per_s"),
                // In the baseline the paper divides the time by the exchanges.
                4 if workload == "baseline" => (1.0 / cell.number("mesh.requests_per_s"), f64::NAN),
                // And with NSTART 4, as its baselines show, by all of a client's that are open.
                4 if cc.ends_with("nstart=4") => (each.0 / 4.0, each.1 / 4.0),
                4 => each,
                _ => cell.mean("mesh.retries"),
            };
            rows.push(Comparison {
                source: Paper::Socne14.source().to_owned(),
                table: if is_off { "without duty cycling" } else { "with ContikiMAC" }.to_owned(),
                quantity: quantity.to_owned(),
                cell: workload.to_owned(),
                cc: cc.to_owned(),
                published,
                measured,
                ci: (measured - half, measured + half),
                relative: (measured - published) / published,
                is_percentage: false,
                // Only the baseline's throughput has a tolerance.
                within: (is_off && workload == "baseline" && column < 5).then_some(0.25),
                note: String::new(),
            });
        }
    }
    rows
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn lines() -> Vec<Vec<&'static str>> {
        let lines = TABLES.lines().filter(|line| !line.starts_with('#')).skip(1);
        lines.map(|line| line.split(',').collect()).collect()
    }

    #[test]
    fn every_published_row_is_a_cell_that_is_run_and_every_cell_has_its_row() {
        let mut listed: Vec<CellSettings> = lines()
            .iter()
            .map(|line| {
                let settings = [("workload", line[1]), ("duty_cycle", line[0])];
                let owned = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
                (owned.to_vec(), line[2].to_owned())
            })
            .collect();
        let mut cells = cells(Paper::Socne14);
        assert_eq!(cells.len(), 24);
        listed.sort();
        cells.sort();
        assert_eq!(listed, cells);
        for line in lines() {
            let is_figure = |field: &&str| field.parse::<f64>().is_ok_and(|value| value > 0.0);
            assert_eq!(line.len(), 6);
            assert!(line[3..5].iter().all(is_figure), "{line:?}");
            assert!(line[5].is_empty() || is_figure(&line[5]), "{line:?}");
        }
    }

    #[test]
    fn the_better_cocoa_of_each_published_table_is_19_to_112_percent_above_default() {
        let rates: Vec<f64> = lines().iter().map(|line| line[3].parse().unwrap()).collect();
        let above: Vec<f64> = rates
            .chunks(4)
            .map(|table| 100.0 * (table[2].max(table[3]) / table[0] - 1.0))
            .map(f64::round)
            .collect();
        assert_eq!(above, [112.0, 26.0, 50.0, 111.0, 19.0, 23.0]);
    }

    #[test]
    fn the_papers_grid_is_run_under_either_code_and_no_cell_twice() {
        let mut cells = cells(Paper::Wimob17);
        let of = |cc: &str| cells.iter().filter(|cell| cell.1 == cc).count();
        assert_eq!((of("cocoa-plus"), of("cocoa-plus:code=contiki")), (24 + 36, 24 + 2));
        assert_eq!(of("default"), 24 + 36 + 24 + 2);
        cells.sort();
        cells.dedup();
        assert_eq!(cells.len(), 172);
    }
}
