//! Low-power networks: what was served and lost, and where.

use super::{Caption, PageContext, command_line, group, table, where_};
use crate::grid::{varying, words};
use crate::svg::{PANEL, tree};
use crate::text::{escape, fixed, percent};
use ebbtide_sim::result::metrics::MESH;
use ebbtide_sim::result::{Cell, MeshNode};

/// Networks drawn at most.
const MOST_DRAWN: usize = 24;

/// The tables and the pictures.
pub(crate) fn section(context: &mut PageContext<'_>) -> String {
    let cells: Vec<&Cell> = context.report.cells.iter().collect();
    let keys = varying(context.report);
    let any = |name: &str| cells.iter().any(|cell| cell.number(name) > 0.0);
    let (has_messages, has_drops) = (any("mesh.messages"), any("mesh.no_route"));
    let figures = group::rows(context, &MESH);
    let words = if has_messages {
        "Loss: share of a source's messages, mean over sources and the worst one, ± half a 95 % confidence \
         interval over replications. Events: the same of the reports of events. Busy: the message was due \
         while the last one was in transfer. Early: retransmissions sent although the original and its \
         answer arrived. Timeouts and round trips: from the tenth to the ninetieth percentile."
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

/// Each cell's network.
fn pictures(context: &mut PageContext<'_>, cells: &[&Cell], keys: &[&str]) -> String {
    let drawn: Vec<&Cell> = cells.iter().copied().take(MOST_DRAWN).collect();
    let mut panels = String::new();
    for cell in &drawn {
        let title = format!("{}{}", cell.cc, where_(&words(cell, keys)));
        let desc = format!("The nodes of the network under {title}, with the loss of each");
        let named = context.words(title.clone(), desc);
        let drawing = tree::draw(&cell.nodes, PANEL, &named);
        let each = each_node(&cell.nodes);
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
