//! Table of the TCP flows in the background.

use super::{Context, command_line, head, table};
use crate::report::grid::varying;
use crate::report::text::{bit_rate, count, escape};

/// Rows at most.
const MOST_ROWS: usize = 300;

const HEADS: [&str; 5] = ["flows", "offered", "delivered", "retransmissions", "unnecessary"];

/// The table; empty without such flows.
pub(crate) fn section(context: &Context<'_>) -> String {
    let report = context.report;
    let keys = varying(report);
    let cells = report.cells.iter().filter_map(|cell| Some((cell, cell.background.as_ref()?)));
    let rows: String = cells
        .take(MOST_ROWS)
        .map(|(cell, tcp)| {
            let values = [
                count(tcp.flows.into()),
                bit_rate(tcp.offered_bps),
                bit_rate(tcp.delivered_bps),
                count(tcp.retransmissions),
                count(tcp.unnecessary),
            ];
            let settings: String =
                keys.iter().map(|key| format!("<td>{}</td>", escape(cell.setting(key)))).collect();
            let values: String = values.iter().map(|value| format!("<td>{value}</td>")).collect();
            let name = context.name(&cell.cc);
            format!("<tr>{settings}<th scope=\"row\">{name}</th>{values}</tr>\n")
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = head(&keys, HEADS);
    let table = table("packets", "TCP in the background", &head, &rows);
    let command = command_line(&report.command);
    format!(
        "<section id=\"background\">\n<h2>TCP in the background</h2>\n<p class=\"note\">Payload of \
         all flows of a replication together, mean over replications, each from its beginning to \
         its last arrival. Retransmissions are summed; unnecessary ones carried nothing \
         new.</p>\n{table}{command}</section>\n"
    )
}
