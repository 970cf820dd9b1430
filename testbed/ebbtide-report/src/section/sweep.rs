//! The figure of a sweep: what is measured over a swept setting, a line per control, with confidence
//! bands. Which setting and which figure can be chosen.

use super::{Caption, PageContext};
use crate::grid::{controls, distinct, varying, words};
use crate::svg::axis::Domain;
use crate::svg::{PANEL, WIDE, lines};
use crate::text::{brief, escape};
use ebbtide_sim::judge::RunFigures;
use ebbtide_sim::result::{Cell, Report};
use ebbtide_sim::stats::mean_and_half_width;

/// Panels of one figure at most: other settings are in the tables.
const MOST_PANELS: usize = 6;

/// From this share delivered on, a share delivered says little.
const NEARLY_ALL: f64 = 0.999;

/// A point of a figure over the sweep.
pub(crate) struct SweepPoint<'a> {
    pub(crate) cell: &'a Cell,
    /// The mean over replications.
    pub(crate) mean: f64,
    /// Half of its 95 % confidence interval.
    pub(crate) half: f64,
}

/// The measures that a large report draws.
const DENSE: usize = 3;

/// A figure over the sweep.
struct Measure {
    /// Its name in the page and for `export`.
    name: &'static str,
    /// In words, for the choice.
    words: &'static str,
    /// The title of its axis.
    axis: &'static str,
    of: fn(&RunFigures, usize) -> Option<f64>,
}

const MEASURES: [Measure; 5] = [
    Measure {
        name: "delivered",
        words: "share delivered",
        axis: "delivered (% of the exchanges)",
        of: |run, _| Some(100.0 * run.delivered),
    },
    Measure {
        name: "by",
        words: "time by which the share named is delivered",
        axis: "delivered by (s",
        of: |run, place| run.delivered_by_s[place],
    },
    Measure {
        name: "sent",
        words: "transmissions per delivered",
        axis: "transmissions per delivered exchange",
        of: |run, _| Some(run.transmissions_per_delivered),
    },
    Measure {
        name: "waste",
        words: "share unnecessary",
        axis: "unnecessary (% of the transmissions)",
        of: |run, _| Some(100.0 * run.unnecessary_share),
    },
    Measure {
        name: "goodput",
        words: "goodput",
        axis: "goodput (% of the capacity)",
        of: |run, _| Some(100.0 * run.goodput_share),
    },
];

/// The section; nothing if nothing was swept.
pub(crate) fn section(context: &mut PageContext<'_>) -> String {
    let report = context.report;
    let keys: Vec<&str> = varying(report);
    if keys.is_empty() {
        return String::new();
    }
    let mut parts = String::new();
    let mut count = 0;
    for key in &keys {
        let mut own = String::new();
        for measure in measures(context) {
            // The first one takes a number, the others share it.
            context.alternative = (count > 0).then(|| count.to_string());
            count += 1;
            let figure = figure(context, key, &keys, measure);
            own.push_str(&format!(
                "<div data-choice=\"sweep-figure\" data-value=\"{}\">{figure}</div>\n",
                measure.name
            ));
        }
        parts.push_str(&format!(
            "<div data-choice=\"sweep-axis\" data-value=\"{}\">{own}</div>\n",
            escape(key)
        ));
    }
    context.alternative = None;
    let option = |value: &str, words: &str| {
        let (value, words) = (escape(value), escape(words));
        format!("<option value=\"{value}\">{words}</option>")
    };
    let axes: String = keys.iter().map(|key| option(key, key)).collect();
    let measures: String =
        measures(context).iter().map(|measure| option(measure.name, measure.words)).collect();
    let legend = context.legend(&controls(report));
    format!(
        "<section id=\"sweep\">\n<h2>Over the sweep</h2>\n<div class=\"key\">\
         <label>Show <select id=\"sweep-figure\">{measures}</select></label>\
         <label>over <select id=\"sweep-axis\">{axes}</select></label></div>\n{legend}{parts}</section>\n"
    )
}

/// The settings that are drawn: a part of it where there are many cells, to keep the file small.
fn measures(context: &PageContext<'_>) -> Vec<&'static Measure> {
    let all = if context.grid.dense { &MEASURES[..DENSE] } else { &MEASURES };
    let mut measures: Vec<&Measure> = all.iter().collect();
    // What is the same everywhere is not shown first.
    let cells = &context.report.cells;
    if cells.iter().all(|cell| cell.outcome.all.delivered >= NEARLY_ALL) {
        measures.swap(0, 1);
    }
    measures
}

/// The figure of a sweep that a title names: its points.
pub(crate) fn points<'a>(report: &'a Report, title: &str) -> Option<Vec<SweepPoint<'a>>> {
    let is_of = |measure: &&Measure| title.starts_with(&format!("{} over ", measure.words));
    let measure = MEASURES.iter().find(is_of)?;
    let point = |cell: &'a Cell| {
        let (mean, half) = point(report, measure, cell)?;
        Some(SweepPoint { cell, mean, half })
    };
    Some(report.cells.iter().filter_map(point).collect())
}

/// The mean of a measure over the replications of a cell, and half of its confidence interval; `None` if a replication
/// has no value.
fn point(report: &Report, measure: &Measure, cell: &Cell) -> Option<(f64, f64)> {
    let place = report.percentile.place();
    let runs = cell.outcome.runs.iter();
    let values = runs.map(|run| (measure.of)(run, place)).collect::<Option<Vec<f64>>>()?;
    let (mean, half) = mean_and_half_width(&values);
    mean.is_finite().then_some((mean, half))
}

fn figure(context: &mut PageContext<'_>, key: &str, keys: &[&str], measure: &Measure) -> String {
    let report = context.report;
    let others: Vec<&str> = keys.iter().copied().filter(|other| *other != key).collect();
    let values: Vec<String> =
        distinct(report.cells.iter().map(|cell| cell.setting(key).to_owned()));
    let labels = distinct(report.cells.iter().map(|cell| words(cell, &others)));
    let point = |cell: &Cell| point(report, measure, cell);
    let all = || report.cells.iter().filter_map(point);
    let ends = || all().flat_map(|(mean, half)| [mean - half, mean + half]);
    let domain = match measure.name {
        "by" => Domain::durations(ends()),
        "sent" => Domain::linear(0.0, ends().fold(1.0, f64::max)),
        _ => Domain::linear(0.0, 100.0),
    };
    let axis = if measure.name == "by" {
        format!("{} of the exchanges {})", report.percentile, measure.axis)
    } else {
        measure.axis.to_owned()
    };
    let most = if context.grid.dense { MOST_PANELS / 2 } else { MOST_PANELS };
    let shown: Vec<String> = labels.iter().take(most).cloned().collect();
    let mut draw = |label: &str, width: f64| {
        let own: Vec<&Cell> =
            report.cells.iter().filter(|cell| words(cell, &others) == label).collect();
        let lines: Vec<lines::Line> = controls(report)
            .into_iter()
            .map(|cc| {
                let of = |value: &String| {
                    own.iter().copied().find(|cell| cell.cc == cc && cell.setting(key) == value)
                };
                let points: Vec<Option<(f64, f64)>> =
                    values.iter().map(|value| of(value).and_then(point)).collect();
                let tip = values.iter().zip(&points).map(|(value, point)| match point {
                    Some((mean, half)) => format!("\n{value}: {} ± {}", brief(*mean), brief(*half)),
                    None => format!("\n{value}: never"),
                });
                let tip = format!("{cc}{}", tip.collect::<String>());
                lines::Line { name: cc.to_owned(), class: context.palette.class(cc), points, tip }
            })
            .collect();
        let title = format!("{} over {key}{}", measure.words, super::where_(label));
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        let words = context.words(title, format!("A line each for {}.", names.join(", ")));
        let frame = lines::LineFrame {
            heading: label,
            across: key,
            values: &values,
            axis: &axis,
            domain,
            width,
        };
        lines::draw(&lines, &frame, &words)
    };
    let body = match shown.as_slice() {
        [only] => format!(
            "<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n",
            draw(only, WIDE),
            draw(only, PANEL)
        ),
        many => {
            let all: String = many.iter().map(|label| draw(label, PANEL)).collect();
            format!("<div class=\"panels\">\n{all}</div>\n")
        }
    };
    let rest = match labels.len().saturating_sub(most) {
        0 => String::new(),
        rest => format!(" {rest} further settings are in the tables."),
    };
    let text = format!(
        "{} over {key}: means over replications, and the 95 % confidence intervals as bands. A line \
         ends where the value is never reached.{rest}",
        capital(measure.words)
    );
    context.figure(&Caption { text, cells: &[] }, &body)
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
