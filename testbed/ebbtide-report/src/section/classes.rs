//! The classes of clients and the phases of the run, each with its judgement, and the links that devices share.

use super::{PageContext, command_line, head, row, table};
use crate::grid::varying;
use crate::text::{brief, count, escape, fixed, percent};
use crate::verdict::settings;
use ebbtide_sim::judge::{Judgement, Percentile, Verdict};
use ebbtide_sim::result::{Cell, LinkCell, PacketCounts, judge_classes, judge_phases};

/// Rows at most.
const MOST_ROWS: usize = 400;
/// Sentences at most.
const MOST_SENTENCES: usize = 24;

/// How the cells of a setting are divided and judged.
type JudgeParts = for<'c> fn(&[&'c Cell], Percentile) -> Vec<(Vec<&'c Cell>, Verdict)>;

/// The table and the sentences; empty without classes.
pub(crate) fn section(context: &PageContext<'_>) -> String {
    let note = "Each class of clients by itself, beside the others in the same network. Median: of completion times, \
         or of single exchanges where clients keep time. A class that has a control of its own keeps it in every row.";
    let judge: JudgeParts = |cells, percentile| judge_classes(cells.iter().copied(), percentile);
    parts(context, "Classes", ["class", "clients"], note, judge)
}

/// The same for the phases of the run; empty without phases.
pub(crate) fn phases(context: &PageContext<'_>) -> String {
    let note = "Each phase has the exchanges that were asked for in it. Median: of the times of single exchanges. \
         Exchanges are those of one replication.";
    let judge: JudgeParts = |cells, percentile| judge_phases(cells.iter().copied(), percentile);
    parts(context, "Phases", ["phase", "exchanges"], note, judge)
}

fn parts(
    context: &PageContext<'_>,
    title: &str,
    first_heads: [&str; 2],
    note: &str,
    judge: JudgeParts,
) -> String {
    let report = context.report;
    let keys = varying(report);
    let mut rows = Vec::new();
    let mut sentences = Vec::new();
    for setting in settings(report) {
        let cells: Vec<&Cell> = setting.cells.clone();
        for (cells, verdict) in judge(&cells, report.percentile) {
            let Some(first) = cells.first() else { continue };
            let own = first.own_control.as_ref();
            let own = own.map_or_else(String::new, |own| format!(", always {}", escape(own)));
            let label = match setting.label.is_empty() {
                true => String::new(),
                false => format!("{}, ", escape(&setting.label)),
            };
            let [name, size] = name_and_size(first);
            sentences.push(format!(
                "<dt>{label}{name} ({size}{own})</dt><dd>{}</dd>\n",
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
    let heads = first_heads.into_iter().chain(HEADS);
    let table = table("packets", title, &head(&keys, heads), &rows.concat());
    let command = command_line(&report.command);
    let id = title.to_lowercase();
    format!(
        "<section id=\"{id}\">\n<h2>{title}</h2>\n<p class=\"note\">{note}</p>\n{table}<dl class=\"each\">{}</dl>{command}\
         </section>\n",
        sentences.concat()
    )
}

const HEADS: [&str; 5] = ["judgement", "delivered", "median, s", "99\u{a0}% by, s", "unnecessary"];

/// The name of a class or a phase, and its clients or its exchanges in one replication.
fn name_and_size(cell: &Cell) -> [String; 2] {
    match cell.phase.is_empty() {
        true => [escape(&cell.class), count(cell.clients.into())],
        false => [escape(&cell.phase), count(cell.outcome.asked / u64::from(cell.reps.max(1)))],
    }
}

fn figures(cell: &Cell, verdict: &Verdict) -> [String; 7] {
    let all = &cell.outcome.all;
    let time = if cell.is_periodic { cell.spread("exchange_duration_s") } else { cell.fct };
    let [name, size] = name_and_size(cell);
    [
        name,
        size,
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
