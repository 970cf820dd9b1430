//! Time series of chosen replications.

use super::{Caption, PageContext, where_};
use crate::grid::{varying, words};
use crate::svg::axis::Domain;
use crate::svg::timeseries::{ChartFrame, TimeCurve, draw};
use ebbtide_sim::record::Series;
use ebbtide_sim::result::{Cell, Report};

/// Replications drawn at most.
const MOST_SERIES: usize = 20;

/// Replications drawn at most where there are many cells.
const MOST_SERIES_DENSE: usize = 12;

/// One replication of one cell.
struct Chosen<'a> {
    cell: &'a Cell,
    series: &'a Series,
    label: String,
    settings: String,
}

/// A quantity over time.
struct TimeQuantity {
    /// Name of the quantity, for captions and titles.
    name: &'static str,
    /// Axis title up to its unit, without the closing bracket.
    axis: String,
    /// Values are divided by this.
    unit: f64,
    /// Its lists: name, look (empty for the colour of the control), where they are.
    lists: &'static [(&'static str, &'static str, List)],
    /// Dots instead of lines.
    dots: bool,
}

type List = fn(&Series) -> &[(f64, f64)];

/// Queue lengths, timeouts, throughput; nothing if no replication was chosen.
pub(crate) fn section(context: &mut PageContext<'_>) -> String {
    let all = chosen(context.report);
    if all.is_empty() {
        return String::new();
    }
    let most = if context.grid.dense { MOST_SERIES_DENSE } else { MOST_SERIES };
    let (drawn, left) = all.split_at(all.len().min(most));
    let mut out = String::from("<section id=\"time\">\n<h2>Over time</h2>\n");
    for quantity in quantities(drawn) {
        out.push_str(&figure(context, drawn, &quantity));
    }
    if !left.is_empty() {
        out.push_str(&format!(
            "<p class=\"note\">{} further replications are not drawn, to keep this file small.</p>\n",
            left.len()
        ));
    }
    out.push_str("</section>\n");
    out
}

fn chosen(report: &Report) -> Vec<Chosen<'_>> {
    let keys = varying(report);
    report
        .cells
        .iter()
        .flat_map(|cell| cell.series.iter().map(move |series| (cell, series)))
        .map(|(cell, series)| Chosen {
            cell,
            series,
            label: format!("{}, replication {}", cell.cc, series.replication),
            settings: words(cell, &keys),
        })
        .collect()
}

fn quantities(chosen: &[Chosen<'_>]) -> Vec<TimeQuantity> {
    let largest = |lists: &[(&str, &str, List)]| {
        chosen
            .iter()
            .flat_map(|one| lists.iter().flat_map(|(_, _, list)| list(one.series)))
            .map(|(_, value)| *value)
            .filter(|value| value.is_finite())
            .fold(0.0, f64::max)
    };
    const QUEUES: &[(&str, &str, List)] =
        &[("to the clients", "", |s| &s.queue_down), ("to the server", "up", |s| &s.queue_up)];
    const TIMEOUTS: &[(&str, &str, List)] = &[("timeouts armed", "", |s| &s.timeouts)];
    const THROUGHPUT: &[(&str, &str, List)] = &[("useful payload", "", |s| &s.throughput)];
    let (kilo, prefix) = if largest(QUEUES) >= 10_000.0 { (1e3, "k") } else { (1.0, "") };
    let (kilobit, bit) =
        if largest(THROUGHPUT) >= 10_000.0 { (1e3, "kbit/s") } else { (1.0, "bit/s") };
    vec![
        TimeQuantity {
            name: "Queue length",
            axis: format!("queue ({prefix}B; colour: to the clients, grey: to the server"),
            unit: kilo,
            lists: QUEUES,
            dots: false,
        },
        TimeQuantity {
            name: "Retransmission timeouts armed",
            axis: "timeout (s".to_owned(),
            unit: 1.0,
            lists: TIMEOUTS,
            dots: true,
        },
        TimeQuantity {
            name: "Useful payload delivered",
            axis: format!("throughput ({bit}"),
            unit: kilobit,
            lists: THROUGHPUT,
            dots: false,
        },
    ]
}

fn figure(context: &mut PageContext<'_>, chosen: &[Chosen<'_>], quantity: &TimeQuantity) -> String {
    let with: Vec<&Chosen<'_>> = chosen
        .iter()
        .filter(|one| quantity.lists.iter().any(|(_, _, list)| !list(one.series).is_empty()))
        .collect();
    let lists = || quantity.lists.iter().map(|(_, _, list)| list);
    let mut values = with.iter().flat_map(|one| lists().flat_map(|list| list(one.series)));
    // Nothing to see: the queues of links on which no packet ever waits, for example.
    if values.all(|(_, value)| *value == 0.0) {
        return String::new();
    }
    let points = || {
        with.iter().flat_map(|one| quantity.lists.iter().flat_map(|(_, _, list)| list(one.series)))
    };
    let last = points().map(|(at, _)| *at).filter(|at| at.is_finite()).fold(0.0, f64::max);
    let values = points().map(|(_, value)| value / quantity.unit);
    let values = if quantity.dots {
        Domain::durations(values)
    } else {
        Domain::linear(0.0, values.filter(|value| value.is_finite()).fold(0.0, f64::max))
    };
    fn frame<'a>(one: &'a Chosen<'_>, axis: &'a str, ranges: (Domain, Domain)) -> ChartFrame<'a> {
        let (time, values) = ranges;
        let across = "time (s";
        ChartFrame { heading: &one.label, settings: &one.settings, axis, time, across, values }
    }
    let ranges = (Domain::linear(0.0, last), values);
    let mut body = String::from("<div class=\"panels\">\n");
    for one in &with {
        let class = context.palette.class(&one.cell.cc);
        let traces: Vec<TimeCurve<'_>> = quantity
            .lists
            .iter()
            .rev()
            .map(|(name, look, list)| TimeCurve {
                name,
                class: if look.is_empty() { class.clone() } else { (*look).to_owned() },
                points: list(one.series),
                band: &[],
                unit: quantity.unit,
                dots: quantity.dots,
            })
            .collect();
        let words = context.words(
            format!("{} over time: {}{}", quantity.name, one.label, where_(&one.settings)),
            format!("{} points.", traces.iter().map(|trace| trace.points.len()).sum::<usize>()),
        );
        body.push_str(&draw(&traces, &frame(one, &quantity.axis, ranges), &words));
    }
    body.push_str("</div>\n");
    let cells: Vec<&Cell> = crate::grid::distinct(with.iter().map(|one| one.cell));
    let text =
        format!("{} over time, in chosen replications; all on the same scales.", quantity.name);
    context.figure(&Caption { text, cells: &cells }, &body)
}
