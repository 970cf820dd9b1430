//! Published figures beside the measured ones.

use super::{Caption, PageContext, table};
use crate::grid::distinct;
use crate::svg::{PANEL, WIDE, dots};
use crate::text::{enumerate, escape, interval, percent, precise, signed_percent};
use ebbtide_sim::result::{Comparison, Report};

/// The notes on the comparison, a paragraph each.
pub(crate) fn notes(report: &Report) -> String {
    let notes = report.notes.iter();
    notes.map(|note| format!("<p class=\"note\">{}</p>\n", escape(note))).collect()
}

/// Values outside their tolerance that are named in the text at most.
const MOST_NAMED: usize = 6;

/// Rows at most.
const MOST_ROWS: usize = 600;

/// The comparison; nothing if nothing is published.
pub(crate) fn section(context: &mut PageContext<'_>) -> String {
    let published = &context.report.published;
    if published.is_empty() {
        return String::new();
    }
    let promised = published.iter().filter(|one| one.within.is_some()).count();
    let outside = published.iter().filter(|one| one.is_outside()).count();
    let summary = match (promised, outside) {
        (0, _) => format!("{} values compared; no tolerance was promised.", published.len()),
        (_, 0) => format!("All {promised} values with a tolerance are within it."),
        _ => format!(
            "{outside} of {promised} values with a tolerance are outside it{}",
            named(published, outside)
        ),
    };
    let drawings = [("wide", WIDE), ("narrow", PANEL)].map(|(class, width)| {
        let drawing = draw(context, width, &summary);
        format!("<div class=\"{class}\">{drawing}</div>\n")
    });
    let text = "Relative difference between measured and published values, one dot each; \
                percentages: difference in points; lines: 95 % confidence intervals; ringed dots: outside \
                the tolerance. The band is the tolerance where all values share one.";
    let figure = context.figure(&Caption { text: text.to_owned(), cells: &[] }, &drawings.concat());
    let head = "<tr><th scope=\"col\">control</th><th scope=\"col\" class=\"n\">difference</th>\
                <th scope=\"col\" class=\"n\">published</th><th scope=\"col\" class=\"n\">measured</th>\
                <th scope=\"col\" class=\"n\">95 % CI</th><th scope=\"col\" class=\"n\">tolerance</th>\
                <th scope=\"col\">quantity</th><th scope=\"col\">cell</th>\
                <th scope=\"col\">source</th><th scope=\"col\">remark</th></tr>";
    let body: String = published.iter().take(MOST_ROWS).map(|one| row(context, one)).collect();
    let rest = match published.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} further rows are left out.</p>\n"),
    };
    format!(
        "<section id=\"published\">\n<h2>Published and measured</h2>\n<p>{}</p>\n{figure}\
         {}{rest}{}</section>\n",
        escape(&summary),
        table("published", "Published and measured", head, &body),
        notes(context.report)
    )
}

/// Those that are outside, in plain text, if they are few; ends the sentence.
fn named(published: &[Comparison], outside: usize) -> String {
    if outside > MOST_NAMED {
        return ".".to_owned();
    }
    let each: Vec<String> = published
        .iter()
        .filter(|one| one.is_outside())
        .map(|one| format!("{} at {} ({})", one.cc, one.cell, signed_percent(one.relative, 2)))
        .collect();
    format!(": {}.", enumerate(&each))
}

fn draw(context: &mut PageContext<'_>, width: f64, summary: &str) -> String {
    let published = &context.report.published;
    let controls = distinct(published.iter().map(|one| one.cc.as_str()));
    let rows: Vec<dots::DotRow> = controls
        .iter()
        .map(|cc| dots::DotRow {
            name: (*cc).to_owned(),
            class: context.palette.class(cc),
            dots: published.iter().filter(|one| one.cc == *cc).map(dot).collect(),
        })
        .collect();
    let first = published.first().and_then(|one| one.within);
    let band = first.filter(|_| published.iter().all(|one| one.within == first));
    let title = "Relative difference between measured and published values".to_owned();
    let words = context.words(title, summary.to_owned());
    dots::draw(&rows, band, width, &words)
}

fn dot(one: &Comparison) -> dots::Dot {
    let scale = if one.is_percentage { 100.0 } else { one.published };
    let relative = |value: f64| (value - one.published) / scale;
    dots::Dot {
        relative: one.relative,
        ci: (relative(one.ci.0), relative(one.ci.1)),
        outside: one.is_outside(),
        tip: format!(
            "{} {}\n{}: {}, {}\npublished {}, measured {} ({})",
            one.source,
            one.table,
            one.cc,
            one.cell,
            one.quantity,
            precise(one.published),
            precise(one.measured),
            signed_percent(one.relative, 2)
        ),
    }
}

fn row(context: &PageContext<'_>, one: &Comparison) -> String {
    let relative = signed_percent(one.relative, 2);
    let relative = if one.is_outside() {
        format!("<span class=\"flag\" data-tip=\"outside the tolerance\">{relative}</span>")
    } else {
        relative
    };
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{relative}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td>\
         <td>{} {}</td><td class=\"why\">{}</td></tr>\n",
        context.name(&one.cc),
        precise(one.published),
        precise(one.measured),
        interval(one.ci, precise),
        one.within.map_or_else(|| "none".to_owned(), |within| format!("±{}", percent(within, 1))),
        escape(&one.quantity),
        escape(&one.cell),
        escape(&one.source),
        escape(&one.table),
        escape(&one.note),
    )
}
