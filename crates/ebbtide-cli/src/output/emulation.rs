//! The summary of `emulate`.

use crate::emulate::forward::Forwarded;
use crate::output::table::significant;
use ebbtide_sim::emulation::DirectionSummary;
use serde_json::json;
use std::io::{self, Write};

/// Why an emulation's answer does not count, and what can be done about it.
pub(crate) fn invalid(forwarded: &Forwarded) -> String {
    let priority = if forwarded.is_realtime { "" } else { ", or as root, with real-time priority" };
    format!(
        "INVALID: more than 1 % of the packets were over 1 ms late. The machine was too busy, or the \
         rate too high: run it again with less beside it{priority}"
    )
}

/// What was emulated.
pub(crate) struct About<'a> {
    pub(crate) link: &'a str,
    pub(crate) settings: &'a [String],
    pub(crate) seed: u64,
    pub(crate) exit_code: u8,
}

/// Prints it for people, on standard error: standard output is the command's.
pub(crate) fn text(about: &About<'_>, forwarded: &Forwarded) -> io::Result<()> {
    let mut out = io::stderr().lock();
    let summary = &forwarded.summary;
    let settings: String = about.settings.iter().map(|set| format!(", {set}")).collect();
    let seconds = significant(summary.seconds);
    writeln!(out, "\n{}{settings}, seed {}: {seconds} s", about.link, about.seed)?;
    writeln!(
        out,
        "{:<5} {:>9} {:>9} {:>10} {:>8} {:>7} {:>10} {:>10} {:>6}",
        "", "sent", "arrived", "bytes", "dropped", "lost", "queue max", "mean", "busy"
    )?;
    for (name, side) in [("up", &summary.up), ("down", &summary.down)] {
        row(&mut out, name, side)?;
    }
    let late = &summary.lateness;
    writeln!(
        out,
        "lateness {} us median, {} us at 99 %, {} us at most; {} priority, {:.0} % of a processor",
        significant(late.p50_us),
        significant(late.p99_us),
        significant(late.max_us),
        if forwarded.is_realtime { "real-time" } else { "ordinary" },
        100.0 * forwarded.processor,
    )?;
    if summary.under_way > 0 {
        writeln!(out, "{} packets were under way at the end", summary.under_way)?;
    }
    if summary.refused > 0 {
        let refused = summary.refused;
        writeln!(out, "{refused} packets were dropped: too many were under way")?;
    }
    for remark in &forwarded.remarks {
        writeln!(out, "{remark}")?;
    }
    Ok(())
}

fn row(out: &mut impl Write, name: &str, side: &DirectionSummary) -> io::Result<()> {
    writeln!(
        out,
        "{name:<5} {:>9} {:>9} {:>10} {:>8} {:>7} {:>10} {:>10} {:>4.0} %",
        side.sent,
        side.delivered,
        side.delivered_bytes,
        side.dropped_queue,
        side.lost_link,
        side.queue_max,
        significant(side.queue_mean),
        100.0 * side.utilisation,
    )
}

/// Prints it for programs, on one line of standard output.
pub(crate) fn json(about: &About<'_>, forwarded: &Forwarded) -> io::Result<()> {
    let document = json!({
        "link": about.link,
        "settings": about.settings,
        "seed": about.seed,
        "exit_code": about.exit_code,
        "valid": forwarded.summary.is_valid(),
        "realtime": forwarded.is_realtime,
        "processor": forwarded.processor,
        "summary": forwarded.summary,
        "remarks": forwarded.remarks,
    });
    let mut out = io::stdout().lock();
    writeln!(out, "{document}")
}
