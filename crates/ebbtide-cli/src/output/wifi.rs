//! The table of a Wi-Fi cell.

use super::{NAME, name, name_width};
use ebbtide_sim::run::CellResult;
use std::io::{self, Write};

/// Prints the fates of the frames, if there are any.
pub(super) fn rows(out: &mut impl Write, group: &[&CellResult]) -> io::Result<()> {
    let cells: Vec<_> =
        group.iter().filter_map(|r| Some((&r.cell.cc, r.cell.wifi.as_ref()?))).collect();
    if cells.is_empty() {
        return Ok(());
    }
    let width = name_width(cells.iter().map(|(cc, _)| *cc), 12, NAME);
    writeln!(
        out,
        "\n{:width$} {:>9} {:>8} {:>9}  {:>9} {:>11} {:>7}",
        "Wi-Fi cell", "packets", "dropped", "given up", "collided", "unreadable", "busy"
    )?;
    for (cc, wifi) in cells {
        let share = |part: u64| 100.0 * part as f64 / wifi.transmitted.max(1) as f64;
        writeln!(
            out,
            "{} {:>9} {:>8} {:>9}  {:>7.1} % {:>9.1} % {:>5.1} %",
            name(cc, width),
            wifi.packets,
            wifi.overflows,
            wifi.given_up,
            share(wifi.collided),
            share(wifi.faded),
            100.0 * wifi.busy
        )?;
    }
    Ok(())
}
