//! The figures by which a control is judged, of one replication or of several together.

use crate::judge::RunFigures;
use crate::result::metric::{Better, Unit};

/// A row of the table.
#[derive(Copy, Clone)]
pub struct RunMetric {
    /// Its name in the JSON document; a dot leads into an object.
    pub name: &'static str,
    /// Its column in CSV files.
    pub column: &'static str,
    /// A sentence about it.
    pub about: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// The figure; `None` or NaN if there is none.
    pub value: fn(&RunFigures) -> Option<f64>,
}

/// A row whose column has the name of the figure.
const fn row(
    name: &'static str,
    about: &'static str,
    unit: Unit,
    better: Better,
    value: fn(&RunFigures) -> Option<f64>,
) -> RunMetric {
    RunMetric { name, column: name, about, unit, better, value }
}

/// The table.
pub static OUTCOME: [RunMetric; 12] = [
    row(
        "delivered",
        "Share of the exchanges whose answer reached the client.",
        Unit::Share,
        Better::More,
        |run| Some(run.delivered),
    ),
    row(
        "arrived",
        "Share of the exchanges whose request reached the server.",
        Unit::Share,
        Better::More,
        |run| Some(run.arrived),
    ),
    row(
        "unnecessary_share",
        "Share of all transmissions of the clients that were unnecessary.",
        Unit::Share,
        Better::Less,
        |run| Some(run.unnecessary_share),
    ),
    row(
        "transmissions_per_delivered",
        "Packets that clients sent, probes and acknowledgements included, per delivered exchange.",
        Unit::Ratio,
        Better::Less,
        |run| Some(run.transmissions_per_delivered),
    ),
    row(
        "bytes_per_delivered",
        "Bytes on the wire, both ways, per delivered exchange.",
        Unit::Ratio,
        Better::Less,
        |run| Some(run.bytes_per_delivered),
    ),
    by("delivered_by_s.50", "delivered_by_50_s", |run| run.delivered_by_s[0]),
    by("delivered_by_s.90", "delivered_by_90_s", |run| run.delivered_by_s[1]),
    by("delivered_by_s.99", "delivered_by_99_s", |run| run.delivered_by_s[2]),
    by("delivered_by_s.100", "delivered_by_100_s", |run| run.delivered_by_s[3]),
    row(
        "goodput_share",
        "Share of the capacity, until the last client was done, that delivered exchanges took.",
        Unit::Share,
        Better::More,
        |run| Some(run.goodput_share),
    ),
    row(
        "deadline_missed",
        "Share of the exchanges that were not answered within the deadline.",
        Unit::Share,
        Better::Less,
        |run| run.deadline_missed,
    ),
    row(
        "fairness",
        "Jain's index over the rates at which clients were answered.",
        Unit::Ratio,
        Better::More,
        |run| Some(run.fairness),
    ),
];

/// The time by which so many percent were delivered.
const fn by(
    name: &'static str,
    column: &'static str,
    value: fn(&RunFigures) -> Option<f64>,
) -> RunMetric {
    let about = "The time by which so many percent of the exchanges were delivered.";
    RunMetric { name, column, about, unit: Unit::Seconds, better: Better::Less, value }
}
