//! Published figures beside the measured ones.

use super::{Caption, Context, table};
use crate::report::grid::distinct;
use crate::report::model::Comparison;
use crate::report::svg::{PANEL, WIDE, dots};
use crate::report::text::{escape, interval, percent, precise, signed_percent};

/// Rows at most.
const MOST_ROWS: usize = 600;

/// The comparison; nothing if nothing is published.
pub(crate) fn section(context: &mut Context<'_>) -> String {
    let published = &context.report.published;
    if published.is_empty() {
        return String::new();
    }
    let promised = published.iter().filter(|one| one.within.is_some()).count();
    let outside = published.iter().filter(|one| one.is_outside()).count();
    let summary = match (promised, outside) {
        (0, _) => format!("{} values compared; no tolerance was promised.", published.len()),
        (_, 0) => format!("All {promised} values with a tolerance are within it."),
        _ => format!("{outside} of {promised} values with a tolerance are outside it."),
    };
    let drawings = [("wide", WIDE), ("narrow", PANEL)].map(|(class, width)| {
        let drawing = draw(context, width, &summary);
        format!("<div class=\"{class}\">{drawing}</div>\n")
    });
    let text = "Relative difference between measured and published values, one dot each; lines: \
                95 % confidence intervals; ringed dots: outside \
                the tolerance. The band is the tolerance where all values share one.";
    let figure = context.figure(&Caption { text: text.to_owned(), cells: &[] }, &drawings.concat());
    let head = "<tr><th scope=\"col\">source</th><th scope=\"col\">cell</th>\
                <th scope=\"col\">control</th><th scope=\"col\">quantity</th>\
                <th scope=\"col\">published</th><th scope=\"col\">measured</th>\
                <th scope=\"col\">95 % CI</th><th scope=\"col\">difference</th>\
                <th scope=\"col\">tolerance</th><th scope=\"col\">remark</th></tr>";
    let body: String = published.iter().take(MOST_ROWS).map(|one| row(context, one)).collect();
    let rest = match published.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} further rows are left out.</p>\n"),
    };
    format!(
        "<section id=\"published\">\n<h2>Published and measured</h2>\n<p>{summary}</p>\n{figure}\
         {}{rest}</section>\n",
        table("published", "Published and measured", head, &body)
    )
}

fn draw(context: &mut Context<'_>, width: f64, summary: &str) -> String {
    let published = &context.report.published;
    let controls = distinct(published.iter().map(|one| one.cc.as_str()));
    let rows: Vec<dots::Row> = controls
        .iter()
        .map(|cc| dots::Row {
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
    let relative = |value: f64| (value - one.published) / one.published;
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

fn row(context: &Context<'_>, one: &Comparison) -> String {
    let flag = if one.is_outside() { "<span class=\"flag\">outside</span> " } else { "" };
    let class = if one.is_outside() { " class=\"missed\"" } else { "" };
    format!(
        "<tr{class}><td>{} {}</td><td>{}</td><th scope=\"row\">{}</th><td>{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td>{flag}{}</td></tr>\n",
        escape(&one.source),
        escape(&one.table),
        escape(&one.cell),
        context.name(&one.cc),
        escape(&one.quantity),
        precise(one.published),
        precise(one.measured),
        interval(one.ci, precise),
        signed_percent(one.relative, 2),
        one.within.map_or_else(|| "none".to_owned(), |within| format!("±{}", percent(within, 1))),
        escape(&one.note),
    )
}
