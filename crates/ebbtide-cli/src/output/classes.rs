//! The tables of the classes of clients and of the phases of the run, and the judgement on each.

use super::number::{percent, significant};
use super::{NAME, name, name_width};
use crate::text::paragraph;
use ebbtide_sim::judge::{Judgement, Percentile};
use ebbtide_sim::result::{Cell, judge_classes, judge_phases};
use ebbtide_sim::run::CellResult;
use std::io::{self, Write};

/// Prints each class and each phase by itself, if there are such.
pub(super) fn rows(
    out: &mut impl Write,
    group: &[&CellResult],
    percentile: Percentile,
) -> io::Result<()> {
    let width = name_width(group.iter().map(|result| &result.cell.cc), 12, NAME);
    let all = || group.iter().map(|result| &result.cell);
    let classes = judge_classes(all(), percentile);
    for (cells, verdict) in classes.into_iter().chain(judge_phases(all(), percentile)) {
        let Some(first) = cells.first() else { continue };
        writeln!(out, "\n{}", heading(first))?;
        let time = if first.is_periodic { "time, s" } else { "FCT, s" };
        writeln!(
            out,
            "{:width$} {:9} {:>9} {:>8} {:>15} {:>9} {:>8}",
            "", "", "", "", "", "99 %", "unneces-"
        )?;
        writeln!(
            out,
            "{:width$} {:9} {:>9} {:>8} {time:>15} {:>9} {:>8}",
            "control", "", "delivered", "median", "by, s", "sary"
        )?;
        for cell in cells {
            let all = &cell.outcome.all;
            let time = if cell.is_periodic { cell.spread("exchange_duration_s") } else { cell.fct };
            let range = format!("{} to {}", significant(time.p10), significant(time.p90));
            let by = all.delivered_by_s[2].map_or_else(|| "never".to_owned(), significant);
            writeln!(
                out,
                "{} {:9} {:>9} {:>8} {range:>15} {by:>9} {:>8}",
                name(&cell.cc, width),
                verdict.judgement_of(&cell.cc).map_or("", Judgement::word),
                percent(all.delivered),
                significant(time.median),
                percent(all.unnecessary_share),
            )?;
        }
        writeln!(out)?;
        paragraph(out, "", &verdict.sentence)?;
    }
    Ok(())
}

/// The line above the table of a class or a phase.
fn heading(first: &Cell) -> String {
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    if !first.phase.is_empty() {
        let asked = first.outcome.asked / u64::from(first.reps.max(1));
        return format!("phase {}: {asked} exchange{}", first.phase, plural(asked));
    }
    let own = first.own_control.as_ref();
    let own = own.map_or_else(String::new, |own| format!(", always {own}"));
    let clients = first.clients;
    format!("class {}: {clients} client{}{own}", first.class, plural(clients.into()))
}
