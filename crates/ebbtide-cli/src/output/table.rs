//! The table of `run`, for a terminal of 80 columns.

use super::number::{percent, significant};
use super::{classes, flows, group, name, name_width, requirements};
use crate::text::paragraph;
use ebbtide_sim::judge::{Judgement, Verdict};
use ebbtide_sim::result::metrics::{GROUPS, MESH};
use ebbtide_sim::result::{Cell, Summary};
use ebbtide_sim::run::{Campaign, CellResult, CellSpec, Results, left_out};
use std::io::{self, Write};

/// Prints a table for each combination of settings, with controls in their order, and the verdict.
pub(crate) fn write(
    out: &mut impl Write,
    campaign: &Campaign,
    results: &Results,
) -> io::Result<()> {
    let mut is_first = true;
    for (results, verdict) in results.judged(campaign.percentile) {
        if !is_first {
            writeln!(out)?;
        }
        is_first = false;
        heading(out, campaign, &results)?;
        let cells: Vec<&Cell> = results.iter().map(|result| &result.cell).collect();
        let mut has_own_figures = false;
        if cells.iter().all(|cell| MESH.is_of(cell)) {
            mesh(out, &cells)?;
        } else if let Some(flows) = flows::cells(&results) {
            has_own_figures = true;
            flows::rows(out, &flows)?;
        } else {
            rows(out, &results, &verdict)?;
        }
        for part in GROUPS.iter().filter(|group| !group.terminal_title.is_empty()) {
            if cells.iter().any(|cell| part.is_of(cell)) {
                writeln!(out)?;
                group::rows(out, &cells, part)?;
            }
        }
        requirements::rows(out, &cells, &verdict)?;
        if !has_own_figures || cells.iter().any(|cell| !cell.outcome.checks.is_empty()) {
            writeln!(out)?;
            paragraph(out, "", &verdict.sentence)?;
        }
        classes::rows(out, &results, campaign.percentile)?;
    }
    notes(out, campaign, results)?;
    let Some(left_out) = left_out(campaign, results) else { return Ok(()) };
    if !results.cells.is_empty() {
        writeln!(out)?;
    }
    paragraph(out, "", &left_out)
}

/// Prints the served requests of a low-power network, or the losses and their causes.
fn mesh(out: &mut impl Write, cells: &[&Cell]) -> io::Result<()> {
    group::rows(out, cells, &MESH)?;
    if cells.iter().any(|cell| cell.number("mesh.messages") > 0.0) {
        return writeln!(
            out,
            "\nworst: of all sources; events: of the reports of events; busy, queue, air, else:\n\
             % of all messages; rexmits: per message taken up; early: % of them"
        );
    }
    writeln!(out, "\ns each, retries: per request served; RTT: median without retries")?;
    let share = cells.iter().map(|cell| cell.number("mesh.no_route")).fold(0.0, f64::max);
    if share > 0.0 {
        writeln!(out, "no route: the root dropped up to {:.0} % of the datagrams", 100.0 * share)?;
    }
    Ok(())
}

/// Prints the notes on these results.
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
        // TCP has another limit, since its packets are longer.
        let limits = || group.iter().map(|result| result.cell.fct_limit_s);
        let least = significant(limits().fold(f64::INFINITY, f64::min));
        let most = significant(limits().fold(0.0, f64::max));
        let range = if least == most { least } else { format!("{least} to {most}") };
        write!(out, "; limit {range} s for the last client")?;
    }
    writeln!(out, "\n")
}

fn rows(out: &mut impl Write, group: &[&CellResult], verdict: &Verdict) -> io::Result<()> {
    let width = name_width(group.iter().map(|r| &r.cell.cc), 12, 18) + 1;
    let is_periodic = is_periodic(group);
    let (time, last) = match is_periodic {
        true => ("time, s", ["99 %", "by, s"]),
        false => ("FCT, s", ["last,", "x limit"]),
    };
    writeln!(
        out,
        "{:width$}{:9} {:>9} {:>8} {:>15} {:>8} {:>8}",
        "", "", "", "median", "10 % to 90 %", last[0], "unneces-"
    )?;
    writeln!(
        out,
        "{:width$}{:9} {:>9} {time:>8} {time:>15} {:>8} {:>8}",
        "control", "", "delivered", last[1], "sary"
    )?;
    for result in group {
        let cell = &result.cell;
        let (time, all) = (times(result), &cell.outcome.all);
        let range = format!("{} to {}", significant(time.p10), significant(time.p90));
        let never = || "never".to_owned();
        let last = match is_periodic {
            true => all.delivered_by_s[2].map_or_else(never, significant),
            false if cell.fct_limit_s > 0.0 => {
                cell.multiple().map_or_else(never, |times| format!("{times:.2}"))
            }
            false => "-".to_owned(),
        };
        writeln!(
            out,
            "{}{:9} {:>9} {:>8} {range:>15} {last:>8} {:>8}",
            name(&cell.cc, width),
            verdict.judgement_of(&cell.cc).map_or("", Judgement::word),
            percent(all.delivered),
            significant(time.median),
            percent(all.unnecessary_share),
        )?;
        for half in &result.halves {
            let fct = &half.fct;
            let range = format!("{} to {}", significant(fct.p10), significant(fct.p90));
            let half_name = format!("  {}", half.cc.split(' ').next().unwrap_or_default());
            writeln!(
                out,
                "{}{:9} {:>9} {:>8} {range:>15}",
                name(&half_name, width),
                "",
                percent(half.outcome.all.delivered),
                significant(fct.median),
            )?;
        }
    }
    Ok(())
}

/// Whether the clients send at fixed times, in which case each exchange is timed instead of the
/// whole flow.
fn is_periodic(group: &[&CellResult]) -> bool {
    group.iter().all(|result| result.cell.fct_limit_s == 0.0)
}

/// The times by which a cell is judged.
fn times(result: &CellResult) -> Summary {
    let cell = &result.cell;
    if is_periodic(&[result]) { cell.spread("exchange_duration_s") } else { cell.fct }
}
