//! The table of the classes of clients, and the judgement on each.

use super::number::{percent, significant};
use super::{NAME, name, name_width};
use crate::text::paragraph;
use ebbtide_sim::judge::{Judgement, Percentile};
use ebbtide_sim::result::judge_classes;
use ebbtide_sim::run::CellResult;
use std::io::{self, Write};

/// Prints each class by itself, if there are classes.
pub(super) fn rows(
    out: &mut impl Write,
    group: &[&CellResult],
    percentile: Percentile,
) -> io::Result<()> {
    let width = name_width(group.iter().map(|result| &result.cell.cc), 12, NAME);
    for (cells, verdict) in judge_classes(group.iter().map(|result| &result.cell), percentile) {
        let Some(first) = cells.first() else { continue };
        let own = first.own_control.as_ref();
        let own = own.map_or_else(String::new, |own| format!(", always {own}"));
        let plural = if first.clients == 1 { "" } else { "s" };
        writeln!(out, "\nclass {}: {} client{plural}{own}", first.class, first.clients)?;
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
