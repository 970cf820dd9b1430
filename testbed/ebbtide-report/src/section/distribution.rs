//! Distributions: when exchanges were delivered, and how long single exchanges took.

use super::{Caption, PageContext, where_};
use crate::grid::{FigureCells, Panel, distinct};
use crate::svg::axis::Domain;
use crate::svg::cdf;
use crate::text::{brief, percent};
use ebbtide_sim::result::Cell;

/// One kind of distribution.
pub(crate) struct DistributionKind {
    heading: &'static str,
    pub(crate) title: &'static str,
    axis: &'static str,
    caption: &'static str,
    pub(crate) quantiles: fn(&Cell) -> &[f64],
    has_limit: bool,
}

pub(crate) const DELIVERED: DistributionKind = DistributionKind {
    heading: "Delivery over time",
    title: "Share of the exchanges delivered over time",
    axis: "since the first request (s",
    caption: "Share of the exchanges asked for that are answered so many seconds after the client’s \
              first request. A curve ends at the share that is ever delivered; dashed: physical limit.",
    quantiles: |cell| &cell.delivered_quantiles,
    has_limit: true,
};

pub(crate) const EXCHANGES: DistributionKind = DistributionKind {
    heading: "How long exchanges take",
    title: "Share of the exchanges answered within a time",
    axis: "exchange time (s",
    caption: "Share of the exchanges asked for that are answered so many seconds after their own \
              request. A curve ends at the share that is answered at all.",
    quantiles: |cell| &cell.duration_quantiles,
    has_limit: false,
};

/// The distributions; nothing if no cell has one.
pub(crate) fn section(context: &mut PageContext<'_>) -> String {
    // By the clock everything is due at its own request: the two are one.
    let kinds: &[DistributionKind] =
        if context.report.is_periodic { &[EXCHANGES] } else { &[DELIVERED, EXCHANGES] };
    let parts: String = kinds.iter().map(|kind| part(context, kind)).collect();
    if parts.is_empty() {
        return parts;
    }
    format!("<section id=\"cdf\">\n<h2>Distributions</h2>\n{parts}</section>\n")
}

fn part(context: &mut PageContext<'_>, kind: &DistributionKind) -> String {
    if context.report.cells.iter().all(|cell| (kind.quantiles)(cell).len() < 2) {
        return String::new();
    }
    let every = if context.grid.dense { 10 } else { 1 };
    let figures = context.figures(|context, figure| {
        let cells = figure.cells();
        let ends = cells.iter().flat_map(|cell| {
            let quantiles = (kind.quantiles)(cell);
            let limit = if kind.has_limit { cell.fct_limit_s } else { f64::NAN };
            // From the first percent on: a lucky first one would stretch the axis.
            let low = quantiles.get(1).copied().unwrap_or(f64::NAN);
            [low, quantiles.last().copied().unwrap_or(f64::NAN), limit]
        });
        let domain = Domain::durations(ends);
        let body = context.panels(figure, |context, panel, width| {
            draw(context, kind, panel, domain, width, every)
        });
        let names = distinct(cells.iter().map(|cell| cell.cc.as_str()));
        let body = format!("{}{body}", context.legend(&names));
        let text = format!("{}{}", kind.caption, sentence(figure));
        context.figure(&Caption { text, cells: &cells }, &body)
    });
    format!("<h3>{}</h3>\n{figures}", kind.heading)
}

fn sentence(figure: &FigureCells<'_>) -> String {
    if figure.label.is_empty() { String::new() } else { format!(" Settings: {}.", figure.label) }
}

fn draw(
    context: &mut PageContext<'_>,
    kind: &DistributionKind,
    panel: &Panel<'_>,
    domain: Domain,
    width: f64,
    every: usize,
) -> String {
    let said: Vec<String> = panel
        .cells
        .iter()
        .map(|cell| {
            let delivered = percent(cell.outcome.all.delivered, 1);
            let last = (kind.quantiles)(cell).last().copied().unwrap_or(f64::NAN);
            format!("{} {delivered} within {} s", cell.cc, brief(last))
        })
        .collect();
    let title = format!("{}{}", kind.title, where_(&panel.label));
    let words = context.words(title, format!("{}.", said.join(", ")));
    let curves: Vec<cdf::Curve<'_>> = panel
        .cells
        .iter()
        .zip(said)
        .map(|(cell, tip)| cdf::Curve {
            name: cell.cc.clone(),
            class: context.palette.class(&cell.cc),
            quantiles: (kind.quantiles)(cell),
            top: 100.0 * cell.outcome.all.delivered,
            tip,
        })
        .collect();
    let limit = panel.cells.first().map(|cell| cell.fct_limit_s).filter(|limit| {
        kind.has_limit && panel.cells.iter().all(|cell| cell.fct_limit_s == *limit)
    });
    let frame = cdf::CdfFrame {
        heading: &panel.label,
        axis: kind.axis,
        share: "exchanges asked for (%)",
        domain,
        limit,
        width,
        every,
    };
    cdf::draw(&curves, &frame, &words)
}
