//! Tables of packet outcomes, link utilisation and fairness.

use super::{PageContext, command_line, group, row, table};
use crate::grid::varying;
use crate::text::{count, escape};
use ebbtide_sim::result::metrics::CELL;
use ebbtide_sim::result::{Cell, PacketCounts};

/// Rows at most.
const MOST_ROWS: usize = 300;

/// The tables.
pub(crate) fn section(context: &PageContext<'_>) -> String {
    let keys = varying(context.report);
    let cells = &context.report.cells;
    let rows = cells.iter().take(MOST_ROWS);
    let rows: String = rows.map(|cell| row(context, &keys, cell, packets_row(cell))).collect();
    let rest = match cells.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} further rows are left out.</p>\n"),
    };
    let command = command_line(&context.report.command);
    let packets = table("packets", "Packets", &packets_head(&keys), &rows);
    let link = group::rows(context, &CELL);
    let (packets, link) = if context.grid.dense {
        let fold = |name, body| format!("<details><summary>{name}</summary>\n{body}</details>\n");
        (fold("Packets", packets), fold("Link and fairness", link))
    } else {
        (packets, link)
    };
    format!(
        "<section id=\"packets\">\n<h2>Packets and link</h2>\n\
         <p class=\"note\">Packets are summed over replications. Dropped: the queue was full. \
         Lost: on the link, after the queue. What is missing was under way when the run ended.</p>\n\
         {packets}\
         <p class=\"note\">{}</p>\n\
         {link}{rest}{command}</section>\n",
        CELL.note
    )
}

fn setting_heads(keys: &[&str]) -> String {
    let head = |key: &&str| format!("<th rowspan=\"2\" scope=\"col\">{}</th>", escape(key));
    keys.iter().map(head).collect()
}

fn packets_head(keys: &[&str]) -> String {
    format!(
        "<tr>{}<th rowspan=\"2\" scope=\"col\" class=\"t\">control</th>\
         <th colspan=\"4\" scope=\"colgroup\" class=\"group\">to the server</th>\
         <th colspan=\"4\" scope=\"colgroup\" class=\"group\">to the clients</th></tr>\n\
         <tr>{1}{1}</tr>",
        setting_heads(keys),
        "<th scope=\"col\">sent</th><th scope=\"col\">delivered</th>\
         <th scope=\"col\">dropped</th><th scope=\"col\">lost</th>",
    )
}

fn packets_row(cell: &Cell) -> Vec<String> {
    let direction = |counts: &PacketCounts| {
        let marked = match counts.marked {
            0 => String::new(),
            marked => format!(" + {} marked", count(marked)),
        };
        [counts.sent, counts.delivered, counts.dropped_queue, counts.lost_link]
            .map(count)
            .into_iter()
            .zip(["", "", &marked, ""])
            .map(|(packets, more)| format!("{packets}{more}"))
            .collect::<Vec<String>>()
    };
    [direction(&cell.packets.up), direction(&cell.packets.down)].concat()
}
