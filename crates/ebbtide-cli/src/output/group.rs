//! A table of the figures of a group: of a part of the network.

use super::number::significant;
use super::{NAME, name, name_width};
use ebbtide_sim::result::{Cell, Format, Group, Value};
use std::io::{self, Write};

/// Prints the figures of the cells that have such; returns whether there are any.
pub(super) fn rows(out: &mut impl Write, cells: &[&Cell], group: &Group) -> io::Result<bool> {
    let cells: Vec<&Cell> = cells.iter().copied().filter(|cell| group.is_of(cell)).collect();
    let columns = group.columns(|metric| metric.terminal, &cells);
    if columns.is_empty() {
        return Ok(false);
    }
    let least = group.terminal_title.len().max(12);
    let width = name_width(cells.iter().map(|cell| &cell.cc), least, NAME);
    let headings: String =
        columns.iter().map(|(_, column)| format!("{:>1$}", column.heading, column.width)).collect();
    writeln!(out, "{:width$}{headings}", group.terminal_title)?;
    for cell in cells {
        let values: String = columns
            .iter()
            .map(|(metric, column)| {
                format!("{:>1$}", show(metric.value(cell), column.format), column.width)
            })
            .collect();
        writeln!(out, "{}{values}", name(&cell.cc, width))?;
    }
    if !group.terminal_note.is_empty() {
        writeln!(out, "\n{}", group.terminal_note)?;
    }
    Ok(true)
}

/// A figure as its column shows it.
fn show(value: Option<Value>, format: Format) -> String {
    let number = value.map_or(f64::NAN, |value| value.number());
    match format {
        _ if !number.is_finite() => "-".to_owned(),
        Format::Count => format!("{number:.0}"),
        Format::Brief | Format::BitRate | Format::Span => significant(number),
        Format::Kilo => significant(number / 1000.0),
        Format::Fixed(decimals) | Format::Milliwatts(decimals) => format!("{number:.decimals$}"),
        Format::Percent(decimals) => format!("{:.decimals$} %", 100.0 * number),
        Format::Hundredths => format!("{:.1}", 100.0 * number),
    }
}
