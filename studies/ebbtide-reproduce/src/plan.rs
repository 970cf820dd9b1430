//! The campaign that repeats the experiments of some papers.

use super::figures::PublishedFigure;
use super::papers::{KEYS, PAPERS_REPS, Paper};
use super::{low_power, rcoap21};
use ebbtide_core::cc::Registry;
use ebbtide_sim::judge::Percentile;
use ebbtide_sim::record::Manifest;
use ebbtide_sim::result::CellSpec;
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::{Axis, Override, ScenarioError, Source, load};

/// Adds the cells that a paper lists, with its scenario's number of replications.
fn listed(
    paper: Paper,
    source: &Source,
    reps: Option<u32>,
    cells: &mut Vec<CellSpec>,
) -> Result<(), ScenarioError> {
    let cells_of = match paper {
        Paper::Rcoap21 => rcoap21::cells(),
        other => low_power::cells(other),
    };
    for (settings, cc) in cells_of {
        let change =
            |(key, value): &(String, String)| Override { key: key.clone(), value: value.clone() };
        let scenario = source.scenario(&settings.iter().map(change).collect::<Vec<_>>())?;
        let controls = vec![scenario.control_config(&cc)?];
        let reps = reps.unwrap_or(scenario.run.reps);
        cells.push(CellSpec { cc, controls, settings, derived: Vec::new(), scenario, reps });
    }
    Ok(())
}

/// The campaign that a manifest describes: a run, or a reproduction of papers.
///
/// # Errors
///
/// Returns an error if this version does not understand the scenario of the manifest, or if it names a
/// control that is neither built in nor one of `controls`.
pub fn campaign_of(manifest: &Manifest, controls: Registry) -> Result<Campaign, ScenarioError> {
    if manifest.papers.is_empty() {
        return Campaign::from_manifest(manifest, controls);
    }
    let papers = Paper::named(&manifest.papers);
    let reps = (manifest.reps != PAPERS_REPS).then_some(manifest.reps);
    plan(&papers, reps, Some(manifest.seed))
}

/// The cells of some papers, each once, with the papers' numbers of replications: 20, or 40 with
/// link errors.
///
/// # Errors
///
/// No error can be caused by the caller: the scenario and the controls are built in.
pub fn plan(
    papers: &[Paper],
    reps: Option<u32>,
    seed: Option<u64>,
) -> Result<Campaign, ScenarioError> {
    let source = load(papers.first().map_or("nb-iot", |paper| paper.scenario()))?;
    let mut cells: Vec<CellSpec> = Vec::new();
    for paper in papers {
        let source = load(paper.scenario())?;
        listed(*paper, &source, reps, &mut cells)?;
        let mut add = |values: [&str; 4], cc: &str| -> Result<(), ScenarioError> {
            let settings: Vec<(String, String)> =
                KEYS.iter().zip(values).map(|(k, v)| ((*k).to_owned(), v.to_owned())).collect();
            if cells.iter().any(|cell| cell.settings == settings && cell.cc == cc) {
                return Ok(());
            }
            let changes: Vec<Override> = settings
                .iter()
                .map(|(key, value)| Override { key: key.clone(), value: value.clone() })
                .collect();
            let scenario = source.scenario(&changes)?;
            let controls = cc.split('+').map(|name| scenario.control_config(name));
            cells.push(CellSpec {
                cc: cc.to_owned(),
                controls: controls.collect::<Result<_, _>>()?,
                settings,
                derived: Vec::new(),
                scenario,
                reps: reps.unwrap_or(if values[3] == "none" { 20 } else { 40 }),
            });
            Ok(())
        };
        for [workloads, clients, buffers, errors, ccs] in paper.blocks() {
            for workload in workloads {
                for clients in clients {
                    for buffer in buffers {
                        for errors in errors {
                            for cc in ccs {
                                add([workload, clients, buffer, errors], cc)?;
                            }
                        }
                    }
                }
            }
        }
        // Every published cell must be run, even if a block omits it.
        for figure in PublishedFigure::published_by(paper.source()) {
            for cc in [figure.cc, figure.against].into_iter().filter(|cc| !cc.is_empty()) {
                add(figure.settings, cc)?;
            }
        }
    }
    // The slow cells come first, so that the last ones to finish are short.
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.scenario.clients.count));
    let names: Vec<&str> = papers.iter().map(|paper| paper.name()).collect();
    let seed = seed.unwrap_or(1);
    let mut command = format!("ebbtide reproduce {} --seed {seed}", names.join(" "));
    if let Some(reps) = reps {
        command.push_str(&format!(" --reps {reps}"));
    }
    Ok(Campaign {
        percentile: Percentile::default(),
        exchanges: false,
        over_time: None,
        curve: None,
        source,
        axes: KEYS.iter().map(|key| Axis { key: (*key).to_owned(), values: Vec::new() }).collect(),
        cc: Vec::new(),
        reps: reps.unwrap_or(PAPERS_REPS),
        seed,
        cells,
        papers: names.iter().map(|name| (*name).to_owned()).collect(),
        command,
    })
}
