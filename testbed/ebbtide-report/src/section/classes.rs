//! The classes of clients, each with its judgement, and the links that they share.

use super::{PageContext, command_line, head, row, table};
use crate::grid::varying;
use crate::text::{brief, count, escape, fixed, percent};
use crate::verdict::settings;
use ebbtide_sim::judge::{Judgement, Verdict};
use ebbtide_sim::result::judge_classes;
use ebbtide_sim::result::{Cell, LinkCell, PacketCounts};

/// Rows at most.
const MOST_ROWS: usize = 400;
/// Sentences at most.
const MOST_SENTENCES: usize = 24;

/// The table and the sentences; empty without classes.
pub(crate) fn section(context: &PageContext<'_>) -> String {
    let report = context.report;
    let keys = varying(report);
    let mut rows = Vec::new();
    let mut sentences = Vec::new();
    for setting in settings(report) {
        let cells = setting.cells.iter().copied();
        for (cells, verdict) in judge_classes(cells, report.percentile) {
            let Some(first) = cells.first() else { continue };
            let own = first.own_control.as_ref();
            let own = own.map_or_else(String::new, |own| format!(", always {}", escape(own)));
            let label = match setting.label.is_empty() {
                true => String::new(),
                false => format!("{}, ", escape(&setting.label)),
            };
            sentences.push(format!(
                "<dt>{label}{} ({}{own})</dt><dd>{}</dd>\n",
                escape(&first.class),
                count(first.clients.into()),
                escape(&verdict.sentence)
            ));
            rows.extend(
                cells.into_iter().map(|cell| row(context, &keys, cell, figures(cell, &verdict))),
            );
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    rows.truncate(MOST_ROWS);
    sentences.truncate(MOST_SENTENCES);
    let table = table("packets", "Classes", &head(&keys, HEADS), &rows.concat());
    let command = command_line(&report.command);
    format!(
        "<section id=\"classes\">\n<h2>Classes</h2>\n<p class=\"note\">Each class of clients by \
         itself, beside the others in the same network. Median: of completion times, or of single exchanges where \
         clients keep time. Wasted: share of the transmissions that were unnecessary. A class that has a control of its own keeps it in every row.</p>\n{table}\
         <dl class=\"each\">{}</dl>{command}</section>\n",
        sentences.concat()
    )
}

const HEADS: [&str; 7] =
    ["class", "clients", "judgement", "delivered", "median, s", "99\u{a0}% by, s", "unnecessary"];

fn figures(cell: &Cell, verdict: &Verdict) -> [String; 7] {
    let all = &cell.outcome.all;
    let time = if cell.is_periodic { cell.spread("exchange_duration_s") } else { cell.fct };
    [
        escape(&cell.class),
        count(cell.clients.into()),
        verdict.judgement_of(&cell.cc).map_or("", Judgement::word).to_owned(),
        percent(all.delivered, 2),
        brief(time.median),
        all.delivered_by_s[2].map_or_else(|| "never".to_owned(), brief),
        percent(all.unnecessary_share, 1),
    ]
}

/// The links other than the bottleneck; empty if there are none.
pub(crate) fn links(context: &PageContext<'_>) -> String {
    let report = context.report;
    let keys = varying(report);
    let all = report.cells.iter().flat_map(|cell| cell.links.iter().map(move |link| (cell, link)));
    let row = |(cell, link)| row(context, &keys, cell, link_values(link));
    let rows: String = all.take(MOST_ROWS).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = ["link", "up", "dropped", "lost", "busy", "down", "dropped", "lost", "busy"];
    let table = table("packets", "Links", &head(&keys, heads), &rows);
    let command = command_line(&report.command);
    format!(
        "<section id=\"links\">\n<h2>Links</h2>\n<p class=\"note\">Packets handed to each link \
         before the bottleneck towards the server and towards the devices, summed over replications, and the \
         share of the time that it was sending.</p>\n{table}{command}</section>\n"
    )
}

fn link_values(link: &LinkCell) -> Vec<String> {
    let side = |packets: &PacketCounts, busy: f64| {
        let share = |part: u64| percent(part as f64 / packets.sent.max(1) as f64, 1);
        [
            count(packets.sent),
            share(packets.dropped_queue),
            share(packets.lost_link),
            format!("{}\u{a0}%", fixed(busy * 100.0, 0)),
        ]
    };
    let up = side(&link.up, link.utilisation_up);
    let down = side(&link.down, link.utilisation_down);
    [escape(&link.name)].into_iter().chain(up).chain(down).collect()
}

/// The UDP traffic of others; empty if there is none.
pub(crate) fn cross(context: &PageContext<'_>) -> String {
    let report = context.report;
    let keys = varying(report);
    let all = report.cells.iter().flat_map(|cell| cell.cross.iter().map(move |one| (cell, one)));
    let values = |name: &str, packets: &PacketCounts| {
        let share = |part: u64| percent(part as f64 / packets.sent.max(1) as f64, 1);
        let fates = [packets.delivered, packets.dropped_queue, packets.lost_link].map(share);
        [escape(name), count(packets.sent)].into_iter().chain(fates)
    };
    let row = |(cell, (name, packets)): (_, &(String, _))| {
        row(context, &keys, cell, values(name, packets))
    };
    let rows: String = all.take(MOST_ROWS).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = ["traffic", "packets", "delivered", "dropped", "lost"];
    let table = table("packets", "Cross traffic", &head(&keys, heads), &rows);
    let command = command_line(&report.command);
    format!(
        "<section id=\"cross\">\n<h2>Cross traffic</h2>\n<p class=\"note\">Packets of others on \
         their links, summed over replications. Nothing reacts to their fates.</p>\n{table}{command}</section>\n"
    )
}
