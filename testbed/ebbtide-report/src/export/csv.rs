//! The data of figures, as CSV (RFC 4180).

use crate::grid::{distinct, varying};
use crate::section::course;
use crate::section::curve::{DELIVERED as DELIVERED_OVER, GOODPUT};
use crate::section::distribution::{DELIVERED, EXCHANGES};
use crate::section::sweep::{self, SweepPoint};
use crate::svg::bars;
use ebbtide_sim::record::Series;
use ebbtide_sim::result::metrics::OUTCOME;
use ebbtide_sim::result::{Cell, Report, Summary, curves as over_load};

/// The data of the figure of this title, and nothing else: of a distribution its curves, of a box plot its boxes, of a
/// figure over time its points, of a comparison with published figures both values. Every row says which version, seed
/// and command made it.
pub fn csv(report: &Report, title: &str) -> String {
    let mut shown = report.clone();
    shown.cells.retain(|cell| is_shown(report, cell, title));
    let from = line(vec![report.version.clone(), report.seed.to_string(), report.command.clone()]);
    let rows = table(&shown, title);
    let with = rows.split_inclusive("\r\n").enumerate().map(|(number, row)| {
        let row = row.trim_end_matches("\r\n");
        if number == 0 {
            format!("{row},version,seed,command\r\n")
        } else {
            format!("{row},{from}")
        }
    });
    with.collect()
}

/// Whether a cell has the settings that a title names, and its control if the title names one replication.
fn is_shown(report: &Report, cell: &Cell, title: &str) -> bool {
    let names = |key: &str, value: &str| {
        let setting = format!(", {key}\u{a0}=\u{a0}{value}");
        title.match_indices(&setting).any(|(at, _)| {
            let rest = &title[at + setting.len()..];
            rest.is_empty() || rest.starts_with(", ")
        })
    };
    let agrees = |key: &&str| {
        let values = distinct(report.cells.iter().map(|other| other.setting(key)));
        !values.iter().any(|value| names(key, value)) || names(key, cell.setting(key))
    };
    let is_of_control = title.split_once(" over time: ").is_none_or(|(_, rest)| {
        let own = rest.strip_prefix(cell.cc.as_str());
        own.is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
    });
    varying(report).iter().all(agrees) && is_of_control
}

fn table(report: &Report, title: &str) -> String {
    if let Some(kind) = [DELIVERED, EXCHANGES].iter().find(|kind| title.starts_with(kind.title)) {
        return curves(report, kind.quantiles);
    }
    if title.contains(" by congestion control") {
        return boxes(report, |cell| cell.fct, "s");
    }
    if title.starts_with("Unnecessary retransmissions per client") {
        return boxes(report, |cell| cell.spread("unnecessary_retransmissions"), "per_client");
    }
    if title.starts_with("Exchanges by number of retransmissions") {
        return retransmissions(report);
    }
    if report.curve.is_some()
        && [GOODPUT, DELIVERED_OVER].iter().any(|kind| title.starts_with(kind))
    {
        return curve_points(report);
    }
    if let Some(points) = sweep::points(report, title) {
        return sweep_points(report, &points);
    }
    if let Some(names) = course::quantities_of(title) {
        return courses(report, &names);
    }
    if let Some((quantity, _)) = title.split_once(" over time: ") {
        return points(report, quantity);
    }
    if !report.published.is_empty() && title.contains("published") {
        return published(report);
    }
    cells(report)
}

/// A row per box.
fn boxes(report: &Report, of: fn(&Cell) -> Summary, unit: &str) -> String {
    let names_of = ["min", "p10", "p25", "median", "p75", "p90", "max", "limit"];
    let columns = names_of.map(|name| format!("{name}_{unit}"));
    let mut out = head(report, &columns.each_ref().map(String::as_str));
    for cell in &report.cells {
        let Summary { min, p10, p25, median, p75, p90, max } = of(cell);
        let limit = if unit == "s" && cell.fct_limit_s > 0.0 { cell.fct_limit_s } else { f64::NAN };
        let mut row = names(report, cell);
        row.extend([min, p10, p25, median, p75, p90, max, limit].map(number));
        out.push_str(&line(row));
    }
    out
}

/// A row per bar: the share of the exchanges with each number of retransmissions.
fn retransmissions(report: &Report) -> String {
    let columns = bars::CLASSES.map(|class| format!("share_{}", class.replace(' ', "_")));
    let mut out = head(report, &columns.each_ref().map(String::as_str));
    for cell in &report.cells {
        let shares = bars::shares(cell.counts("exchanges_by_retransmissions"));
        let mut row = names(report, cell);
        row.extend(shares.unwrap_or([f64::NAN; 5]).map(number));
        out.push_str(&line(row));
    }
    out
}

/// A row per point of a line over the sweep.
fn sweep_points(report: &Report, points: &[SweepPoint<'_>]) -> String {
    let mut out = head(report, &["mean", "half"]);
    for point in points {
        let mut row = names(report, point.cell);
        row.extend([point.mean, point.half].map(number));
        out.push_str(&line(row));
    }
    out
}

/// A row per step of time: the median over replications, and the 10th and 90th percentile.
fn courses(report: &Report, quantities: &[&str]) -> String {
    let mut out = head(report, &["quantity", "unit", "time_s", "median", "p10", "p90"]);
    for cell in &report.cells {
        let Some(course) = &cell.course else { continue };
        let own = course.quantities.iter().filter(|own| quantities.contains(&own.name.as_str()));
        for quantity in own {
            for (step, point) in (1..).zip(&quantity.points) {
                let mut row = names(report, cell);
                row.extend([quantity.name.clone(), quantity.unit.clone()]);
                let time = f64::from(step) * course.step_s;
                row.extend([time, point.median, point.low, point.high].map(number));
                out.push_str(&line(row));
            }
        }
    }
    out
}

/// The settings of a cell, and its control.
fn names(report: &Report, cell: &Cell) -> Vec<String> {
    let settings = report.axes.iter().map(|key| cell.setting(key).to_owned());
    settings.chain([cell.cc.clone()]).collect()
}

fn head(report: &Report, columns: &[&str]) -> String {
    let settings = report.axes.iter().map(String::as_str).chain(["cc"]);
    line(settings.chain(columns.iter().copied()).map(str::to_owned).collect())
}

/// A row per cell and point of its curve: the share of its exchanges, and within how many seconds.
fn curves(report: &Report, quantiles: fn(&Cell) -> &[f64]) -> String {
    let mut out = head(report, &["share", "seconds"]);
    for cell in &report.cells {
        let values = quantiles(cell);
        let last = values.len().saturating_sub(1).max(1) as f64;
        for (place, seconds) in values.iter().enumerate() {
            let share = cell.outcome.all.delivered * place as f64 / last;
            let mut row = names(report, cell);
            row.extend([number(share), number(*seconds)]);
            out.push_str(&line(row));
        }
    }
    out
}

/// A row per point of the curves: shares as means over replications, and half of their intervals.
fn curve_points(report: &Report) -> String {
    let columns =
        ["setting", "cc", "value", "place", "exchanges", "limit", "goodput", "goodput_half"];
    let columns = columns.into_iter().chain(["delivered", "delivered_half"]);
    let mut out = line(columns.map(str::to_owned).collect());
    for curve in over_load(report) {
        for point in &curve.points {
            let setting = curve.setting.replace('\u{a0}', " ");
            let mut row = vec![setting, curve.cc.clone(), point.value.clone()];
            let (goodput, delivered) = (point.goodput, point.delivered);
            let shares = [point.limit, goodput.mean, goodput.half, delivered.mean, delivered.half];
            row.extend([number(point.place), point.exchanges.to_string()]);
            row.extend(shares.map(number));
            out.push_str(&line(row));
        }
    }
    out
}

/// A row per point in time of the replications that are drawn.
fn points(report: &Report, quantity: &str) -> String {
    type Lists = Vec<(&'static str, fn(&Series) -> &[(f64, f64)])>;
    let lists: Lists = match quantity {
        "Queue length" => vec![
            ("to the clients (bytes)", |series| &series.queue_down),
            ("to the server (bytes)", |series| &series.queue_up),
        ],
        "Useful payload delivered" => vec![("throughput (bit/s)", |series| &series.throughput)],
        _ => vec![("timeout armed (s)", |series| &series.timeouts)],
    };
    let mut out = head(report, &["replication", "quantity", "time_s", "value"]);
    for cell in &report.cells {
        for series in &cell.series {
            for (name, list) in &lists {
                for (at, value) in list(series) {
                    let mut row = names(report, cell);
                    row.extend([series.replication.to_string(), (*name).to_owned()]);
                    row.extend([number(*at), number(*value)]);
                    out.push_str(&line(row));
                }
            }
        }
    }
    out
}

/// A row per published value.
fn published(report: &Report) -> String {
    let columns = ["source", "table", "cell", "cc", "quantity", "published", "measured"];
    let more = ["ci_low", "ci_high", "relative", "tolerance"];
    let mut out = line(columns.into_iter().chain(more).map(str::to_owned).collect());
    for one in &report.published {
        let mut row: Vec<String> =
            [&one.source, &one.table, &one.cell, &one.cc, &one.quantity].map(Clone::clone).into();
        let within = one.within.unwrap_or(f64::NAN);
        let values = [one.published, one.measured, one.ci.0, one.ci.1, one.relative, within];
        row.extend(values.map(number));
        out.push_str(&line(row));
    }
    out
}

/// A number; what does not exist is empty.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// A row per cell and replication: the settings, the control, and the figures that lines, tables and
/// the verdict are made from. The field of a value that does not exist is empty: for example, the
/// time by which 99 % were delivered if fewer were.
fn cells(report: &Report) -> String {
    let columns = OUTCOME.iter().map(|metric| metric.column);
    let mut out = head(report, &["replication"].into_iter().chain(columns).collect::<Vec<_>>());
    for cell in &report.cells {
        for (replication, run) in cell.outcome.runs.iter().enumerate() {
            let mut row = names(report, cell);
            row.push(replication.to_string());
            let values = OUTCOME.iter().map(|metric| (metric.value)(run).unwrap_or(f64::NAN));
            row.extend(values.map(number));
            out.push_str(&line(row));
        }
    }
    out
}

fn line(fields: Vec<String>) -> String {
    let quoted = fields.into_iter().map(|field| {
        let is_plain = !field.contains([',', '"', '\n', '\r']);
        if is_plain { field } else { format!("\"{}\"", field.replace('"', "\"\"")) }
    });
    format!("{}\r\n", quoted.collect::<Vec<_>>().join(","))
}
