//! Table of the frames of a LoRaWAN cell.

use super::{Context, command_line, head, table};
use crate::report::grid::varying;
use crate::report::model::LoraFigures;
use crate::report::text::{count, escape, percent};

/// Rows at most.
const MOST_ROWS: usize = 300;

type Column = (&'static str, fn(&LoraFigures) -> String);

const COLUMNS: [Column; 11] = [
    ("uplinks", |lora| count(lora.frames.uplinks)),
    ("empty", |lora| share(lora, lora.frames.polls)),
    ("collided", |lora| share(lora, lora.frames.collided)),
    ("gateway deaf", |lora| share(lora, lora.frames.deaf)),
    ("unreadable", |lora| {
        let frames = lora.frames.uplinks + lora.frames.downlinks.iter().sum::<u64>();
        percent(lora.frames.faded as f64 / frames.max(1) as f64, 1)
    }),
    ("window 1", |lora| count(lora.frames.downlinks[0])),
    ("window 2", |lora| count(lora.frames.downlinks[1])),
    ("dropped", |lora| {
        let dropped: u64 = lora.frames.overflows.iter().sum();
        let carried = lora.frames.uplinks - lora.frames.polls.min(lora.frames.uplinks)
            + lora.frames.downlinks.iter().sum::<u64>();
        percent(dropped as f64 / (carried + dropped).max(1) as f64, 1)
    }),
    ("device sends", |lora| percent(lora.device_share, 2)),
    ("gateway sends", |lora| percent(lora.gateway_share, 1)),
    ("radio power", |lora| format!("{:.3} mW", lora.power_mw)),
];

fn share(lora: &LoraFigures, part: u64) -> String {
    percent(part as f64 / lora.frames.uplinks.max(1) as f64, 1)
}

/// The table; empty without such a cell.
pub(crate) fn section(context: &Context<'_>) -> String {
    let report = context.report;
    let keys = varying(report);
    let cells = report.cells.iter().filter_map(|cell| Some((cell, cell.lora.as_ref()?)));
    let rows: String = cells
        .take(MOST_ROWS)
        .map(|(cell, lora)| {
            let settings: String =
                keys.iter().map(|key| format!("<td>{}</td>", escape(cell.setting(key)))).collect();
            let values: String =
                COLUMNS.iter().map(|(_, value)| format!("<td>{}</td>", value(lora))).collect();
            let name = context.name(&cell.cc);
            format!("<tr>{settings}<th scope=\"row\">{name}</th>{values}</tr>\n")
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let table = table("packets", "LoRaWAN cell", &head(&keys, COLUMNS.map(|one| one.0)), &rows);
    let command = command_line(&report.command);
    format!(
        "<section id=\"lora\">\n<h2>LoRaWAN cell</h2>\n<p class=\"note\">Frames, summed over \
         replications. Empty: sent to ask the gateway for a further packet. Collided: met another uplink on \
         its channel. Gateway deaf: the gateway was transmitting. These are shares of the uplinks. Unreadable: for \
         another reason, share of the frames both ways. Windows 1 and 2: downlinks by receive \
         window. Dropped: a queue was full, share of the packets. Then the shares of the time on the air, and the mean power of a \
         device’s radio.</p>\n{table}{command}</section>\n"
    )
}
