//! Senders of many messages: what arrived, at which rate, how evenly.

use super::{Caption, PageContext, command_line, head, load, table, where_};
use crate::grid::{distinct, varying, words};
use crate::svg::axis::Domain;
use crate::svg::timeseries::{ChartFrame, TimeCurve, draw};
use crate::text::{bit_rate, brief, escape, fixed, multiple, percent};
use ebbtide_sim::record::FlowSeries;
use ebbtide_sim::result::{Cell, Report};
use ebbtide_sim::result::{FlowCell, FlowFigures};

/// Rows at most.
const MOST_ROWS: usize = 400;
/// Cells drawn over time at most.
const MOST_DRAWN: usize = 24;
/// Clients whose flows have rows of their own, at most.
const MOST_FLOWS: usize = 8;

/// How many times smaller than the largest the peak of a drawing may be on the same scale.
const SHARED: f64 = 4.0;

/// Whether the cells are streams: flows whose time is their own.
pub(crate) fn are_streams(report: &Report) -> bool {
    let is_stream = |cell: &Cell| cell.flows.is_some() && cell.fct_limit_s == 0.0;
    !report.cells.is_empty() && report.cells.iter().all(is_stream)
}

/// The tables and the drawings; nothing without flows.
pub(crate) fn section(context: &mut PageContext<'_>) -> String {
    let cells: Vec<&Cell> =
        context.report.cells.iter().filter(|cell| cell.flows.is_some()).collect();
    if cells.is_empty() {
        return String::new();
    }
    let keys = varying(context.report);
    let command = command_line(&context.report.command);
    let tables = [overview(context, &cells, &keys), singles(context, &cells, &keys)].concat();
    let mut drawings = load::figure(context, &cells);
    if drawings.is_empty() {
        let all = quantities();
        drawings = all.iter().map(|quantity| figure(context, &cells, &keys, quantity)).collect();
    }
    let from = cells.iter().filter_map(|cell| cell.flows.as_ref()).map(|f| f.fair_from_s);
    format!(
        "<section id=\"flows\">\n<h2>Flows</h2>\n<p class=\"note\">Packets of all clients, means over \
         replications ± half a 95 % confidence interval. Delivered: first copies at the server. \
         Throughput: those, at their length on the wire. Delay: from the first transmission to the \
         first arrival, mean (median, 90 %). Loss: share of the transmissions that did not arrive. \
         Refused: found no room to wait. Jain's index: of the packets that the flows delivered while \
         all were active; of streams from {} s on.</p>\n{tables}{command}{drawings}</section>\n",
        fixed(from.fold(0.0, f64::max), 0),
    )
}

/// A mean, with half of its confidence interval if it has one.
fn with_half(value: (f64, f64), print: fn(f64) -> String) -> String {
    let (mean, half) = value;
    if half > 0.0 { format!("{} ± {}", print(mean), print(half)) } else { print(mean) }
}

fn overview(context: &PageContext<'_>, cells: &[&Cell], keys: &[&str]) -> String {
    type FlowColumn = (&'static str, fn(&Cell, &FlowCell) -> String);
    const COLUMNS: &[FlowColumn] = &[
        ("delivered", |_, f| with_half(f.delivered, brief)),
        ("throughput", |_, f| bit_rate(f.throughput_bps.0)),
        ("delay, ms", |_, f| {
            let [mean, median, high] = [f.delay_s.0, f.delay.median, f.delay.p90];
            let [mean, median, high] = [mean, median, high].map(|s| fixed(1e3 * s, 1));
            format!("{mean} ({median}, {high})")
        }),
        ("loss", |_, f| percent(f.loss.0, 1)),
        ("rexmits", |_, f| with_half(f.retransmissions, brief)),
        ("given up", |_, f| brief(sum(f, |flow| flow.given_up))),
        ("refused", |_, f| brief(sum(f, |flow| flow.refused))),
        ("probes", |_, f| brief(sum(f, |flow| flow.probes))),
        ("Jain's index", |_, f| fixed(f.jain.0, 3)),
        ("completion, s", |cell, _| {
            if cell.fct_limit_s > 0.0 { brief(cell.fct.median) } else { String::new() }
        }),
        ("times limit", |cell, _| {
            if cell.fct_limit_s > 0.0 { multiple(cell.multiple()) } else { String::new() }
        }),
    ];
    // Streams have no completion.
    let last = if are_streams(context.report) { COLUMNS.len() - 2 } else { COLUMNS.len() };
    let columns = &COLUMNS[..last];
    let head = head(keys, columns.iter().map(|(name, _)| *name));
    let row = |cell: &&Cell| {
        let Some(flows) = &cell.flows else { return String::new() };
        super::row(context, keys, cell, columns.iter().map(|(_, value)| value(cell, flows)))
    };
    let rows: String = cells.iter().take(MOST_ROWS).map(row).collect();
    table("packets", "Flows", &head, &rows)
}

fn sum(flows: &FlowCell, field: fn(&FlowFigures) -> f64) -> f64 {
    flows.flows.iter().map(field).sum()
}

fn settings(cell: &Cell, keys: &[&str]) -> String {
    keys.iter().map(|key| format!("<td>{}</td>", escape(cell.setting(key)))).collect()
}

/// A row per flow, where there are several and not many.
fn singles(context: &PageContext<'_>, cells: &[&Cell], keys: &[&str]) -> String {
    type FlowColumn = (&'static str, fn(&FlowFigures) -> String);
    const COLUMNS: &[FlowColumn] = &[
        ("client", |f| f.client.to_string()),
        ("from, s", |f| brief(f.start_s)),
        ("to, s", |f| brief(f.end_s)),
        ("offered", |f| brief(f.offered)),
        ("refused", |f| brief(f.refused)),
        ("delivered", |f| brief(f.delivered)),
        ("out of order", |f| brief(f.reordered)),
        ("throughput", |f| bit_rate(f.throughput_bps)),
        ("delay, ms", |f| fixed(1e3 * f.delay_s, 1)),
        ("loss", |f| percent(f.loss, 1)),
        ("retransmissions", |f| brief(f.retransmissions)),
        ("unnecessary", |f| brief(f.unnecessary)),
        ("given up", |f| brief(f.given_up)),
        ("probes", |f| brief(f.probes)),
    ];
    let several = |cell: &&Cell| {
        cell.flows.as_ref().is_some_and(|f| (2..=MOST_FLOWS).contains(&f.flows.len()))
    };
    let cells: Vec<&&Cell> = cells.iter().filter(|cell| several(cell)).collect();
    if cells.is_empty() {
        return String::new();
    }
    let head = head(keys, COLUMNS.iter().map(|(name, _)| *name));
    let rows: String = cells
        .iter()
        .flat_map(|cell| {
            let flows = cell.flows.as_ref().map_or(&[][..], |f| f.flows.as_slice());
            flows.iter().map(move |flow| (cell, flow))
        })
        .take(MOST_ROWS)
        .map(|(cell, flow)| {
            let values: String =
                COLUMNS.iter().map(|(_, value)| format!("<td>{}</td>", value(flow))).collect();
            let name = context.name(&flow.cc);
            format!("<tr>{}<th scope=\"row\">{name}</th>{values}</tr>\n", settings(cell, keys))
        })
        .collect();
    let rows = table("packets", "Each flow", &head, &rows);
    format!("<details><summary>Each flow</summary>\n{rows}</details>\n")
}

/// A quantity over time.
struct FlowQuantity {
    name: &'static str,
    axis: &'static str,
    /// Whether it keeps its value until the next point.
    steps: bool,
    list: fn(&FlowSeries) -> &[(f64, f64)],
}

fn quantities() -> [FlowQuantity; 3] {
    [
        FlowQuantity {
            name: "The rate that the control admits",
            axis: "rate (messages/s",
            steps: true,
            list: |flow| &flow.rate,
        },
        FlowQuantity {
            name: "Packets arriving",
            axis: "arriving (messages/s",
            steps: true,
            list: |flow| &flow.arriving,
        },
        FlowQuantity {
            name: "Packets delivered so far",
            axis: "delivered (packets",
            steps: false,
            list: |flow| &flow.delivered,
        },
    ]
}

fn figure(
    context: &mut PageContext<'_>,
    cells: &[&Cell],
    keys: &[&str],
    quantity: &FlowQuantity,
) -> String {
    let drawn: Vec<(&Cell, &[FlowSeries])> = cells
        .iter()
        .filter_map(|cell| Some((*cell, cell.series.first()?.flows.as_slice())))
        .filter(|(_, flows)| flows.iter().any(|flow| !(quantity.list)(flow).is_empty()))
        .take(MOST_DRAWN)
        .collect();
    if drawn.is_empty() {
        return String::new();
    }
    let largest = |flows: &[FlowSeries], field: fn(&(f64, f64)) -> f64| {
        let values = flows.iter().flat_map(quantity.list).map(field);
        values.filter(|value| value.is_finite()).fold(0.0, f64::max)
    };
    let end = |(cell, flows): &(&Cell, &[FlowSeries])| {
        let ends = cell.flows.iter().flat_map(|f| &f.flows).map(|flow| flow.end_s);
        ends.fold(largest(flows, |p| p.0), f64::max)
    };
    let tops: Vec<f64> = drawn.iter().map(|(_, flows)| largest(flows, |p| p.1)).collect();
    let top = tops.iter().copied().fold(0.0, f64::max);
    // Where one cell would flatten the others, each has a scale of its own.
    let is_shared = tops.iter().all(|own| SHARED * own >= top);
    let last = drawn.iter().map(end).fold(0.0, f64::max);
    let mut panels = String::new();
    let mut most = 0;
    for (one, own) in drawn.iter().zip(&tops) {
        let (cell, flows) = one;
        let values = Domain::linear(0.0, if is_shared { top } else { *own });
        let time = Domain::linear(0.0, last);
        let groups: Vec<&str> = cell.cc.split('+').collect();
        let lines: Vec<Vec<(f64, f64)>> = flows
            .iter()
            .map(|flow| {
                let list = (quantity.list)(flow);
                if quantity.steps { stepped(list, end(one)) } else { list.to_vec() }
            })
            .collect();
        let names: Vec<String> =
            flows.iter().map(|flow| format!("client {}", flow.client)).collect();
        most = most.max(flows.len());
        let traces: Vec<TimeCurve<'_>> = flows
            .iter()
            .zip(&lines)
            .zip(&names)
            .map(|((flow, points), name)| {
                let cc = groups[flow.client as usize % groups.len()];
                TimeCurve {
                    name,
                    class: format!("{} f{}", context.palette.class(cc), flow.client % 4),
                    points,
                    band: &[],
                    unit: 1.0,
                    dots: false,
                }
            })
            .collect();
        let (heading, settings) = (cell.cc.clone(), words(cell, keys));
        let frame = ChartFrame {
            heading: &heading,
            settings: &settings,
            axis: quantity.axis,
            time,
            across: "time (s",
            values,
        };
        let title = format!("{} over time: {}{}", quantity.name, heading, where_(&settings));
        let desc = format!("{} flows.", flows.len());
        let words = context.words(title, desc);
        panels.push_str(&draw(&traces, &frame, &words));
    }
    let shown: Vec<&Cell> = distinct(drawn.iter().map(|(cell, _)| *cell));
    let key = if most > 1 { " Solid: client 0; dashed: 1; dotted: 2; dash-dotted: 3." } else { "" };
    let scales = if is_shared { "all on the same scales" } else { "each on a scale of its own" };
    let text = format!("{} over time, in the first replication; {scales}.{key}", quantity.name);
    context.figure(
        &Caption { text, cells: &shown },
        &format!("<div class=\"panels\">\n{panels}</div>\n"),
    )
}

/// The corners of a line that keeps each value until the next one, and the last until `end`.
fn stepped(points: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    let mut corners = Vec::with_capacity(2 * points.len() + 1);
    for (place, (at, value)) in points.iter().enumerate() {
        if let Some((_, before)) = place.checked_sub(1).and_then(|before| points.get(before)) {
            corners.push((*at, *before));
        }
        corners.push((*at, *value));
    }
    corners.extend(points.last().map(|(_, value)| (end, *value)));
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_drawn_as_it_holds() {
        let corners = stepped(&[(0.0, 2.0), (3.0, 1.0)], 5.0);
        assert_eq!(corners, [(0.0, 2.0), (3.0, 2.0), (3.0, 1.0), (5.0, 1.0)]);
        assert!(stepped(&[], 5.0).is_empty());
    }
}
