//! Retransmissions: how many the exchanges took, and how many were unnecessary.

use super::fct::row;
use super::{Caption, PageContext, where_};
use crate::grid::FigureCells;
use crate::svg::axis::Domain;
use crate::svg::{bars, boxplot};
use crate::text::{brief, percent};
use ebbtide_sim::result::{Cell, Summary};

/// Both kinds of figures.
pub(crate) fn section(context: &mut PageContext<'_>) -> String {
    let key: String = bars::CLASSES
        .iter()
        .enumerate()
        .map(|(class, label)| format!("<span><i class=\"r{class}\"></i>{label}</span>"))
        .collect();
    let key = format!("<div class=\"key\"><span>Retransmissions:</span>{key}</div>\n");
    let classes = context.figures(|context, figure| {
        let body = format!("{key}{}", draw_bars(context, figure));
        let text = format!(
            "Exchanges by the number of retransmissions they took{}.",
            where_(&figure.label)
        );
        context.figure(&Caption { text, cells: &figure.cells() }, &body)
    });
    let unnecessary = context.figures(|context, figure| {
        let body = draw_unnecessary(context, figure);
        let text = format!(
            "Unnecessary retransmissions per client{}: transmissions of an exchange after the one \
             whose response arrived first. Boxes span 25 to 75 %, lines are medians (printed on the right), whiskers \
             end at 10 and 90 %, dots are the least and the most.",
            where_(&figure.label)
        );
        context.figure(&Caption { text, cells: &figure.cells() }, &body)
    });
    format!(
        "<section id=\"retransmissions\">\n<h2>Retransmissions</h2>\n<h3>How many the exchanges \
         took</h3>\n{classes}<h3>How many were unnecessary</h3>\n{unnecessary}\
         </section>\n"
    )
}

fn draw_bars(context: &mut PageContext<'_>, figure: &FigureCells<'_>) -> String {
    context.panels(figure, |context, panel, width| {
        let rows: Vec<bars::BarRow> = panel
            .cells
            .iter()
            .map(|cell| bars::BarRow {
                name: cell.cc.clone(),
                class: context.palette.class(&cell.cc),
                tips: !context.grid.dense,
                shares: bars::shares(cell.counts("exchanges_by_retransmissions")),
            })
            .collect();
        let first: Vec<String> = rows
            .iter()
            .filter_map(|row| row.shares.map(|s| format!("{} {}", row.name, percent(s[0], 1))))
            .collect();
        let words = context.words(
            format!("Exchanges by number of retransmissions{}", where_(&panel.label)),
            // The first bar of each row shows it; many drawings say no more.
            match context.grid.dense {
                true => String::new(),
                false => format!("Exchanges without a retransmission: {}.", first.join(", ")),
            },
        );
        bars::draw(&rows, &panel.label, width, &words)
    })
}

fn unnecessary(cell: &Cell) -> Summary {
    cell.spread("unnecessary_retransmissions")
}

fn draw_unnecessary(context: &mut PageContext<'_>, figure: &FigureCells<'_>) -> String {
    let cells = figure.cells();
    let domain = Domain::counts(
        cells.iter().map(|cell| unnecessary(cell)).flat_map(|all| [all.min, all.max]),
    );
    context.panels(figure, |context, panel, width| {
        let rows: Vec<boxplot::BoxRow> = panel
            .cells
            .iter()
            .map(|cell| row(context, cell, &unnecessary(cell), "per client"))
            .collect();
        let medians: Vec<String> = panel
            .cells
            .iter()
            .map(|cell| format!("{} {}", cell.cc, brief(unnecessary(cell).median)))
            .collect();
        let words = context.words(
            format!("Unnecessary retransmissions per client{}", where_(&panel.label)),
            format!("Medians: {}.", medians.join(", ")),
        );
        let frame = boxplot::BoxFrame {
            heading: &panel.label,
            axis: "unnecessary retransmissions (per client",
            domain,
            limit: None,
            width,
        };
        boxplot::draw(&rows, &frame, &words)
    })
}
