//! The cells of each paper.

use super::figures::Figure;
use crate::judge::Percentile;
use crate::record::Manifest;
use crate::run::{Campaign, CellSpec};
use crate::scenario::{Axis, Override, ScenarioError, Source, TCP, load};
use ebbtide_core::cc::Registry;

/// A paper whose experiments can be repeated.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paper {
    /// Jarvinen et al., Is CoAP Congestion Safe?, 2018.
    Anrw18,
    /// Raitahila, Congestion Control Algorithms for CoAP, 2019.
    Thesis19,
    /// Betzler et al., Congestion Control for CoAP Cloud Services, 2014.
    Socne14,
    /// Ancillotti and Bruno, Comparison of CoAP and CoCoA+, 2017.
    Wimob17,
    /// Hoang and Le, RCOAP: A Rate Control Scheme, 2021.
    Rcoap21,
}

/// Represents the papers' own numbers of replications in a manifest.
pub const PAPERS_REPS: u32 = 0;

/// The keys of a cell, in the order of [`Figure::settings`].
pub(super) const KEYS: [&str; 4] = ["workload", "clients", "buffer", "errors"];
const BUFFERS: &[&str] = &["2500", "14100", "28200", "infinite"];
const WORKLOADS: &[&str] = &["continuous", "random"];

impl Paper {
    /// All papers.
    pub const ALL: &'static [Self] =
        &[Self::Anrw18, Self::Thesis19, Self::Socne14, Self::Wimob17, Self::Rcoap21];

    /// The papers in a list of names, in the order of [`Paper::ALL`].
    #[must_use]
    pub fn named(names: &[String]) -> Vec<Self> {
        let papers = Self::ALL.iter().copied();
        papers.filter(|paper| names.iter().any(|name| name == paper.name())).collect()
    }

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anrw18 => "anrw18",
            Self::Thesis19 => "thesis19",
            Self::Socne14 => "socne14",
            Self::Wimob17 => "wimob17",
            Self::Rcoap21 => "rcoap21",
        }
    }

    /// The name in the file of figures.
    #[must_use]
    pub const fn source(self) -> &'static str {
        match self {
            Self::Anrw18 => "ANRW18",
            Self::Thesis19 => "Thesis19",
            Self::Socne14 => "SOCNE14",
            Self::Wimob17 => "WiMob17",
            Self::Rcoap21 => "RCOAP21",
        }
    }

    /// The full title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Anrw18 => "Jarvinen, Raitahila, Cao, Kojo: Is CoAP Congestion Safe? ANRW 2018",
            Self::Thesis19 => {
                "Raitahila: Congestion Control Algorithms for the Constrained Application \
                 Protocol (CoAP), University of Helsinki, 2019"
            }
            Self::Socne14 => {
                "Betzler, Gomez, Demirkol, Kovatsch: Congestion Control for CoAP Cloud Services, \
                 SOCNE 2014"
            }
            Self::Wimob17 => {
                "Ancillotti, Bruno: Comparison of CoAP and CoCoA+ Congestion Control Mechanisms \
                 for Different IoT Application Scenarios, WiMob 2017"
            }
            Self::Rcoap21 => "Hoang, Le: RCOAP: A Rate Control Scheme, IEEE Access 2021",
        }
    }

    /// The built-in scenario of the paper.
    #[must_use]
    pub const fn scenario(self) -> &'static str {
        match self {
            Self::Anrw18 | Self::Thesis19 => "nb-iot",
            Self::Socne14 => "lln-cloud",
            Self::Wimob17 => "lln-grid",
            Self::Rcoap21 => "rcoap-wifi",
        }
    }

    /// Whether its cells are listed one by one; those of the other papers are blocks of `nb-iot`.
    #[must_use]
    pub const fn lists_cells(self) -> bool {
        !matches!(self, Self::Anrw18 | Self::Thesis19)
    }

    /// The blocks of cells: workloads, clients, buffers, errors, controls.
    fn blocks(self) -> Vec<[&'static [&'static str]; 5]> {
        const NONE: &[&str] = &["none"];
        match self {
            Self::Anrw18 => vec![
                [WORKLOADS, &["50", "100", "200", "400"], BUFFERS, NONE, &["default", "cocoa"]],
                [
                    WORKLOADS,
                    &["400"],
                    BUFFERS,
                    NONE,
                    &["default-fb1", "default-fb2", "cocoa-fb1", "cocoa-fb2"],
                ],
            ],
            Self::Thesis19 => vec![
                [
                    WORKLOADS,
                    &["1", "10", "50", "100", "200", "400"],
                    BUFFERS,
                    NONE,
                    &["default", "cocoa", "fasor", "fasor-token"],
                ],
                [WORKLOADS, &["400"], BUFFERS, NONE, &["slow", "fast-slow", "fasor-k4"]],
                [
                    WORKLOADS,
                    &["10"],
                    &["infinite"],
                    &["low", "medium", "high"],
                    &["default", "cocoa", "slow", "fast-slow", "fasor-k4", "fasor", "fasor-token"],
                ],
                // TCP: the cells with available figures.
                [WORKLOADS, &["1", "10", "100", "400"], &["2500", "infinite"], NONE, &[TCP]],
                [WORKLOADS, &["10"], &["infinite"], &["low", "high"], &[TCP]],
                [
                    &["mixed"],
                    &["100", "400"],
                    BUFFERS,
                    NONE,
                    &["default+cocoa", "default+fasor", "cocoa+fasor"],
                ],
            ],
            Self::Socne14 | Self::Wimob17 | Self::Rcoap21 => Vec::new(),
        }
    }

    /// Whether a cell belongs to this paper.
    #[must_use]
    pub fn ran(self, spec: &CellSpec) -> bool {
        if self.lists_cells() {
            return spec.scenario.name == self.scenario();
        }
        let settings: Vec<&str> = spec.settings.iter().map(|(_, value)| value.as_str()).collect();
        self.blocks().iter().any(|block| {
            let axes = block.iter().take(4).zip(&settings);
            axes.into_iter().all(|(values, value)| values.contains(value))
                && block[4].contains(&spec.cc.as_str())
        })
    }
}

/// Adds the cells that a paper lists, with its scenario's number of replications.
fn listed(
    paper: Paper,
    source: &Source,
    reps: Option<u32>,
    cells: &mut Vec<CellSpec>,
) -> Result<(), ScenarioError> {
    for (settings, cc) in super::low_power::cells(paper) {
        let change =
            |(key, value): &(String, String)| Override { key: key.clone(), value: value.clone() };
        let scenario = source.scenario(&settings.iter().map(change).collect::<Vec<_>>())?;
        let controls = vec![scenario.control_config(&cc)?];
        let reps = reps.unwrap_or(scenario.run.reps);
        cells.push(CellSpec { cc, controls, settings, scenario, reps });
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
    plan(&papers, (reps, Some(manifest.seed)))
}

/// The cells of some papers, each once, with the papers' numbers of replications: 20, or 40 with
/// link errors.
///
/// # Errors
///
/// No error can be caused by the caller: the scenario and the controls are built in.
pub fn plan(
    papers: &[Paper],
    (reps, seed): (Option<u32>, Option<u64>),
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
        for figure in Figure::of(paper.source()) {
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
