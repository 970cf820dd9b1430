//! The table of senders of many messages.

use super::number::significant;
use super::{name, name_width};
use ebbtide_sim::result::{FlowCell, FlowFigures};
use ebbtide_sim::run::CellResult;
use std::io::{self, Write};

/// The cells with their flows, if all of them have flows.
pub(super) fn cells<'r>(group: &[&'r CellResult]) -> Option<Vec<(&'r CellResult, &'r FlowCell)>> {
    group.iter().map(|result| Some((*result, result.cell.flows.as_ref()?))).collect()
}

/// Prints the delivered messages and the times of each control.
pub(super) fn rows(out: &mut impl Write, cells: &[(&CellResult, &FlowCell)]) -> io::Result<()> {
    let is_stream = cells.iter().any(|(result, _)| result.cell.fct_limit_s == 0.0);
    // The space that the figures leave of 80 columns; a transfer has one more column.
    let (most, last) = if is_stream { (22, "  kbit/s") } else { (15, "  FCT, s  limit") };
    let width = name_width(cells.iter().map(|(r, _)| &r.cell.cc), 12, most);
    writeln!(
        out,
        "{:width$} {:>9} {:>7} {:>7} {:>8} {:>8} {:>6}{last}",
        "", "delivered", "refused", "rexmits", "given up", "delay, s", "Jain"
    )?;
    for (result, flows) in cells {
        let sum = |field: fn(&FlowFigures) -> f64| flows.flows.iter().map(field).sum::<f64>();
        let last = match result.cell.multiple() {
            Some(multiple) if !is_stream => {
                let times = format!("x{multiple:.2}");
                format!("{:>7} {times:>6}", significant(result.cell.fct.median))
            }
            _ => format!("{:>7}", significant(flows.throughput_bps.0 / 1e3)),
        };
        writeln!(
            out,
            "{} {:>9} {:>7} {:>7} {:>8} {:>8} {:>6.3} {last}",
            name(&result.cell.cc, width),
            significant(flows.delivered.0),
            significant(sum(|flow| flow.refused)),
            significant(flows.retransmissions.0),
            significant(sum(|flow| flow.given_up)),
            significant(flows.delay_s.0),
            flows.jain.0
        )?;
        if flows.flows.len() > 1 && flows.flows.len() <= 8 {
            each(out, result, flows, width, if is_stream { "" } else { " kbit/s" })?;
        }
    }
    writeln!(
        out,
        "\nPackets of all clients, means over replications; delivered: first copies;\n\
         refused: found no room to wait; delay: from the first transmission to the first\n\
         arrival, mean"
    )
}

/// A line for each flow. `unit` is the unit of the throughput if the column shows another
/// quantity.
fn each(
    out: &mut impl Write,
    result: &CellResult,
    flows: &FlowCell,
    width: usize,
    unit: &str,
) -> io::Result<()> {
    for flow in &flows.flows {
        let client = match flow.cc == result.cell.cc {
            true => format!("  client {}", flow.client),
            false => format!("  {}: {}", flow.client, flow.cc),
        };
        writeln!(
            out,
            "{} {:>9} {:>7} {:>7} {:>8} {:>8} {:>6} {:>7}{unit}",
            name(&client, width),
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
