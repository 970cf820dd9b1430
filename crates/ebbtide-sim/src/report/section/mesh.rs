//! Low-power networks: what was served and lost, and where.

use super::{Caption, Context, command_line, head, table, where_};
use crate::report::grid::{varying, words};
use crate::report::model::{Cell, MeshCell, MeshNode};
use crate::report::svg::{PANEL, tree};
use crate::report::text::{brief, escape, fixed, percent};

/// Rows at most.
const MOST_ROWS: usize = 400;
/// Networks drawn at most.
const MOST_DRAWN: usize = 24;

/// The tables and the pictures.
pub(crate) fn section(context: &mut Context<'_>) -> String {
    let cells: Vec<&Cell> = context.report.cells.iter().collect();
    let keys = varying(context.report);
    let has_messages = cells.iter().any(|cell| mesh(cell).messages > 0);
    let has_events = cells.iter().any(|cell| mesh(cell).event_loss.0.is_finite());
    let has_drops = cells.iter().any(|cell| mesh(cell).no_route > 0.0);
    let is_shown = |name: &str| match name {
        EVENTS => has_events,
        NO_ROUTE => has_drops,
        _ => true,
    };
    let columns: Vec<&Column> =
        columns(has_messages).iter().filter(|(name, _)| is_shown(name)).collect();
    let head = head(&keys, columns.iter().map(|(name, _)| *name));
    let row = |cell: &&Cell| {
        let settings: String =
            keys.iter().map(|key| format!("<td>{}</td>", escape(cell.setting(key)))).collect();
        let values: String =
            columns.iter().map(|(_, value)| format!("<td>{}</td>", value(mesh(cell)))).collect();
        let name = context.name(&cell.cc);
        format!("<tr>{settings}<th scope=\"row\">{name}</th>{values}</tr>\n")
    };
    let rows: String = cells.iter().take(MOST_ROWS).map(row).collect();
    let figures = table("packets", "Low-power network", &head, &rows);
    let words = if has_messages {
        "Loss: share of a source's messages, mean over sources and the worst one, ± half a 95 % \
         confidence interval over replications. Events: the same of the reports of events. Busy: the message was due while the last one was in \
         transfer. Early: retransmissions sent although the original and its answer arrived. Timeouts and \
         round trips: from the tenth to the ninetieth percentile."
    } else {
        "Means over replications ± half a 95 % confidence interval. Timeouts and round trips: from the \
         tenth to the ninetieth percentile."
    };
    let words = match has_drops {
        true => format!(
            "{words} No route: share of the datagrams that the root dropped for want of a route."
        ),
        false => words.to_owned(),
    };
    let command = command_line(&context.report.command);
    let pictures = pictures(context, &cells, &keys);
    format!(
        "<section id=\"network\">\n<h2>Network</h2>\n<p class=\"note\">{words} Radio: mean power \
         per node.</p>\n{figures}{command}<h3>Nodes</h3>\n{pictures}</section>\n"
    )
}

pub(super) fn mesh(cell: &Cell) -> &MeshCell {
    static NONE: std::sync::OnceLock<MeshCell> = std::sync::OnceLock::new();
    cell.mesh.as_ref().unwrap_or_else(|| NONE.get_or_init(MeshCell::default))
}

type Column = (&'static str, fn(&MeshCell) -> String);

/// The column that only scenarios with events have.
const EVENTS: &str = "events";
/// The column that only networks have whose root has too few routes.
const NO_ROUTE: &str = "no route";

fn columns(has_messages: bool) -> &'static [Column] {
    const MESSAGES: &[Column] = &[
        ("loss", |m| with_half(m.loss, share)),
        ("worst", |m| with_half(m.worst_loss, share)),
        (EVENTS, |m| with_half(m.event_loss, share)),
        ("busy", |m| share(m.lost_busy)),
        ("queue full", |m| share(m.lost_queue)),
        ("lost on air", |m| share(m.lost_retries)),
        ("otherwise", |m| share(m.lost_otherwise)),
        (NO_ROUTE, |m| share(m.no_route)),
        ("rexmits per message", |m| fixed(m.retransmissions_per_message, 2)),
        ("early", |m| share(m.early.0)),
        ("radio,\u{a0}mW", |m| fixed(m.power_mw, 2)),
        ("first timeout,\u{a0}s", |m| span(m.first_timeout.p10, m.first_timeout.p90)),
        ("RTT,\u{a0}s", |m| span(m.strong_rtt.p10, m.strong_rtt.p90)),
        ("weak RTT,\u{a0}s", |m| span(m.weak_rtt.p10, m.weak_rtt.p90)),
    ];
    const REQUESTS: &[Column] = &[
        ("requests/s", |m| with_half(m.requests_per_s, |v| fixed(v, 2))),
        ("s per exchange", |m| with_half(m.exchange_s, |v| fixed(v, 2))),
        ("retries per request", |m| with_half(m.retries, |v| fixed(v, 2))),
        (NO_ROUTE, |m| share(m.no_route)),
        ("radio,\u{a0}mW", |m| fixed(m.power_mw, 2)),
        ("first timeout,\u{a0}s", |m| span(m.first_timeout.p10, m.first_timeout.p90)),
        ("RTT,\u{a0}s", |m| span(m.strong_rtt.p10, m.strong_rtt.p90)),
        ("weak RTT,\u{a0}s", |m| span(m.weak_rtt.p10, m.weak_rtt.p90)),
    ];
    if has_messages { MESSAGES } else { REQUESTS }
}

/// The nodes of a network as a table.
fn each_node(nodes: &[MeshNode]) -> String {
    let row = |(number, node): (usize, &MeshNode)| {
        format!(
            "<tr><th scope=\"row\">{number}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            node.parent,
            percent(node.loss, 1),
            fixed(node.peak_queue, 1),
            fixed(node.power_mw, 2),
        )
    };
    let rows: String = nodes.iter().enumerate().map(row).collect();
    let columns = ["node", "parent", "loss", "queue at most", "radio,\u{a0}mW"];
    let head: String =
        columns.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    let rows = table("nodes", "Each node", &format!("<tr>{head}</tr>"), &rows);
    format!("<details><summary>Each node</summary>\n{rows}</details>")
}

fn share(value: f64) -> String {
    percent(value, 1)
}

fn with_half((mean, half): (f64, f64), print: fn(f64) -> String) -> String {
    if half > 0.0 { format!("{} ± {}", print(mean), print(half)) } else { print(mean) }
}

/// The tenth and the ninetieth percentile.
fn span(low: f64, high: f64) -> String {
    format!("{} to {}", brief(low), brief(high))
}

/// Each cell's network.
fn pictures(context: &mut Context<'_>, cells: &[&Cell], keys: &[&str]) -> String {
    let drawn: Vec<&Cell> = cells.iter().copied().take(MOST_DRAWN).collect();
    let mut panels = String::new();
    for cell in &drawn {
        let title = format!("{}{}", cell.cc, where_(&words(cell, keys)));
        let desc = format!("The nodes of the network under {title}, with the loss of each");
        let named = context.words(title.clone(), desc);
        let drawing = tree::draw(&mesh(cell).nodes, PANEL, &named);
        let each = each_node(&mesh(cell).nodes);
        panels.push_str(&format!("<div><h3>{}</h3>\n{drawing}\n{each}</div>\n", escape(&title)));
    }
    let key: String = ["below 1 %", "1 to 5 %", "5 to 20 %", "20 to 50 %", "50 % or more"]
        .iter()
        .enumerate()
        .map(|(class, name)| format!("<span><i class=\"r{class}\"></i>{name}</span>"))
        .collect();
    let text = "The network. A node's colour and the number beside it say its loss, its size how full \
                its queue was at most, the lines its routes; the root has a frame. The table below each \
                has the queue and the power of the radio, too."
        .to_owned();
    let rest = match cells.len().saturating_sub(MOST_DRAWN) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} further networks are not drawn.</p>\n"),
    };
    let body =
        format!("<div class=\"key\">{key}</div>\n<div class=\"panels\">\n{panels}</div>\n{rest}");
    context.figure(&Caption { text, cells: &drawn }, &body)
}
