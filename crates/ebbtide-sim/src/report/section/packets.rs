//! Tables of packet outcomes, link utilisation and fairness.

use super::{Context, command_line, table};
use crate::report::grid::varying;
use crate::report::model::{Cell, PacketCounts};
use crate::report::text::{bit_rate, brief, count, escape, fixed, percent};

/// Rows at most.
const MOST_ROWS: usize = 300;

/// The tables.
pub(crate) fn section(context: &Context<'_>) -> String {
    let keys = varying(context.report);
    let cells = &context.report.cells;
    let rows = |row: fn(&Cell) -> String| -> String {
        let rows = cells.iter().take(MOST_ROWS);
        rows.map(|cell| {
            let settings: String =
                keys.iter().map(|key| format!("<td>{}</td>", escape(cell.setting(key)))).collect();
            let name = context.name(&cell.cc);
            format!("<tr>{settings}<th scope=\"row\">{name}</th>{}</tr>\n", row(cell))
        })
        .collect()
    };
    let rest = match cells.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} further rows are left out.</p>\n"),
    };
    let command = command_line(&context.report.command);
    let packets = table("packets", "Packets", &packets_head(&keys), &rows(packets_row));
    let link = table("packets", "Link and fairness", &link_head(&keys), &rows(link_row));
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
         <p class=\"note\">Link used: share of the time the link was sending. Goodput: useful \
         payload delivered to all clients together. Fairness: Jain’s index over the clients; 1 is \
         equal. Per client, the median: timeouts expired, largest timeout, duplicate responses.</p>\n\
         {link}{rest}{command}</section>\n"
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

fn packets_row(cell: &Cell) -> String {
    let direction = |counts: &PacketCounts| {
        let marked = match counts.marked {
            0 => String::new(),
            marked => format!(" + {} marked", count(marked)),
        };
        [counts.sent, counts.delivered, counts.dropped_queue, counts.lost_link]
            .map(count)
            .into_iter()
            .zip(["", "", &marked, ""])
            .map(|(packets, more)| format!("<td>{packets}{more}</td>"))
            .collect::<String>()
    };
    direction(&cell.packets.up) + &direction(&cell.packets.down)
}

fn link_head(keys: &[&str]) -> String {
    let rest: String = [
        "goodput",
        "fairness",
        "median RTT (s)",
        "timeouts expired",
        "largest timeout (s)",
        "duplicates",
        "exchanges failed",
    ]
    .iter()
    .map(|name| format!("<th rowspan=\"2\" scope=\"col\">{name}</th>"))
    .collect();
    format!(
        "<tr>{}<th rowspan=\"2\" scope=\"col\" class=\"t\">control</th>\
         <th colspan=\"2\" scope=\"colgroup\" class=\"group\">link used</th>{rest}</tr>\n\
         <tr><th scope=\"col\">up</th><th scope=\"col\">down</th></tr>",
        setting_heads(keys)
    )
}

fn link_row(cell: &Cell) -> String {
    [
        percent(cell.utilisation_up, 1),
        percent(cell.utilisation_down, 1),
        bit_rate(cell.goodput_bps),
        fixed(cell.jain, 3),
        brief(cell.rtt.median),
        brief(cell.timeouts.median),
        brief(cell.largest_timeout.median),
        brief(cell.duplicates.median),
        count(cell.failed),
    ]
    .map(|text| format!("<td>{text}</td>"))
    .concat()
}
