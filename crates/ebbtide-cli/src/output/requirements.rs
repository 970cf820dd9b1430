//! The table of requirements, with what each control has come to.

use super::number::{percent, significant};
use super::{name, name_width};
use ebbtide_sim::judge::{Judgement, RequirementCheck, Verdict};
use ebbtide_sim::result::Cell;
use ebbtide_sim::scenario::RequiredBound;
use std::io::{self, Write};

/// Columns of requirements beside each other at most.
const MOST_COLUMNS: usize = 4;

/// Prints the requirements of a setting, if it has any.
pub(super) fn rows(out: &mut impl Write, cells: &[&Cell], verdict: &Verdict) -> io::Result<()> {
    let Some(first) = cells.first() else { return Ok(()) };
    let width = name_width(cells.iter().map(|cell| &cell.cc), 12, 18) + 1;
    let count = first.outcome.checks.len();
    for start in (0..count).step_by(MOST_COLUMNS) {
        let columns = |cell: &Cell| -> Vec<RequirementCheck> {
            cell.outcome.checks.iter().skip(start).take(MOST_COLUMNS).cloned().collect()
        };
        let of = |text: fn(&RequirementCheck) -> String, checks: &[RequirementCheck]| -> String {
            checks.iter().map(|check| format!(" {:>11}", text(check))).collect()
        };
        let head = columns(first);
        writeln!(out)?;
        if head.iter().any(|check| !check.class.is_empty()) {
            let class = |check: &RequirementCheck| check.class.chars().take(11).collect();
            writeln!(out, "{:width$}{:9}{}", "", "", of(class, &head))?;
        }
        let heading = |check: &RequirementCheck| check.requirement.figure.heading().to_owned();
        writeln!(out, "{:width$}{:9}{}", "required", "", of(heading, &head))?;
        writeln!(out, "{:width$}{:9}{}", "", "", of(bound, &head))?;
        for cell in cells {
            writeln!(
                out,
                "{}{:9}{}",
                name(&cell.cc, width),
                verdict.judgement_of(&cell.cc).map_or("", Judgement::word),
                of(found, &columns(cell)),
            )?;
        }
    }
    Ok(())
}

fn value(check: &RequirementCheck, value: f64) -> String {
    match check.requirement.figure.bound() {
        RequiredBound::AtLeast => percent(value),
        RequiredBound::AtMost => significant(value),
    }
}

fn bound(check: &RequirementCheck) -> String {
    let side = match check.requirement.figure.bound() {
        RequiredBound::AtLeast => "≥",
        RequiredBound::AtMost => "≤",
    };
    format!("{side} {}", value(check, check.requirement.wanted))
}

fn found(check: &RequirementCheck) -> String {
    let mark = if check.met().is_met() { "" } else { "! " };
    let found = check.near_miss().unwrap_or_else(|| value(check, check.found));
    format!("{mark}{found}")
}
