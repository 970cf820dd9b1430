//! The figures of the option PM: losses as the endpoints measure them.

use crate::record::{MeasuredBlocks, MeasuredLosses};
use crate::result::figures::Value;
use crate::result::metric::{Format, Group, Metric, Unit};
use crate::result::sample::Replications;

/// The share that is missing in one direction; `None` until a block is complete.
fn loss(sample: &Replications<'_>, of: fn(&MeasuredLosses) -> MeasuredBlocks) -> Option<Value> {
    let blocks = sample.records.iter().filter_map(|record| record.totals.measured.as_ref()).map(of);
    let (sent, arrived) = blocks.fold((0, 0), |sum, one| (sum.0 + one.sent, sum.1 + one.arrived));
    (sent > 0).then(|| Value::Number(1.0 - arrived as f64 / sent as f64))
}

/// The table.
pub static MEASUREMENT: Group = Group {
    key: "measurement",
    name: "Measurement",
    title: "Losses as the option PM measures them",
    note: "Of messages that have options, in complete blocks of its square wave; all replications together.",
    terminal_title: "option PM",
    terminal_note: "losses that the endpoints measured, of messages in complete blocks",
    metrics: &[
        Metric::measured(
            "measurement.loss_up",
            "Share of the clients' messages that did not arrive, as the server measured it.",
            Unit::Share,
            |s| loss(s, |losses| losses.up),
        )
        .page("loss up", Format::Percent(1))
        .terminal("loss up", 9, Format::Percent(1)),
        Metric::measured(
            "measurement.loss_down",
            "Share of the server's messages that did not arrive, as the clients measured it.",
            Unit::Share,
            |s| loss(s, |losses| losses.down),
        )
        .page("loss down", Format::Percent(1))
        .terminal("loss down", 11, Format::Percent(1)),
    ],
};
