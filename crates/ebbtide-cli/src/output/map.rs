//! The output of `map`.

use super::{name, name_width};
use crate::text::paragraph;
use ebbtide_sim::map::{Map, Plan, RegretSummary, Spread};
use std::io::{self, Write};

/// The table of all controls, and the worst networks of the compared ones.
pub(crate) fn write(out: &mut impl Write, plan: &Plan, map: &Map) -> io::Result<()> {
    writeln!(
        out,
        "{}: {} networks, {} replications, seed {}\n",
        plan.preset,
        map.cells.len(),
        plan.reps,
        plan.seed
    )?;
    let summaries = map.summaries();
    let width = name_width(map.controls.iter(), 12, 20) + 1;
    writeln!(
        out,
        "{:width$} {:>14} {:>18} {:>18} {:>6} {:>6}",
        "", "share, points", "median", "90th percentile", "trans-", "unsafe"
    )?;
    writeln!(
        out,
        "{:width$} {:>14} {:>18} {:>18} {:>6}",
        "control", "5 %, worst", "mean, 95 %, worst", "mean, 95 %, worst", "miss."
    )?;
    for s in &summaries {
        writeln!(out, "{} {:>6}", figures(&s.cc, width, &s.regret), s.unsafe_in)?;
    }
    if let Some(chance) = map.chance() {
        writeln!(out, "{}", figures("chance", width, &chance))?;
    }
    if let Some(first) = summaries.first() {
        writeln!(out)?;
        let text = format!(
            "Against the best published control of each network; means are geometric, transmissions \
             are those of fasor-token. {} networks are asked for more than they carry; unsafe are those \
             where less than half of the capacity is delivered then.",
            first.overloaded
        );
        paragraph(out, "", &text)?;
    }
    if map.chance().is_some() {
        writeln!(out)?;
        let text = "Chance: the best published controls of each network, measured again in as many other \
                    replications and compared with themselves.";
        paragraph(out, "", text)?;
    }
    for cc in &plan.cc {
        let worst = map.worst(plan, cc, 2);
        if worst.is_empty() {
            continue;
        }
        writeln!(out, "\nWorst for {cc}:")?;
        for one in worst {
            let value = if one.measure == "share" {
                format!("{:+.2} points", 100.0 * one.value)
            } else {
                format!("{:.3}", one.value)
            };
            writeln!(
                out,
                "  {} {value}, network {}:\n    {}",
                one.measure, one.network, one.command
            )?;
        }
    }
    if !map.left_out.is_empty() {
        let numbers: Vec<String> = map.left_out.iter().map(u32::to_string).collect();
        writeln!(out)?;
        let text = format!(
            "Left out because the time limit was reached: networks {}.",
            numbers.join(", ")
        );
        paragraph(out, "", &text)?;
    }
    Ok(())
}

/// The columns of a row up to the transmissions.
fn figures(of: &str, width: usize, regret: &RegretSummary) -> String {
    format!(
        "{} {:>14} {:>18} {:>18} {:>6}",
        name(of, width),
        format!("{:+6.2} {:+7.2}", 100.0 * regret.share_p5, 100.0 * regret.share_worst),
        spread(regret.median),
        spread(regret.p90),
        regret.cost.map_or_else(|| "-".to_owned(), |cost| format!("{:.3}", cost.mean)),
    )
}

fn spread(spread: Option<Spread>) -> String {
    let Some(s) = spread else { return "-".to_owned() };
    format!("{:.3} {:5.2} {:6.2}", s.mean, s.p95, s.worst)
}
