//! A table of the figures of a group: of the cell as a whole, or of a part of its network.

use super::{PageContext, command_line, head, row, table};
use crate::grid::varying;
use crate::text::show;
use ebbtide_sim::result::{Cell, Group};

/// Rows at most.
const MOST_ROWS: usize = 300;

/// A section with the table; empty if no cell has such figures.
pub(crate) fn section(context: &PageContext<'_>, group: &Group) -> String {
    let rows = rows(context, group);
    if rows.is_empty() {
        return String::new();
    }
    let command = command_line(&context.report.command);
    format!(
        "<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"note\">{}</p>\n{rows}{command}</section>\n",
        group.key, group.title, group.note
    )
}

/// The table by itself; empty if no cell has such figures.
pub(super) fn rows(context: &PageContext<'_>, group: &Group) -> String {
    let keys = varying(context.report);
    let cells: Vec<&Cell> = context.report.cells.iter().filter(|cell| group.is_of(cell)).collect();
    if cells.is_empty() {
        return String::new();
    }
    let columns = group.columns(|metric| metric.page, &cells);
    let body = cells.iter().take(MOST_ROWS).map(|cell| {
        let shown = columns.iter().map(|(metric, column)| show(metric.value(cell), column.format));
        row(context, &keys, cell, shown)
    });
    let head = head(&keys, columns.iter().map(|(_, column)| column.heading));
    table("packets", group.title, &head, &body.collect::<String>())
}
