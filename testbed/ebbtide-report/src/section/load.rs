//! Streams against the load that is offered: what a longer or shorter interval changes.

use super::{Caption, PageContext};
use crate::grid::{controls, distinct, varying};
use crate::svg::axis::Domain;
use crate::svg::timeseries::{ChartFrame, TimeCurve, draw};
use ebbtide_sim::result::Cell;
use ebbtide_sim::result::FlowCell;
use ebbtide_sim::scenario::units::Time;

/// The key that is swept.
const KEY: &str = "interval";
/// Fewer loads are a table, not a line.
const LEAST: usize = 4;

/// Name, axis up to the closing bracket, value.
type LoadQuantity = (&'static str, &'static str, fn(&FlowCell) -> f64);

const QUANTITIES: &[LoadQuantity] = &[
    ("Transmissions that did not arrive", "lost (%", |f| 100.0 * f.loss.0),
    ("Messages offered that were not delivered", "not delivered (%", |f| {
        let offered: f64 = f.flows.iter().map(|flow| flow.offered).sum();
        100.0 * (1.0 - f.delivered.0 / offered)
    }),
    ("Packets delivered", "delivered (packets", |f| f.delivered.0),
    ("Mean delay from the first transmission", "delay (ms", |f| 1e3 * f.delay_s.0),
];

/// The figure; nothing unless the interval between messages is what is swept.
pub(super) fn figure(context: &mut PageContext<'_>, cells: &[&Cell]) -> String {
    let seconds = |cell: &Cell| {
        let interval = Time::parse(cell.setting(KEY)).filter(|time| time.0 > 0)?;
        Some(interval.0 as f64 / 1e9)
    };
    let loads = distinct(cells.iter().filter_map(|cell| seconds(cell)));
    if varying(context.report) != [KEY] || loads.len() < LEAST {
        return String::new();
    }
    let names = controls(context.report);
    let across = Domain::durations(loads.iter().copied());
    let mut panels = String::new();
    for (name, axis, value) in QUANTITIES {
        let lines: Vec<(&str, Vec<(f64, f64)>)> = names
            .iter()
            .map(|cc| {
                let own = cells.iter().filter(|cell| cell.cc == **cc);
                let point = |cell: &&Cell| Some((seconds(cell)?, value(cell.flows.as_ref()?)));
                let mut points: Vec<(f64, f64)> = own.filter_map(point).collect();
                points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
                (*cc, points)
            })
            .collect();
        let values = lines.iter().flat_map(|(_, points)| points).map(|(_, value)| *value);
        let top = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let traces: Vec<TimeCurve<'_>> = lines
            .iter()
            .map(|(cc, points)| TimeCurve {
                name: cc,
                class: context.palette.class(cc),
                points,
                band: &[],
                unit: 1.0,
                dots: false,
            })
            .collect();
        let frame = ChartFrame {
            heading: name,
            settings: "",
            axis,
            time: across,
            across: "time from one message to the next (s",
            values: Domain::linear(0.0, top),
        };
        let words = context.words(
            format!("{name} against the interval between messages"),
            format!("{} controls, {} intervals.", names.len(), loads.len()),
        );
        panels.push_str(&draw(&traces, &frame, &words));
    }
    let text = "Streams against the time from one message to the next: the load rises to the left."
        .to_owned();
    let legend = context.legend(&names);
    let body = format!("{legend}<div class=\"panels\">\n{panels}</div>\n");
    context.figure(&Caption { text, cells }, &body)
}
