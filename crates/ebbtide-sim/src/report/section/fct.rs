//! Flow completion times: box plots and distributions.

use super::{Caption, Context, where_};
use crate::report::grid::{Figure, Panel};
use crate::report::model::{Cell, Summary};
use crate::report::svg::axis::Domain;
use crate::report::svg::{boxplot, cdf};
use crate::report::text::{brief, interval};

const AXIS: &str = "flow completion time (s";

/// The box plots.
pub(crate) fn boxes(context: &mut Context<'_>) -> String {
    let figures = context.figures(|context, figure| {
        let domain = domain(figure);
        let body = context.panels(figure, |context, panel, width| {
            let words = context.words(
                format!("Flow completion time by congestion control{}", where_(&panel.label)),
                medians(panel),
            );
            let rows: Vec<boxplot::Row> =
                panel.cells.iter().map(|cell| row(context, cell, &cell.fct, "s")).collect();
            let frame = boxplot::Frame {
                heading: &panel.label,
                axis: AXIS,
                domain,
                limit: limit(panel),
                width,
            };
            boxplot::draw(&rows, &frame, &words)
        });
        let text = format!(
            "Flow completion time of the clients{}. Boxes: 25 to 75 %, line: median (printed on \
             the right), whiskers: 10 and 90 %, dots: first and last client; dashed: physical \
             limit.",
            where_(&figure.label)
        );
        context.figure(&Caption { text, cells: &figure.cells() }, &body)
    });
    format!("<section id=\"fct\">\n<h2>Flow completion time</h2>\n{figures}</section>\n")
}

/// The distributions; nothing if no cell has quantiles.
pub(crate) fn distributions(context: &mut Context<'_>) -> String {
    if context.report.cells.iter().all(|cell| cell.fct_quantiles.len() < 2) {
        return String::new();
    }
    let every = if context.grid.dense { 4 } else { 1 };
    let figures = context.figures(|context, figure| {
        let domain = domain(figure);
        let body = context.panels(figure, |context, panel, width| {
            let words = context.words(
                format!("Share of clients done over time{}", where_(&panel.label)),
                medians(panel),
            );
            let curves: Vec<cdf::Curve<'_>> = panel
                .cells
                .iter()
                .map(|cell| cdf::Curve {
                    name: cell.cc.clone(),
                    class: context.palette.class(&cell.cc),
                    quantiles: &cell.fct_quantiles,
                    tip: tip(&cell.cc, &cell.fct, "s"),
                })
                .collect();
            let frame = cdf::Frame {
                heading: &panel.label,
                axis: AXIS,
                share: "clients done (%)",
                domain,
                limit: limit(panel),
                width,
                every,
            };
            cdf::draw(&curves, &frame, &words)
        });
        let controls =
            crate::report::grid::distinct(figure.cells().iter().map(|cell| cell.cc.as_str()));
        let body = format!("{}{body}", context.legend(&controls));
        let text = format!(
            "Share of the clients that are done after so many seconds{}, over all replications.",
            where_(&figure.label)
        );
        context.figure(&Caption { text, cells: &figure.cells() }, &body)
    });
    format!("<section id=\"cdf\">\n<h2>Distribution over the clients</h2>\n{figures}</section>\n")
}

/// One row of a box plot.
pub(crate) fn row(
    context: &Context<'_>,
    cell: &Cell,
    summary: &Summary,
    unit: &str,
) -> boxplot::Row {
    boxplot::Row {
        name: cell.cc.clone(),
        class: context.palette.class(&cell.cc),
        summary: *summary,
        tip: tip(&cell.cc, summary, unit),
    }
}

fn tip(cc: &str, summary: &Summary, unit: &str) -> String {
    let Summary { min, p10, p25, median, p75, p90, max } = *summary;
    format!(
        "{cc}\nmedian {} {unit}\n25 to 75 %: {}\n10 to 90 %: {}\nall: {}",
        brief(median),
        interval((p25, p75), brief),
        interval((p10, p90), brief),
        interval((min, max), brief)
    )
}

/// The range of a figure, the same in all its panels.
fn domain(figure: &Figure<'_>) -> Domain {
    let cells = figure.cells();
    Domain::durations(cells.iter().flat_map(|cell| [cell.fct.min, cell.fct.max, cell.fct_limit_s]))
}

/// The limit of a panel, if its cells agree on one.
fn limit(panel: &Panel<'_>) -> Option<f64> {
    let first = panel.cells.first()?.fct_limit_s;
    panel.cells.iter().all(|cell| cell.fct_limit_s == first).then_some(first)
}

fn medians(panel: &Panel<'_>) -> String {
    let medians: Vec<String> = panel
        .cells
        .iter()
        .map(|cell| format!("{} {} s", cell.cc, brief(cell.fct.median)))
        .collect();
    format!("Medians: {}.", medians.join(", "))
}
