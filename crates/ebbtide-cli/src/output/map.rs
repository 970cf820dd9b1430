//! The output of `map`.

use super::{name, name_width};
use crate::text::paragraph;
use ebbtide_map::{Map, MapSummary, Plan, RegretSummary, RuleStep, Spread};
use std::io::{self, Write};

/// The strata, the tables of all controls over all networks and in each stratum, and what the rule
/// says. No line is longer than 80 columns.
pub(crate) fn write(out: &mut impl Write, plan: &Plan, map: &Map) -> io::Result<()> {
    let replications = if plan.reps == 1 { "replication" } else { "replications" };
    writeln!(
        out,
        "{}: {} networks, {} {replications}, seed {}, {} s of processor time\n",
        plan.preset,
        map.cells.len(),
        plan.reps,
        plan.seed,
        seconds(map.cost_s.iter().sum()),
    )?;
    let width = name_width(map.controls.iter(), 12, 14);
    if plan.strata.len() > 1 {
        strata(out, plan, map)?;
        writeln!(out)?;
    }
    header(out, width)?;
    for summary in map.summaries() {
        row(out, width, &summary)?;
    }
    if let Some(chance) = map.chance() {
        writeln!(out, "{} {:>6} {}", name("chance", width), "", figures(&chance))?;
    }
    if plan.strata.len() > 1 {
        for (place, stratum) in plan.strata.iter().enumerate() {
            let networks = map.cells.iter().filter(|cell| cell.network.stratum == place).count();
            writeln!(out, "\n{} devices: {networks} networks", stratum.name)?;
            for summary in map.summaries_in(place) {
                row(out, width, &summary)?;
            }
        }
    }
    if let Some(first) = map.summaries().first() {
        writeln!(out)?;
        let text = format!(
            "Shares, times and transmissions are compared with the best published control of each network: \
             share in points, means of ratios geometric, transmissions those of fasor-token. \
             {} networks are asked for more than they carry; a control is unsafe if less than half of \
             the capacity is delivered then. The column before the shares counts the networks in which \
             it is unsafe and another control is safe, beyond chance, and all in which it is unsafe.",
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
    rule(out, map)?;
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

/// How many networks each stratum has, and the processor time that they took.
fn strata(out: &mut impl Write, plan: &Plan, map: &Map) -> io::Result<()> {
    writeln!(out, "{:20} {:>9} {:>11} {:>10}", "devices", "networks", "overloaded", "time, s")?;
    for (place, stratum) in plan.strata.iter().enumerate() {
        let networks = map.cells.iter().filter(|cell| cell.network.stratum == place).count();
        let overloaded = map.summaries_in(place).first().map_or(0, |summary| summary.overloaded);
        writeln!(
            out,
            "{:20} {networks:>9} {overloaded:>11} {:>10}",
            stratum.name,
            seconds(map.cost_s[place])
        )?;
    }
    Ok(())
}

fn header(out: &mut impl Write, width: usize) -> io::Result<()> {
    writeln!(
        out,
        "{:width$} {:>9} {:>14} {:>17} {:>17} {:>5}",
        "", "unsafe", "share, points", "median", "90th percentile", "send"
    )?;
    writeln!(
        out,
        "{:width$} {:>9} {:>14} {:>17} {:>17} {:>5}",
        "control", "alone, all", "mean, worst", "mean, 95 %, worst", "mean, 95 %, worst", "mean"
    )
}

fn row(out: &mut impl Write, width: usize, s: &MapSummary) -> io::Result<()> {
    writeln!(
        out,
        "{} {:>4} {:>4} {}",
        name(&s.cc, width),
        s.unsafe_where_another_is_safe,
        s.unsafe_in,
        figures(&s.regret)
    )
}

/// The columns of a row from the shares on.
fn figures(regret: &RegretSummary) -> String {
    format!(
        "{:>14} {:>17} {:>17} {:>5}",
        format!("{:+6.2} {:+7.2}", 100.0 * regret.share_mean, 100.0 * regret.share_worst),
        spread(regret.median),
        spread(regret.p90),
        regret.cost.map_or_else(|| "-".to_owned(), |cost| short(cost.mean)),
    )
}

fn spread(spread: Option<Spread>) -> String {
    let Some(s) = spread else { return "-".to_owned() };
    format!("{} {:>5} {:>5}", short(s.mean), short(s.p95), short(s.worst))
}

/// A ratio in at most five characters.
fn short(ratio: f64) -> String {
    match ratio {
        r if r < 9.9995 => format!("{r:.3}"),
        r if r < 99.95 => format!("{r:.1}"),
        r if r < 99_999.5 => format!("{r:.0}"),
        r => format!("{r:.0e}"),
    }
}

/// Seconds without decimals where they say nothing.
fn seconds(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// The control that the rule chooses, and the step at which each other one falls.
fn rule(out: &mut impl Write, map: &Map) -> io::Result<()> {
    let chosen = map.chosen();
    let name = |place: usize| map.controls[place].as_str();
    let Some(best) = chosen.best else { return Ok(()) };
    writeln!(out)?;
    let equals: Vec<&str> =
        chosen.equals.iter().filter(|place| **place != best).map(|place| name(*place)).collect();
    let equal = match equals.as_slice() {
        [] => String::new(),
        equals => format!(" No step decides between it and {}.", equals.join(", ")),
    };
    paragraph(out, "", &format!("The rule chooses {}.{equal}", name(best)))?;
    for step in RuleStep::ALL {
        let beaten = chosen.beaten.iter().filter(|one| one.step == step);
        let beaten: Vec<String> = beaten
            .map(|one| {
                let by = match step {
                    RuleStep::Safety | RuleStep::Share => format!(
                        "{:.2} ± {:.2} % behind {}",
                        100.0 * one.mean,
                        100.0 * one.half,
                        name(one.by)
                    ),
                    RuleStep::Time | RuleStep::Transmissions => format!(
                        "{:.0} ± {:.0} % behind {}",
                        100.0 * one.mean,
                        100.0 * one.half,
                        name(one.by)
                    ),
                };
                format!("{} ({by})", name(one.place))
            })
            .collect();
        if !beaten.is_empty() {
            paragraph(out, "  ", &format!("By {step} it falls before: {}.", beaten.join("; ")))?;
        }
    }
    Ok(())
}
