//! The figures by which a control is judged.

use super::requirement::RequirementCheck;
use super::run_figures::RunFigures;
use crate::net::Direction;
use crate::scenario::Requirement;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The shares of the exchanges for which times are given, in percent.
pub const SHARES: [u8; 4] = [50, 90, 99, 100];

/// The share of the exchanges by whose time controls are compared.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Percentile(u8);

impl Percentile {
    /// Its place in [`SHARES`].
    pub fn place(self) -> usize {
        SHARES.iter().position(|share| *share == self.0).unwrap_or(SHARES.len() - 1)
    }
}

impl Default for Percentile {
    fn default() -> Self {
        Self(99)
    }
}

impl FromStr for Percentile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = text.trim_end_matches([' ', '%']).parse().ok();
        let known = share.filter(|share| SHARES.contains(share));
        known.map(Self).ok_or_else(|| "takes 50, 90, 99 or 100".to_owned())
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

/// The workload of a network, and the capacity of its link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demand {
    /// Seconds that the busier direction of the link needs for one exchange; 0 if there is no link.
    pub each_s: f64,
    /// Bytes of a request and of its response on the wire.
    pub bytes: (f64, f64),
    /// The busier direction.
    pub direction: Direction,
    /// The rate of that direction, bit/s.
    pub rate_bps: f64,
    /// The longest round trip of the idle path, s; 0 in a mesh and in a LoRaWAN cell, where it has no bound.
    #[serde(default)]
    pub idle_s: f64,
    /// The place of the link among the scenario's others, if it is not the bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<usize>,
    /// Bytes that may wait before the bottleneck in that direction; `None` for no bound.
    pub buffer: Option<u64>,
    /// The share of packets that the bottleneck loses on average.
    pub loss: f64,
    /// Clients.
    pub clients: u32,
    /// Exchanges of one client that follow each other.
    pub in_turn: u32,
    /// Exchanges that a client keeps open.
    pub nstart: u16,
    /// Clients start within so many seconds.
    pub start_window_s: f64,
    /// Seconds from one request of a client to the next where they go by the clock.
    pub period_s: Option<f64>,
    /// ACK_TIMEOUT, s.
    pub ack_timeout_s: f64,
    /// MAX_RETRANSMIT.
    pub max_retransmit: u8,
    /// Whether the scenario states a deadline.
    pub has_deadline: bool,
    /// The requirements on the clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Requirement>,
}

/// The figures of a control in one setting, all replications together, and each of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlOutcome {
    /// Exchanges asked for.
    pub asked: u64,
    /// All replications together.
    pub all: RunFigures,
    /// Each replication, in order: the same place met the same luck under every control.
    pub runs: Vec<RunFigures>,
    /// The shortest and the longest time from an original to giving up, s.
    pub gave_up_s: Option<(f64, f64)>,
    /// The share of the clients' and the server's packets that the bottleneck dropped.
    pub dropped: f64,
    /// Share of the time until the last client was done that the busiest link worked, cross traffic included.
    #[serde(default)]
    pub busiest: f64,
    /// The median round trip as a multiple of the longest one of the idle path; NaN where that is not known.
    #[serde(default)]
    pub stretch: f64,
    /// The requirements beside the figures; those of each class as well where these are the figures of all clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<RequirementCheck>,
    /// The workload.
    pub demand: Demand,
}

impl ControlOutcome {
    /// Whether packets wait for others: without that, copies delay no other client, and nothing can collapse. A mesh
    /// and a LoRaWAN cell count as loaded, because no link tells their load.
    pub fn is_loaded(&self) -> bool {
        let has_links = self.demand.idle_s > 0.0;
        let is_queued = self.stretch > super::STRETCH || self.dropped > super::DROPS;
        // Clients that give up before the idle path can answer see no load, whatever the link does.
        let is_hasty = self.gave_up_s.is_some_and(|(_, most)| most < self.demand.idle_s);
        !has_links || !is_hasty && (is_queued || self.busiest >= super::BUSY)
    }

    /// Why this is a collapse, if it is one.
    pub fn collapse(&self) -> Option<&'static str> {
        if !self.is_loaded() {
            return None;
        }
        let all = &self.all;
        if self.asked > 0 && all.delivered == 0.0 {
            return Some("nothing is delivered");
        }
        if all.unnecessary_share > super::WASTE {
            return Some("most transmissions are unnecessary");
        }
        let is_full = all.occupied >= super::FULL;
        (is_full && all.goodput_share < super::GOODPUT)
            .then_some("the link is full and delivers less than half of what it could")
    }

    /// Whether half of what it sends is needless although it does not collapse: the path takes longer than
    /// the control knows. The margin within which figures count as equal applies to the half as well.
    pub fn is_wasteful(&self) -> bool {
        let most = super::WASTE * (1.0 - super::MARGIN);
        self.all.unnecessary_share >= most && self.collapse().is_none()
    }
}
