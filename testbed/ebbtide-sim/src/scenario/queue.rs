//! `[network.up.queue]`: which queue discipline a link has, and with which parameters.

use super::units::Time;
use crate::keys::{Check, require, texts};
use crate::net::queue::{
    CoDelParameters, FqCoDelParameters, PieParameters, QueueModel, RedParameters,
};
use ebbtide_core::time::Duration;
use serde::{Deserialize, Serialize};

/// A queue discipline. An optional parameter that is omitted has the default of the document that
/// defines the discipline.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum QueueSpec {
    /// First in, first out; what finds the buffer full is dropped.
    TailDrop {},
    /// RFC 8289: drops at the head while packets wait longer than `target` for an `interval`.
    #[serde(rename = "codel")]
    CoDel {
        /// The wait that is acceptable as a standing one.
        #[serde(default = "target")]
        target: Time,
        /// A round trip of the slowest usual exchange.
        #[serde(default = "interval")]
        interval: Time,
        /// Whether it marks packets in place of dropping them early (RFC 3168).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ecn: bool,
    },
    /// RFC 8290: a queue under CoDel for each client, served in turn.
    #[serde(rename = "fq-codel")]
    FqCoDel {
        /// The wait that is acceptable as a standing one.
        #[serde(default = "target")]
        target: Time,
        /// A round trip of the slowest usual exchange.
        #[serde(default = "interval")]
        interval: Time,
        /// How many queues there are; clients are hashed to them.
        #[serde(default = "queues")]
        queues: u32,
        /// Bytes that a queue may send in its turn; the MTU if it is left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quantum: Option<u32>,
        /// Whether it marks packets in place of dropping them early (RFC 3168).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ecn: bool,
    },
    /// RFC 8033: drops by chance what arrives, by the wait and its trend.
    Pie {
        /// The wait that is aimed at.
        #[serde(default = "pie_target")]
        target: Time,
        /// How often the probability is computed.
        #[serde(default = "pie_target")]
        update: Time,
        /// How long a burst may be before anything is dropped.
        #[serde(default = "pie_burst")]
        burst: Time,
        /// Whether it marks packets in place of dropping them early (RFC 3168).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ecn: bool,
    },
    /// Random Early Detection (Floyd and Jacobson, 1993): drops by chance, by the average queue.
    Red {
        /// The average queue below which nothing is dropped, bytes.
        min: u64,
        /// The average queue from which on everything is dropped, bytes.
        max: u64,
        /// The probability of a drop where the average reaches `max`.
        #[serde(default = "red_probability")]
        probability: f64,
        /// The weight of the present queue in the average.
        #[serde(default = "red_weight")]
        weight: f64,
        /// Whether it marks packets in place of dropping them early (RFC 3168).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ecn: bool,
    },
}

const fn time(span: Duration) -> Time {
    // The defaults are fractions of a second.
    Time(span.as_nanos() as u64)
}

fn target() -> Time {
    time(CoDelParameters::default().target)
}

fn interval() -> Time {
    time(CoDelParameters::default().interval)
}

fn queues() -> u32 {
    FqCoDelParameters::default().queues
}

fn pie_target() -> Time {
    time(PieParameters::default().target)
}

fn pie_burst() -> Time {
    time(PieParameters::default().burst)
}

const fn red_probability() -> f64 {
    0.1
}

const fn red_weight() -> f64 {
    0.002
}

impl QueueSpec {
    /// Whether it marks packets in place of dropping them early.
    pub const fn ecn(self) -> bool {
        match self {
            Self::TailDrop {} => false,
            Self::CoDel { ecn, .. }
            | Self::FqCoDel { ecn, .. }
            | Self::Pie { ecn, .. }
            | Self::Red { ecn, .. } => ecn,
        }
    }

    /// The discipline that a link builds.
    pub const fn model(self) -> QueueModel {
        const fn codel(target: Time, interval: Time) -> CoDelParameters {
            let (target, interval) = (target.0, interval.0);
            CoDelParameters {
                target: Duration::from_nanos(target),
                interval: Duration::from_nanos(interval),
            }
        }
        match self {
            Self::TailDrop {} => QueueModel::TailDrop,
            Self::CoDel { target, interval, .. } => QueueModel::CoDel(codel(target, interval)),
            Self::FqCoDel { target, interval, queues, quantum, .. } => {
                let codel = codel(target, interval);
                QueueModel::FqCoDel(FqCoDelParameters { codel, queues, quantum })
            }
            Self::Pie { target, update, burst, .. } => QueueModel::Pie(PieParameters {
                target: Duration::from_nanos(target.0),
                update: Duration::from_nanos(update.0),
                burst: Duration::from_nanos(burst.0),
            }),
            Self::Red { min, max, probability, weight, .. } => {
                QueueModel::Red(RedParameters { min, max, max_probability: probability, weight })
            }
        }
    }
}

pub(super) fn check(name: &str, queue: Option<QueueSpec>) -> Check {
    let Some(queue) = queue else { return Ok(()) };
    let key = |key: &str| format!("network.{name}.queue.{key}");
    let span = |time: Time, name: &str| {
        let fits = (1_000..=3_600_000_000_000).contains(&time.0);
        require(fits, &key(name), "must be from 1 us to 1 h")
    };
    let message = "must be at most the interval, over which CoDel looks for a shorter wait";
    let below = |target: Time, interval: Time| require(target <= interval, &key("target"), message);
    match queue {
        QueueSpec::TailDrop {} => Ok(()),
        QueueSpec::CoDel { target, interval, .. } => {
            span(target, "target")?;
            span(interval, "interval")?;
            below(target, interval)
        }
        QueueSpec::FqCoDel { target, interval, queues, quantum, .. } => {
            span(target, "target")?;
            span(interval, "interval")?;
            below(target, interval)?;
            require((1..=65_536).contains(&queues), &key("queues"), "must be from 1 to 65536")?;
            let fits = quantum.is_none_or(|bytes| (1..=1_000_000).contains(&bytes));
            require(fits, &key("quantum"), "must be from 1 to 1000000 bytes")
        }
        QueueSpec::Pie { target, update, burst, .. } => {
            span(target, "target")?;
            span(update, "update")?;
            require(burst.0 <= 3_600_000_000_000, &key("burst"), "must be at most 1 h")
        }
        QueueSpec::Red { min, max, probability, weight, .. } => {
            require(min < max, &key("max"), "must be above min")?;
            let share = |share: f64| share > 0.0 && share <= 1.0;
            require(share(probability), &key("probability"), "must be above 0 and at most 1")?;
            require(share(weight), &key("weight"), "must be above 0 and at most 1")
        }
    }
}

texts! {
    QueueSpec => "table with a kind".to_owned(),
}
