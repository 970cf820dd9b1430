//! Flow completion times: box plots and distributions.

use super::{Caption, PageContext, where_};
use crate::grid::{FigureCells, Panel};
use crate::svg::axis::Domain;
use crate::svg::boxplot;
use crate::text::{brief, interval};
use ebbtide_sim::result::Cell;
use ebbtide_sim::stats::Summary;

/// Names for the times: those of flows, or of single exchanges if clients send at fixed times.
struct Names {
    title: &'static str,
    axis: &'static str,
    of: &'static str,
    ends: &'static str,
}

const FLOWS: Names = Names {
    title: "Flow completion time",
    axis: "flow completion time (s",
    of: "of the clients, from the first request to the end of the last exchange, answered or given up",
    ends: "dots are the first and the last client, the dashed line is the physical limit",
};

const EXCHANGES: Names = Names {
    title: "Exchange time",
    axis: "exchange time (s",
    of: "of the answered exchanges, from the request to its first response",
    ends: "dots are the fastest and the slowest exchange",
};

/// The box plots.
pub(crate) fn boxes(context: &mut PageContext<'_>) -> String {
    let names = if context.report.is_periodic { EXCHANGES } else { FLOWS };
    let figures = context.figures(|context, figure| {
        let domain = domain(figure);
        let body = context.panels(figure, |context, panel, width| {
            let words = context.words(
                format!("{} by congestion control{}", names.title, where_(&panel.label)),
                medians(panel),
            );
            let rows: Vec<boxplot::BoxRow> = panel
                .cells
                .iter()
                .flat_map(|cell| times(cell))
                .map(|(name, cell, times)| boxplot::BoxRow { name, ..row(context, cell, &times, "s") })
                .collect();
            let frame = boxplot::BoxFrame {
                heading: &panel.label,
                axis: names.axis,
                domain,
                limit: limit(panel),
                width,
            };
            boxplot::draw(&rows, &frame, &words)
        });
        let text = format!(
            "{} {}{}. Boxes span 25 to 75 %, lines are medians (printed on the right), whiskers end at 10 \
             and 90 %, {}.",
            names.title,
            names.of,
            where_(&figure.label),
            names.ends
        );
        context.figure(&Caption { text, cells: &figure.cells() }, &body)
    });
    format!("<section id=\"fct\">\n<h2>{}</h2>\n{figures}</section>\n", names.title)
}

/// The rows of a cell: one, or one for each class if some classes keep time and others do not. Their times, of
/// single exchanges, have little to do with each other.
fn times(cell: &Cell) -> Vec<(String, &Cell, Summary)> {
    if !is_mixed(cell) {
        return vec![(cell.cc.clone(), cell, cell.fct)];
    }
    let name = |class: &Cell| format!("{}, {}", cell.cc, class.class);
    let time = |class: &Cell| class.spread("exchange_duration_s");
    cell.classes.iter().map(|class| (name(class), cell, time(class))).collect()
}

/// Whether some of the classes keep time and others do not.
fn is_mixed(cell: &Cell) -> bool {
    let keeps_time = |class: &Cell| class.is_periodic;
    cell.classes.iter().any(keeps_time) && !cell.classes.iter().all(keeps_time)
}

/// One row of a box plot.
pub(crate) fn row(
    context: &PageContext<'_>,
    cell: &Cell,
    summary: &Summary,
    unit: &str,
) -> boxplot::BoxRow {
    boxplot::BoxRow {
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
fn domain(figure: &FigureCells<'_>) -> Domain {
    let cells = figure.cells();
    let ends = |cell| times(cell).into_iter().flat_map(|(_, _, own)| [own.min, own.max]);
    let limits = cells.iter().map(|cell| cell.fct_limit_s);
    Domain::durations(cells.iter().flat_map(|cell| ends(cell)).chain(limits))
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
        .flat_map(|cell| times(cell))
        .map(|(name, _, times)| format!("{name} {} s", brief(times.median)))
        .collect();
    format!("Medians: {}.", medians.join(", "))
}
