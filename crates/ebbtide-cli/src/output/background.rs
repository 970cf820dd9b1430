//! The lines on TCP in the background.

use super::number::significant;
use super::{NAME, name, name_width};
use ebbtide_sim::run::CellResult;
use std::io::{self, Write};

/// Prints the results of the background flows, if there are any.
pub(super) fn rows(out: &mut impl Write, group: &[&CellResult]) -> io::Result<()> {
    let cells: Vec<_> =
        group.iter().filter_map(|r| Some((&r.cell.cc, r.cell.background.as_ref()?))).collect();
    if cells.is_empty() {
        return Ok(());
    }
    let width = name_width(cells.iter().map(|(cc, _)| *cc), 14, NAME);
    writeln!(
        out,
        "\n{:width$} {:>6} {:>13} {:>15}  {:>7} {:>12}",
        "TCP background", "flows", "offered, kb/s", "delivered, kb/s", "rexmits", "unnecessary"
    )?;
    for (cc, tcp) in cells {
        writeln!(
            out,
            "{} {:>6} {:>13} {:>15}  {:>7} {:>12}",
            name(cc, width),
            tcp.flows,
            significant(tcp.offered_bps / 1000.0),
            significant(tcp.delivered_bps / 1000.0),
            tcp.retransmissions,
            tcp.unnecessary
        )?;
    }
    writeln!(out, "\noffered, delivered: all flows of a replication together, payload, mean")
}
