//! The summary of `emulate`.

use crate::emulate::forward::Forwarded;
use crate::output::number::significant;
use crate::text::paragraph;
use ebbtide_sim::emulation::DirectionSummary;
use serde_json::json;
use std::io::{self, Write};

/// The reason why an emulation's result is not valid, and the remedy.
pub(crate) fn invalid(forwarded: &Forwarded) -> String {
    let priority = if forwarded.is_realtime { "" } else { ", or as root, with real-time priority" };
    format!(
        "INVALID: more than 1 % of the packets were over 1 ms late. The machine was too busy, or the \
         rate too high: run it again with less beside it{priority}"
    )
}

/// A description of the emulation.
pub(crate) struct EmulationFacts<'a> {
    pub(crate) link: &'a str,
    pub(crate) settings: &'a [String],
    pub(crate) seed: u64,
    pub(crate) exit_code: u8,
}

/// Prints the summary as text on standard error, since standard output belongs to the command.
pub(crate) fn text(about: &EmulationFacts<'_>, forwarded: &Forwarded) -> io::Result<()> {
    let mut out = io::stderr().lock();
    write(&mut out, about, forwarded)
}

fn write(
    out: &mut impl Write,
    about: &EmulationFacts<'_>,
    forwarded: &Forwarded,
) -> io::Result<()> {
    let summary = &forwarded.summary;
    let settings: String = about.settings.iter().map(|set| format!(", {set}")).collect();
    let seconds = significant(summary.seconds);
    writeln!(out)?;
    paragraph(out, "", &format!("{}{settings}, seed {}: {seconds} s", about.link, about.seed))?;
    let sides = [("up", &summary.up), ("down", &summary.down)];
    let sides = sides.map(|(name, side)| (name.to_owned(), side)).into_iter();
    let links = summary.links.iter().flat_map(|link| {
        [(format!("{} up", link.name), &link.up), (format!("{} down", link.name), &link.down)]
    });
    let rows: Vec<(String, &DirectionSummary)> = sides.chain(links).collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    writeln!(
        out,
        "{:<width$} {:>9} {:>9} {:>11} {:>9} {:>7} {:>9} {:>8} {:>6}",
        "", "sent", "arrived", "bytes", "dropped", "lost", "queue max", "mean", "busy"
    )?;
    for (name, side) in rows {
        row(out, &format!("{name:<width$}"), side)?;
    }
    let late = &summary.lateness;
    writeln!(
        out,
        "lateness {} us median, {} us at 99 %, {} us at most",
        significant(late.p50_us),
        significant(late.p99_us),
        significant(late.max_us),
    )?;
    let priority = if forwarded.is_realtime { "real-time" } else { "ordinary" };
    writeln!(out, "{priority} priority, {:.0} % of a processor", 100.0 * forwarded.processor)?;
    if summary.under_way > 0 {
        writeln!(out, "{} packets were under way at the end", summary.under_way)?;
    }
    if summary.refused > 0 {
        let refused = summary.refused;
        writeln!(out, "{refused} packets were dropped: too many were under way")?;
    }
    for remark in &forwarded.remarks {
        paragraph(out, "", remark)?;
    }
    Ok(())
}

fn row(out: &mut impl Write, name: &str, side: &DirectionSummary) -> io::Result<()> {
    writeln!(
        out,
        "{name} {:>9} {:>9} {:>11} {:>9} {:>7} {:>9} {:>8} {:>4.0} %",
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

/// Prints the summary as JSON on one line of standard output.
pub(crate) fn json(about: &EmulationFacts<'_>, forwarded: &Forwarded) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::{EmulationFacts, write};
    use crate::emulate::forward::Forwarded;
    use ebbtide_sim::emulation::{DirectionSummary, EmulationSummary, Lateness};

    #[test]
    fn the_summary_of_a_long_emulation_fits_in_80_columns() {
        let side = DirectionSummary {
            sent: 99_999_999,
            delivered: 99_999_999,
            delivered_bytes: 9_999_999_999,
            dropped_queue: 9_999_999,
            lost_link: 999_999,
            queue_max: 99_999_999,
            queue_mean: 1_234_567.8,
            utilisation: 1.0,
        };
        let lateness = Lateness { p50_us: 1234.5, p99_us: 123_456.7, max_us: 12_345_678.9 };
        let summary = EmulationSummary {
            seconds: 100_000.0,
            up: side,
            down: side,
            links: Vec::new(),
            under_way: 1 << 20,
            refused: 1 << 20,
            lateness,
        };
        let remarks = vec!["a remark of many words ".repeat(5)];
        let forwarded = Forwarded { summary, is_realtime: true, processor: 1.0, remarks };
        let settings = ["network.up.beyond=0 s", "network.down.beyond=0 s", "buffer=infinite"];
        let settings = settings.map(str::to_owned);
        let about =
            EmulationFacts { link: "container-ship", settings: &settings, seed: 12, exit_code: 0 };
        let mut text = Vec::new();
        write(&mut text, &about, &forwarded).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let headings = text.lines().find(|line| line.contains("queue max")).unwrap();
        let figures = text.lines().find(|line| line.starts_with("down")).unwrap();
        assert_eq!(headings.len(), figures.len(), "{text}");
    }
}
