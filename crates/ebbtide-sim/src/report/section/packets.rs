//! What became of the packets, and how well the link was used.

use super::{Context, command_line, table};
use crate::report::grid::varying;
use crate::report::model::{Cell, PacketCounts};
use crate::report::text::{bit_rate, brief, count, escape, fixed, percent};

/// Rows at most.
const MOST_ROWS: usize = 500;

/// The table.
pub(crate) fn section(context: &Context<'_>) -> String {
    let keys = varying(context.report);
    let settings: String = keys
        .iter()
        .map(|key| format!("<th rowspan=\"2\" scope=\"col\">{}</th>", escape(key)))
        .collect();
    let head = format!(
        "<tr>{settings}<th rowspan=\"2\" scope=\"col\">control</th>\
         <th colspan=\"5\" scope=\"colgroup\" class=\"group\">to the server</th>\
         <th colspan=\"5\" scope=\"colgroup\" class=\"group\">to the clients</th>\
         <th rowspan=\"2\" scope=\"col\">goodput</th><th rowspan=\"2\" scope=\"col\">fairness</th>\
         <th rowspan=\"2\" scope=\"col\">median RTT</th>\
         <th rowspan=\"2\" scope=\"col\">timeouts expired</th>\
         <th rowspan=\"2\" scope=\"col\">failed</th></tr>\n<tr>{0}{0}</tr>",
        "<th scope=\"col\">sent</th><th scope=\"col\">delivered</th>\
         <th scope=\"col\">dropped</th><th scope=\"col\">lost</th><th scope=\"col\">link used</th>"
    );
    let cells = &context.report.cells;
    let body: String = cells.iter().take(MOST_ROWS).map(|cell| row(context, cell, &keys)).collect();
    let rest = match cells.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} further rows are left out.</p>\n"),
    };
    format!(
        "<section id=\"packets\">\n<h2>Packets and link</h2>\n\
         <p>Packets summed over replications. Dropped: the queue was full. Lost: on the link, \
         after the queue. What is missing was under way when the run ended. Goodput: useful \
         payload delivered to all clients together. Fairness: Jain’s index over the clients, 1 is \
         equal. Timeouts expired: median client.</p>\n{}{rest}{}</section>\n",
        table("packets", "Packets and link", &head, &body),
        command_line(&context.report.command),
    )
}

fn row(context: &Context<'_>, cell: &Cell, keys: &[&str]) -> String {
    let settings: String =
        keys.iter().map(|key| format!("<td>{}</td>", escape(cell.setting(key)))).collect();
    format!(
        "<tr>{settings}<th scope=\"row\">{}</th>{}{}<td>{}</td><td>{}</td><td>{}\u{a0}s</td>\
         <td>{}</td><td>{}</td></tr>\n",
        context.name(&cell.cc),
        direction(&cell.packets.up, cell.utilisation_up),
        direction(&cell.packets.down, cell.utilisation_down),
        bit_rate(cell.goodput_bps),
        fixed(cell.jain, 3),
        brief(cell.rtt.median),
        brief(cell.timeouts.median),
        count(cell.failed),
    )
}

fn direction(counts: &PacketCounts, utilisation: f64) -> String {
    format!(
        "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
        count(counts.sent),
        count(counts.delivered),
        count(counts.dropped_queue),
        count(counts.lost_link),
        percent(utilisation, 1)
    )
}
