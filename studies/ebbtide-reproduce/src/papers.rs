//! The cells of each paper.

use ebbtide_sim::result::CellSpec;
use ebbtide_sim::scenario::TCP;

/// A cell of a study: its settings by key, and its control.
pub(super) type CellSettings = (Vec<(String, String)>, String);

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

/// The keys of a cell, in the order of [`PublishedFigure::settings`].
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
    pub(super) fn blocks(self) -> Vec<[&'static [&'static str]; 5]> {
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
