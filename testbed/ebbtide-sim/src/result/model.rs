//! The data of a report: plain numbers, each with its unit.
//!
//! Everything here is data computed elsewhere; the report draws it and judges it, and never
//! runs anything. Values that are not finite are allowed everywhere (a cell in which nothing
//! completed has no median) and are printed as an en dash.

use super::breaking_point::BreakingPoint;
use super::course::Course;
use super::figures::{Figures, Value};
use super::flows::FlowCell;
use crate::judge::{ControlOutcome, Percentile};
use crate::record::{DirectionCounts, Handshakes, Series};
use crate::scenario::LoadCurve;
use crate::stats::Summary;
use serde::{Deserialize, Serialize};
use std::iter::Sum;

/// One report: a scenario, the cells that were run, and how to run them again.
///
/// It holds no date and no host name: the same results give the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Headline, for example "NB-IoT cell, 400 devices".
    pub title: String,
    /// One line under the headline; may be empty.
    pub subtitle: String,
    /// Name of the scenario, as `run` takes it.
    pub scenario: String,
    /// Description of the scenario, in a sentence or two of plain text.
    pub description: String,
    /// Where the scenario comes from (a paper, a file); may be empty.
    pub source: String,
    /// The exact command that computes everything in this report again.
    pub command: String,
    /// Version of the program that computed the results.
    pub version: String,
    /// Seed of the random streams.
    pub seed: u64,
    /// The scenario as a TOML file, overrides applied.
    pub scenario_toml: String,
    /// Keys that were swept, the slowest first; empty when only the control varies.
    pub axes: Vec<String>,
    /// One cell per combination of settings and congestion control, in the order of the run.
    pub cells: Vec<Cell>,
    /// Published figures beside the measured ones; empty outside `reproduce`.
    pub published: Vec<Comparison>,
    /// The share of the exchanges by whose time the controls are compared.
    #[serde(default)]
    pub percentile: Percentile,
    /// Whether clients keep time by themselves: then the times are those of single exchanges.
    #[serde(default)]
    pub is_periodic: bool,
    /// The key over which curves are drawn.
    #[serde(default)]
    pub curve: Option<LoadCurve>,
    /// The breaking point of each control over a key, if they were searched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<BreakingPoint>,
    /// Remarks, one paragraph each, printed at the end.
    pub notes: Vec<String>,
}

/// All replications of one congestion control under one combination of settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the congestion control.
    pub cc: String,
    /// Swept key and its value, in the order of [`Report::axes`].
    pub settings: Vec<(String, String)>,
    /// Replications.
    pub reps: u32,
    /// Clients in each replication.
    pub clients: u32,
    /// Flow completion time in seconds, over all clients of all replications.
    pub fct: Summary,
    /// 95 % confidence interval of the median flow completion time over replications, seconds.
    pub fct_ci: (f64, f64),
    /// The physical limit in seconds: no schedule finishes before; zero when there is none.
    pub fct_limit_s: f64,
    /// When each percent of the answered exchanges, 0 to 100, was answered, s after it was due, pooled
    /// over replications. Any number of equally spaced quantiles from 2 up is drawn; empty draws no
    /// curve.
    #[serde(default)]
    pub delivered_quantiles: Vec<f64>,
    /// The same of how long answered exchanges took from their request to the first response.
    #[serde(default)]
    pub duration_quantiles: Vec<f64>,
    /// All figures that the [tables](super::metrics) describe.
    #[serde(default)]
    pub figures: Figures,
    /// The fates of the packets, summed over replications.
    pub packets: Packets,
    /// The figures that it is judged by.
    #[serde(default)]
    pub outcome: ControlOutcome,
    /// The exact command that computes this cell again.
    pub command: String,
    /// The course of events in chosen replications; may be empty.
    pub series: Vec<Series>,
    /// Its replications over time, if series were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// The nodes of a low-power network; empty for other networks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<MeshNode>,
    /// Figures of senders of many messages only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowCell>,
    /// The handshakes of DTLS, summed over replications, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Handshakes>,
    /// The class of clients whose figures these are; empty for all clients.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// The control that the class has of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_control: Option<String>,
    /// Whether the clients of the class keep time by themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_periodic: bool,
    /// The figures of each class of clients; empty in a scenario without classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Cell>,
    /// The phase whose exchanges these are; empty for the whole run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The figures of each phase; empty in a scenario without phases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Cell>,
    /// UDP traffic of others: its name and its packets, summed over replications.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<(String, PacketCounts)>,
    /// The links other than the bottleneck, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkCell>,
}

/// A link other than the bottleneck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkCell {
    /// Its name.
    pub name: String,
    /// Packets towards the server, summed over replications.
    pub up: PacketCounts,
    /// Packets towards the devices, likewise.
    pub down: PacketCounts,
    /// Share of the time that it was sending towards the server, 0 to 1, mean over replications.
    pub utilisation_up: f64,
    /// Share of the time that it was sending towards the devices, 0 to 1, mean over replications.
    pub utilisation_down: f64,
}

/// A node of a low-power network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshNode {
    /// Where it is, m.
    pub x: f64,
    /// Where it is, m.
    pub y: f64,
    /// Its parent's number; its own for the root.
    pub parent: u32,
    /// Share of its messages that were lost; where it sends none, of its frames that were given up
    /// or found its queue full.
    pub loss: f64,
    /// The most frames in its queue.
    pub peak_queue: f64,
    /// Mean power of its radio, mW.
    pub power_mw: f64,
}

/// Packets in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Packets {
    /// Clients to server.
    pub up: PacketCounts,
    /// Server to clients.
    pub down: PacketCounts,
}

/// Packets in one direction: sent = delivered + dropped + lost + still in flight at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketCounts {
    /// Handed to the link.
    pub sent: u64,
    /// Arrived at the other end.
    pub delivered: u64,
    /// Found the queue full.
    pub dropped_queue: u64,
    /// Lost after the queue.
    pub lost_link: u64,
    /// Marked by the queue discipline (ECN).
    #[serde(default, skip_serializing_if = "crate::record::is_zero")]
    pub marked: u64,
}

/// Summed over replications.
impl Sum<DirectionCounts> for PacketCounts {
    fn sum<I: Iterator<Item = DirectionCounts>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, one| Self {
            sent: sum.sent + one.sent,
            delivered: sum.delivered + one.delivered,
            dropped_queue: sum.dropped_queue + one.dropped_queue,
            lost_link: sum.lost_link + one.lost_link,
            marked: sum.marked + one.marked,
        })
    }
}

/// One published figure beside the measured one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The paper, for example "ANRW18".
    pub source: String,
    /// Table or figure of the paper.
    pub table: String,
    /// The quantity that is compared, with its unit, for example "median FCT (s)".
    pub quantity: String,
    /// The settings of the cell, for example "400 clients, infinite buffer".
    pub cell: String,
    /// Name of the congestion control.
    pub cc: String,
    /// The published value.
    pub published: f64,
    /// The measured value, in the same unit.
    pub measured: f64,
    /// 95 % confidence interval of the measured value, same unit.
    pub ci: (f64, f64),
    /// (measured - published) / published; for percentages their difference, 0.01 being a point.
    pub relative: f64,
    /// Whether the values are percentages, which are compared by their difference in points.
    #[serde(default)]
    pub is_percentage: bool,
    /// Tolerance on the absolute value of `relative`; `None` when none was promised.
    pub within: Option<f64>,
    /// Remark, for example why the value lies outside; may be empty.
    pub note: String,
}

impl Cell {
    /// The time by which all that was asked was delivered as a multiple of the physical limit, which
    /// is that of the last client too; if there are both. The mean over replications: what happens
    /// last is a matter of luck.
    pub fn multiple(&self) -> Option<f64> {
        let runs = &self.outcome.runs;
        let last = runs.iter().map(|run| run.delivered_by_s[3]).collect::<Option<Vec<f64>>>()?;
        let multiple = last.iter().sum::<f64>() / last.len() as f64 / self.fct_limit_s;
        (self.fct_limit_s > 0.0 && multiple.is_finite()).then_some(multiple)
    }

    /// All exchanges, completed or not.
    pub fn exchanges(&self) -> u64 {
        (self.number("completed") + self.number("failed")) as u64
    }

    /// A figure as one number: the mean, or the median; NaN if the cell does not have it.
    pub fn number(&self, name: &str) -> f64 {
        self.figures.get(name).map_or(f64::NAN, Value::number)
    }

    /// A figure's mean and half of its confidence interval; NaN if the cell does not have it.
    pub fn mean(&self, name: &str) -> (f64, f64) {
        match self.figures.get(name) {
            Some(Value::Mean(mean, half)) => (*mean, *half),
            _ => (f64::NAN, f64::NAN),
        }
    }

    /// A figure's order statistics; zeros if the cell does not have it.
    pub fn spread(&self, name: &str) -> Summary {
        match self.figures.get(name) {
            Some(Value::Spread(summary)) => *summary,
            _ => Summary::default(),
        }
    }

    /// A figure's counts by kind; empty if the cell does not have it.
    pub fn counts(&self, name: &str) -> &[u64] {
        match self.figures.get(name) {
            Some(Value::Counts(counts)) => counts,
            _ => &[],
        }
    }

    /// A figure's quantiles; empty if the cell does not have it.
    pub fn quantiles(&self, name: &str) -> &[f64] {
        match self.figures.get(name) {
            Some(Value::Quantiles(quantiles)) => quantiles,
            _ => &[],
        }
    }

    /// The value of one swept key; empty if the cell has none.
    pub fn setting(&self, key: &str) -> &str {
        self.settings.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }
}

impl Comparison {
    /// Whether the measured value misses its tolerance; a value that is not finite misses it.
    pub fn is_outside(&self) -> bool {
        match self.within {
            Some(within) => !self.relative.is_finite() || self.relative.abs() > within,
            None => false,
        }
    }
}
