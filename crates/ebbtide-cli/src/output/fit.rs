//! The table of `ebbtide fit`.

use crate::text::paragraph;
use ebbtide_fit::{Estimate, Fit};
use std::io::{self, Write};

/// Writes the figures with their ranges, and what is not known.
pub(crate) fn write(out: &mut impl Write, fit: &Fit) -> io::Result<()> {
    let certain = if fit.is_place_certain { "" } else { ", as it seems" };
    let exchanges = if fit.exchanges == 1 { "exchange" } else { "exchanges" };
    writeln!(
        out,
        "{} messages, {} {exchanges} in {:.1} s, taken at: {}{certain}",
        fit.messages,
        fit.exchanges,
        fit.duration_s,
        fit.taken_at.name()
    )?;
    writeln!(out, "workload: {}\n", fit.workload_text())?;
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

/// The range of a figure, if it says anything: a share from none to all does not.
fn range(figure: &Estimate) -> String {
    let is_all =
        figure.key.ends_with("loss") && figure.low == Some(0.0) && figure.high == Some(1.0);
    if is_all { String::new() } else { figure.range_text() }
}
