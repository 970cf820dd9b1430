//! The two studies of low-power networks: SOCNE14's tables and WiMob17's statements.

use super::papers::Paper;
use super::rcoap21;
use super::statements::{self, Statement};
use crate::report::{Comparison, MeshCell};
use crate::run::{Campaign, Results};

/// SOCNE14's tables, which begin with their source.
const TABLES: &str = include_str!("../../published/socne14.csv");

/// A cell of a study: its settings by key, and its control.
pub(super) type CellSettings = (Vec<(String, String)>, String);

/// The controls with which the workloads of SOCNE14 are run.
const CLOUD_CONTROLS: [&str; 4] = ["default", "default-b", "cocoa-01", "cocoa-01:nstart=4"];
const GRID_CONTROLS: [&str; 2] = ["default", "cocoa-plus"];

/// The cells of a study; empty for the other papers.
pub(super) fn cells(paper: Paper) -> Vec<CellSettings> {
    let owned = |pairs: &[(&str, &str)], cc: &str| -> CellSettings {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        (pairs.collect(), cc.to_owned())
    };
    let mut all = Vec::new();
    match paper {
        Paper::Socne14 => {
            for duty_cycle in ["off", "contikimac"] {
                for workload in ["baseline", "many-to-many", "burst"] {
                    all.extend(CLOUD_CONTROLS.iter().map(|cc| {
                        owned(&[("workload", workload), ("duty_cycle", duty_cycle)], cc)
                    }));
                }
            }
        }
        Paper::Wimob17 => {
            for n in ["3", "4", "5", "6"] {
                for load in statements::LOADS {
                    all.extend(GRID_CONTROLS.iter().map(|cc| {
                        owned(&[("workload", "monitoring"), ("n", n), ("load", load)], cc)
                    }));
                }
                for interval in ["5 min", "10 min", "30 min"] {
                    for message in ["96", "192", "384"] {
                        let settings = [
                            ("workload", "events"),
                            ("n", n),
                            ("event_interval", interval),
                            ("event_message", message),
                        ];
                        all.extend(GRID_CONTROLS.iter().map(|cc| owned(&settings, cc)));
                    }
                }
            }
        }
        Paper::Rcoap21 => all = rcoap21::cells(),
        Paper::Anrw18 | Paper::Thesis19 => {}
    }
    all
}

/// The measured cell with these settings under a control.
pub(super) fn find<'r>(
    (campaign, results): (&Campaign, &'r Results),
    scenario: &str,
    wanted: &[(&str, &str)],
    cc: &str,
) -> Option<&'r MeshCell> {
    results.cells.iter().find_map(|(index, result)| {
        let spec = &campaign.cells[*index];
        let has =
            |(key, value): &(&str, &str)| spec.settings.iter().any(|(k, v)| k == key && v == value);
        let is_it = spec.scenario.name == scenario && spec.cc == cc && wanted.iter().all(has);
        if is_it { result.cell.mesh.as_ref() } else { None }
    })
}

/// Compares SOCNE14's tables with measured values.
pub(super) fn compare(campaign: &Campaign, results: &Results) -> Vec<Comparison> {
    let mut rows = Vec::new();
    let lines = TABLES.lines().filter(|line| !line.starts_with('#')).skip(1);
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    for (column, quantity) in
        [(2, "requests served per second"), (3, "seconds per exchange"), (4, "retries per request")]
    {
        for line in &lines {
            let [workload, cc] = [line[0], line[1]];
            let wanted = [("workload", workload), ("duty_cycle", "off")];
            let found = find((campaign, results), Paper::Socne14.scenario(), &wanted, cc);
            let (Some(cell), Ok(published)) = (found, line[column].parse::<f64>()) else {
                continue;
            };
            let (measured, half) = match column {
                2 => cell.requests_per_s,
                // In the baseline the paper divides the time by the exchanges.
                3 if workload == "baseline" => (1.0 / cell.requests_per_s.0, f64::NAN),
                3 => cell.exchange_s,
                _ => cell.retries,
            };
            rows.push(Comparison {
                source: Paper::Socne14.source().to_owned(),
                table: "without duty cycling".to_owned(),
                quantity: quantity.to_owned(),
                cell: workload.to_owned(),
                cc: cc.to_owned(),
                published,
                measured,
                ci: (measured - half, measured + half),
                relative: (measured - published) / published,
                is_percentage: false,
                // Only the baseline's throughput has a tolerance.
                within: (workload == "baseline" && column < 4).then_some(0.25),
                note: String::new(),
            });
        }
    }
    rows
}

/// Checks the statements of a study against measured values.
#[must_use]
pub fn check_statements(paper: Paper, campaign: &Campaign, results: &Results) -> Vec<Statement> {
    match paper {
        Paper::Socne14 => statements::socne14((campaign, results), &CLOUD_CONTROLS),
        Paper::Wimob17 => statements::wimob17((campaign, results)),
        Paper::Rcoap21 => rcoap21::statements((campaign, results)),
        Paper::Anrw18 | Paper::Thesis19 => Vec::new(),
    }
}
