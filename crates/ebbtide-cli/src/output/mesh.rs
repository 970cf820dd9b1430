//! The table of a low-power network.

use super::number::significant;
use super::{NAME, name, name_width};
use ebbtide_sim::report::MeshCell;
use ebbtide_sim::run::CellResult;
use std::io::{self, Write};

/// The cells with their controls, if all are of a low-power network.
pub(super) fn cells<'r>(group: &[&'r CellResult]) -> Option<Vec<(&'r CellResult, &'r MeshCell)>> {
    group.iter().map(|result| Some((*result, result.cell.mesh.as_ref()?))).collect()
}

/// Prints the served requests, or the losses and their causes.
pub(super) fn rows(out: &mut impl Write, cells: &[(&CellResult, &MeshCell)]) -> io::Result<()> {
    let width = name_width(cells.iter().map(|(r, _)| &r.cell.cc), 12, NAME);
    if cells.iter().any(|(_, mesh)| mesh.messages > 0) {
        return messages(out, cells, width);
    }
    writeln!(
        out,
        "{:width$} {:>10} {:>10} {:>9} {:>8} {:>9} {:>7}",
        "", "requests/s", "s each", "retries", "failed", "RTT, s", "mW"
    )?;
    for (result, mesh) in cells {
        writeln!(
            out,
            "{} {:>10} {:>10} {:>9} {:>8} {:>9} {:>7}",
            name(&result.cell.cc, width),
            significant(mesh.requests_per_s.0),
            significant(mesh.exchange_s.0),
            significant(mesh.retries.0),
            result.cell.failed,
            significant(mesh.strong_rtt.median),
            significant(mesh.power_mw)
        )?;
    }
    writeln!(out, "\ns each, retries: per request served; RTT: median without retries")?;
    let share = cells.iter().map(|(_, mesh)| mesh.no_route).fold(0.0, f64::max);
    if share > 0.0 {
        writeln!(out, "no route: the root dropped up to {:.0} % of the datagrams", 100.0 * share)?;
    }
    Ok(())
}

fn messages(
    out: &mut impl Write,
    cells: &[(&CellResult, &MeshCell)],
    width: usize,
) -> io::Result<()> {
    writeln!(
        out,
        "{:width$} {:>6} {:>5} {:>6}  {:>5} {:>5} {:>5} {:>5}  {:>7} {:>5}",
        "", "lost %", "worst", "events", "busy", "queue", "air", "else", "rexmits", "early"
    )?;
    let percent = |share: f64| match share.is_finite() {
        true => format!("{:.1}", 100.0 * share),
        false => "-".to_owned(),
    };
    for (result, mesh) in cells {
        writeln!(
            out,
            "{} {:>6} {:>5} {:>6}  {:>5} {:>5} {:>5} {:>5}  {:>7} {:>5}",
            name(&result.cell.cc, width),
            percent(mesh.loss.0),
            percent(mesh.worst_loss.0),
            percent(mesh.event_loss.0),
            percent(mesh.lost_busy),
            percent(mesh.lost_queue),
            percent(mesh.lost_retries),
            percent(mesh.lost_otherwise),
            significant(mesh.retransmissions_per_message),
            percent(mesh.early.0)
        )?;
    }
    writeln!(
        out,
        "\nworst: of all sources; events: of the reports of events; busy, queue, air, else:\n\
         % of all messages; rexmits: per message taken up; early: % of them"
    )
}
