//! The table of senders of many messages.

use super::table::significant;
use ebbtide_sim::report::{FlowCell, FlowFigures};
use ebbtide_sim::run::CellResult;
use std::io::{self, Write};

/// The cells with their flows, if all have such.
pub(super) fn cells<'r>(group: &[&'r CellResult]) -> Option<Vec<(&'r CellResult, &'r FlowCell)>> {
    group.iter().map(|result| Some((*result, result.cell.flows.as_ref()?))).collect()
}

/// What each control delivered, and what it took.
pub(super) fn rows(out: &mut impl Write, cells: &[(&CellResult, &FlowCell)]) -> io::Result<()> {
    let width = cells.iter().map(|(r, _)| r.cell.cc.len()).max().unwrap_or(0).clamp(12, 24) + 1;
    let is_stream = cells.iter().any(|(result, _)| result.cell.fct_limit_s == 0.0);
    let (last, unit) = if is_stream { ("kbit/s", "") } else { ("FCT, s", "limit") };
    writeln!(
        out,
        "{:width$} {:>9} {:>7} {:>7} {:>7} {:>8} {:>6} {last:>8} {unit:>6}",
        "", "delivered", "refused", "rexmits", "given up", "delay, s", "Jain"
    )?;
    for (result, flows) in cells {
        let sum = |field: fn(&FlowFigures) -> f64| flows.flows.iter().map(field).sum::<f64>();
        let multiple = result.cell.multiple();
        let (last, unit) = match (is_stream, multiple) {
            (false, Some(multiple)) => {
                (significant(result.cell.fct.median), format!("x {multiple:.2}"))
            }
            _ => (significant(flows.throughput_bps.0 / 1e3), String::new()),
        };
        writeln!(
            out,
            "{:width$} {:>9} {:>7} {:>7} {:>8} {:>8} {:>6.3} {last:>8} {unit:>6}",
            result.cell.cc,
            significant(flows.delivered.0),
            significant(sum(|flow| flow.refused)),
            significant(flows.retransmissions.0),
            significant(sum(|flow| flow.given_up)),
            significant(flows.delay_s.0),
            flows.jain.0
        )?;
        if flows.flows.len() > 1 && flows.flows.len() <= 8 {
            each(out, flows, width)?;
        }
    }
    writeln!(
        out,
        "\nPackets of all clients, means over replications; delivered: first copies; refused: found\n\
         no room to wait; delay: from the first transmission to the first arrival, mean"
    )
}

/// A line per flow.
fn each(out: &mut impl Write, flows: &FlowCell, width: usize) -> io::Result<()> {
    for flow in &flows.flows {
        let name = format!("  client {} {}", flow.client, flow.cc);
        let name: String = name.chars().take(width).collect();
        writeln!(
            out,
            "{name:width$} {:>9} {:>7} {:>7} {:>8} {:>8} {:>6} {:>8}",
            significant(flow.delivered),
            significant(flow.refused),
            significant(flow.retransmissions),
            significant(flow.given_up),
            significant(flow.delay_s),
            "",
            significant(flow.throughput_bps / 1e3)
        )?;
    }
    Ok(())
}
