//! The table of `ebbtide fit`.

use super::paragraph;
use ebbtide_sim::fit::{Figure, Fit};
use std::io::{self, Write};

/// Writes the figures with their ranges, and what is not known.
pub(crate) fn write(out: &mut impl Write, fit: &Fit) -> io::Result<()> {
    let certain = if fit.is_place_certain { "" } else { ", as it seems" };
    writeln!(
        out,
        "{} messages, {} exchanges in {:.1} s, taken at: {}{certain}",
        fit.messages,
        fit.exchanges,
        fit.duration_s,
        fit.taken_at.name()
    )?;
    writeln!(out, "workload: {}\n", kind(fit))?;
    writeln!(out, "{:<20} {:>14}   likely range", "", "estimate")?;
    for figure in &fit.figures {
        let value = if figure.is_known { figure.value_text() } else { "not known".to_owned() };
        let line = format!("{:<20} {value:>14}   {}", figure.key, range(figure));
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out, "\nNot known from this capture:")?;
    for sentence in &fit.unknown {
        paragraph(out, "- ", sentence)?;
    }
    Ok(())
}

fn range(figure: &Figure) -> String {
    if figure.is_known || figure.high.is_none() { figure.range_text() } else { String::new() }
}

/// The workload as the scenario names it, with its period.
fn kind(fit: &Fit) -> String {
    let workload = &fit.scenario.workload;
    let name = serde_json::to_value(workload.kind).ok();
    let name = name.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    match workload.interval_ns() {
        Some(_) => format!("{name}, period {}", workload.period),
        None => name,
    }
}
