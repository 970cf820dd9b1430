//! Table of the frames of a Wi-Fi cell.

use super::{Context, command_line, head, table};
use crate::report::grid::varying;
use crate::report::model::{Cell, WifiCell};
use crate::report::text::{count, escape, percent};

/// Rows at most.
const MOST_ROWS: usize = 300;

/// The table; empty without such a cell.
pub(crate) fn section(context: &Context<'_>) -> String {
    let report = context.report;
    let keys = varying(report);
    let with = |cell: &'_ Cell| cell.wifi.is_some();
    if !report.cells.iter().any(with) {
        return String::new();
    }
    let head = head(&keys, COLUMNS.map(|column| column.0));
    let rows = report.cells.iter().filter_map(|cell| Some((cell, cell.wifi.as_ref()?)));
    let rows: String = rows
        .take(MOST_ROWS)
        .map(|(cell, wifi)| {
            let settings: String =
                keys.iter().map(|key| format!("<td>{}</td>", escape(cell.setting(key)))).collect();
            let values: String =
                COLUMNS.iter().map(|(_, value)| format!("<td>{}</td>", value(wifi))).collect();
            let name = context.name(&cell.cc);
            format!("<tr>{settings}<th scope=\"row\">{name}</th>{values}</tr>\n")
        })
        .collect();
    let table = table("packets", "Wi-Fi cell", &head, &rows);
    let command = command_line(&report.command);
    format!(
        "<section id=\"wifi\">\n<h2>Wi-Fi cell</h2>\n<p class=\"note\">Summed over stations and \
         replications. Dropped: the station’s queue was full. Given up: not acknowledged after all \
         retries. Shares are of transmissions. Busy: share of the time something was on the \
         air.</p>\n{table}{command}</section>\n"
    )
}

type Column = (&'static str, fn(&WifiCell) -> String);

const COLUMNS: [Column; 9] = [
    ("packets", |wifi| count(wifi.packets)),
    ("dropped", |wifi| count(wifi.overflows)),
    ("given up", |wifi| count(wifi.given_up)),
    ("transmissions", |wifi| count(wifi.transmitted)),
    ("collided", |wifi| share(wifi, wifi.collided)),
    ("unreadable", |wifi| share(wifi, wifi.faded)),
    ("ACKs lost", |wifi| share(wifi, wifi.acks_lost)),
    ("longest queue", |wifi| count(wifi.peak_queue.into())),
    ("busy", |wifi| percent(wifi.busy, 1)),
];

fn share(wifi: &WifiCell, part: u64) -> String {
    percent(part as f64 / wifi.transmitted.max(1) as f64, 1)
}
