//! Low-power networks: how timeouts and round trips are spread, and when requests were completed.

use super::{Caption, PageContext, fct, where_};
use crate::grid::{Panel, distinct};
use crate::svg::axis::Domain;
use crate::svg::{boxplot, cdf};
use crate::text::brief;
use ebbtide_sim::result::Cell;

/// A quantity that is spread: its name, the figure, its axis up to the unit's bracket.
type Spread = (&'static str, &'static str, &'static str);

const SPREADS: [Spread; 3] = [
    ("First timeout of an exchange", "mesh.first_timeout", "first timeout (s"),
    ("Round trip of exchanges without retransmission", "mesh.strong_rtt", "round trip (s"),
    (
        "Round trip of exchanges with retransmissions, since the original",
        "mesh.weak_rtt",
        "round trip since the original (s",
    ),
];

/// The box plots.
pub(crate) fn boxes(context: &mut PageContext<'_>) -> String {
    let figures: String = SPREADS.iter().map(|spread| boxes_of(context, spread)).collect();
    format!("<section id=\"spread\">\n<h2>Timeouts and round trips</h2>\n{figures}</section>\n")
}

fn boxes_of(context: &mut PageContext<'_>, (name, of, axis): &Spread) -> String {
    let figures = context.figures(|context, figure| {
        let values = figure.cells().into_iter().map(|cell| cell.spread(of));
        let domain = Domain::durations(values.flat_map(|summary| [summary.min, summary.max]));
        let body = context.panels(figure, |context, panel, width| {
            let words = context.words(
                format!("{name} by congestion control{}", where_(&panel.label)),
                medians(panel, |cell| cell.number(of)),
            );
            let row = |cell: &&Cell| fct::row(context, cell, &cell.spread(of), "s");
            let rows: Vec<boxplot::BoxRow> = panel.cells.iter().map(row).collect();
            let heading = &panel.label;
            let frame = boxplot::BoxFrame { heading, axis, domain, limit: None, width };
            boxplot::draw(&rows, &frame, &words)
        });
        let text = format!(
            "{name}{}. Boxes span 25 to 75 %, lines are medians (printed on the right), whiskers end at 10 \
             and 90 %, dots are the smallest and the largest.",
            where_(&figure.label)
        );
        context.figure(&Caption { text, cells: &figure.cells() }, &body)
    });
    format!("<h3>{name}</h3>\n{figures}")
}

fn completed_by(cell: &Cell) -> &[f64] {
    cell.quantiles("mesh.completed_by_s")
}

/// Completed requests over time; nothing for workloads that end when they are done.
pub(crate) fn completions(context: &mut PageContext<'_>) -> String {
    let has_any = |cell: &&Cell| completed_by(cell).len() > 1;
    if !context.report.cells.iter().any(|cell| has_any(&cell)) {
        return String::new();
    }
    let figures = context.figures(|context, figure| {
        let drawn: Vec<&Cell> = figure.cells().into_iter().filter(has_any).collect();
        if drawn.is_empty() {
            return String::new();
        }
        let last = drawn.iter().filter_map(|cell| completed_by(cell).last().copied());
        let domain = Domain::linear(0.0, last.fold(0.0, f64::max));
        let body = context.panels(figure, |context, panel, width| {
            let half = |cell: &Cell| completed_by(cell).get(50).copied().unwrap_or(f64::NAN);
            let words = context.words(
                format!("Completed requests over time{}", where_(&panel.label)),
                medians(panel, half),
            );
            let curves: Vec<cdf::Curve<'_>> = panel
                .cells
                .iter()
                .map(|cell| cdf::Curve {
                    name: cell.cc.clone(),
                    class: context.palette.class(&cell.cc),
                    quantiles: completed_by(cell),
                    top: 100.0,
                    tip: format!("{}\nhalf by {} s", cell.cc, brief(half(cell))),
                })
                .collect();
            let frame = cdf::CdfFrame {
                heading: &panel.label,
                axis: "time (s",
                share: "requests completed (%)",
                domain,
                limit: None,
                width,
                every: 1,
            };
            cdf::draw(&curves, &frame, &words)
        });
        let controls = distinct(drawn.iter().map(|cell| cell.cc.as_str()));
        let body = format!("{}{body}", context.legend(&controls));
        let text = format!(
            "Share of a control's completed requests that are completed after so many \
             seconds{}, over all replications.",
            where_(&figure.label)
        );
        context.figure(&Caption { text, cells: &drawn }, &body)
    });
    format!("<section id=\"completions\">\n<h2>Completed over time</h2>\n{figures}</section>\n")
}

fn medians(panel: &Panel<'_>, of: impl Fn(&Cell) -> f64) -> String {
    let each = panel.cells.iter().map(|cell| format!("{} {} s", cell.cc, brief(of(cell))));
    format!("Medians: {}.", each.collect::<Vec<_>>().join(", "))
}
