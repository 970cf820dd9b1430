//! The table of `run`, for a terminal of 80 columns.

use super::{background, flows, mesh, name, name_width, paragraph, wifi};
use ebbtide_sim::report::Summary;
use ebbtide_sim::run::{Campaign, CellResult, CellSpec, Results, left_out};
use std::io::{self, Write};

/// Prints a table per combination of settings, controls in their order, and what they mean.
pub(crate) fn write(
    out: &mut impl Write,
    campaign: &Campaign,
    results: &Results,
) -> io::Result<()> {
    let mut cells = results.cells.iter().map(|(_, result)| result).peekable();
    let mut is_first = true;
    while let Some(first) = cells.peek().copied() {
        let mut group: Vec<&CellResult> = Vec::new();
        while let Some(next) = cells.next_if(|next| next.cell.settings == first.cell.settings) {
            group.push(next);
        }
        if !is_first {
            writeln!(out)?;
        }
        is_first = false;
        heading(out, campaign, &group)?;
        match mesh::cells(&group) {
            Some(cells) => mesh::rows(out, &cells)?,
            None => match flows::cells(&group) {
                Some(cells) => flows::rows(out, &cells)?,
                None => rows(out, &group)?,
            },
        }
        wifi::rows(out, &group)?;
        background::rows(out, &group)?;
    }
    notes(out, campaign, results)?;
    let Some(left_out) = left_out(campaign, results) else { return Ok(()) };
    if !results.cells.is_empty() {
        writeln!(out)?;
    }
    paragraph(out, "", &left_out)
}

/// What a reader of these results must know.
fn notes(out: &mut impl Write, campaign: &Campaign, results: &Results) -> io::Result<()> {
    let specs = results.cells.iter().filter_map(|(index, _)| campaign.cells.get(*index));
    let Some(notes) = specs.map(CellSpec::notes).find(|notes| !notes.is_empty()) else {
        return Ok(());
    };
    writeln!(out)?;
    for note in notes {
        paragraph(out, "", note)?;
    }
    Ok(())
}

fn heading(out: &mut impl Write, campaign: &Campaign, group: &[&CellResult]) -> io::Result<()> {
    let Some(first) = group.first() else { return Ok(()) };
    let cell = &first.cell;
    let settings: Vec<String> =
        cell.settings.iter().map(|(key, value)| format!("{key} {value}")).collect();
    let separator = if settings.is_empty() { "" } else { ": " };
    let line = format!("{}{separator}{}", campaign.source.place, settings.join(", "));
    paragraph(out, "", &line)?;
    let plural = |n: u32| if n == 1 { "" } else { "s" };
    write!(
        out,
        "{} client{}, {} replication{}, seed {}",
        cell.clients,
        plural(cell.clients),
        cell.reps,
        plural(cell.reps),
        campaign.seed
    )?;
    if cell.fct_limit_s > 0.0 {
        // TCP's is another: its packets are longer.
        let limits = || group.iter().map(|result| result.cell.fct_limit_s);
        let least = significant(limits().fold(f64::INFINITY, f64::min));
        let most = significant(limits().fold(0.0, f64::max));
        let range = if least == most { least } else { format!("{least} to {most}") };
        write!(out, "; limit {range} s for the last client")?;
    }
    writeln!(out, "\n")
}

fn rows(out: &mut impl Write, group: &[&CellResult]) -> io::Result<()> {
    let width = name_width(group.iter().map(|r| &r.cell.cc), 12, 18) + 1;
    writeln!(
        out,
        "{:width$} {:>8} {:>15} {:>7}  {:>11} {:>7}",
        "", "median", "10 % to 90 %", "times", "unnecessary", "any"
    )?;
    let time = if is_periodic(group) { "time, s" } else { "FCT, s" };
    writeln!(
        out,
        "{:width$} {time:>8} {time:>15} {:>7}  {:>11} {:>7} {:>6}",
        "control", "limit", "rexmits", "rexmits", "failed"
    )?;
    let best = group
        .iter()
        .filter(|result| result.cell.failed == 0)
        .map(|result| times(result).median)
        .fold(f64::INFINITY, f64::min);
    for result in group {
        let cell = &result.cell;
        let time = times(result);
        let range = format!("{} to {}", significant(time.p10), significant(time.p90));
        let multiple = cell.multiple().map_or_else(|| "-".to_owned(), |m| format!("{m:.2}"));
        let exchanges: u64 = cell.by_retransmissions.iter().sum();
        let repeated = exchanges - cell.by_retransmissions.first().copied().unwrap_or(0);
        let share = 100.0 * repeated as f64 / exchanges.max(1) as f64;
        let near_best = cell.failed == 0 && time.median <= 1.05 * best;
        let mark = if near_best && group.len() > 1 { "*" } else { " " };
        writeln!(
            out,
            "{}{mark} {:>8} {:>15} {:>7}  {:>11} {:>5.1} % {:>6}",
            name(&cell.cc, width),
            significant(time.median),
            range,
            multiple,
            significant(cell.unnecessary.median),
            share,
            cell.failed
        )?;
        for half in &result.halves {
            let fct = &half.fct;
            let range = format!("{} to {}", significant(fct.p10), significant(fct.p90));
            let half_name = format!("  {}", half.cc.split(' ').next().unwrap_or_default());
            let own = significant(half.unnecessary.median);
            let median = significant(fct.median);
            writeln!(
                out,
                "{} {median:>8} {range:>15} {:>7}  {own:>11}",
                name(&half_name, width),
                ""
            )?;
        }
    }
    if group.len() > 1 && best.is_finite() {
        writeln!(out, "\n* within 5 % of the shortest median")?;
    }
    Ok(())
}

/// Whether the clients keep time by themselves: then not the whole flow is timed but each exchange.
fn is_periodic(group: &[&CellResult]) -> bool {
    group.iter().all(|result| result.cell.fct_limit_s == 0.0)
}

/// The times that a cell is judged by.
fn times(result: &CellResult) -> &Summary {
    if is_periodic(&[result]) { &result.cell.duration } else { &result.cell.fct }
}

/// Four significant digits at most, no exponent.
pub(crate) fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 10.0 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}
