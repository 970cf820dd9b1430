//! The table of `run --until`, for a terminal of 80 columns.

use super::{NAME, name, name_width};
use crate::text::paragraph;
use ebbtide_sim::result::{BreakingPoint, MetSide, UntilPoint};
use ebbtide_sim::run::UntilResults;
use std::io::{self, Write};

/// Prints up to which value of the key each control meets the requirements.
pub(crate) fn write(out: &mut impl Write, found: &UntilResults) -> io::Result<()> {
    let campaign = &found.campaign;
    let Some(first) = found.points.first() else { return Ok(()) };
    let plural = if campaign.reps == 1 { "" } else { "s" };
    let required = match first.required.as_slice() {
        [] => "no collapse".to_owned(),
        required => required.join(", "),
    };
    let head = format!(
        "{}: how far each control meets the requirements over {}; required: {required}; {} replication{plural} \
         at each value, seed {}",
        campaign.source.place, first.key, campaign.reps, campaign.seed
    );
    paragraph(out, "", &head)?;
    let width = name_width(found.points.iter().map(|point| &point.cc), 12, NAME);
    writeln!(out, "\n{:width$} {:>16} {:>16} {:>16}", "control", "meets", "surely", "fails from")?;
    for point in &found.points {
        let text = |one: Option<&UntilPoint>| one.map_or("-".to_owned(), |one| one.value.clone());
        writeln!(
            out,
            "{} {:>16} {:>16} {:>16}",
            name(&point.cc, width),
            meets(point),
            text(point.surely_meets()),
            text(point.surely_misses()),
        )?;
    }
    writeln!(out)?;
    paragraph(
        out,
        "",
        "meets: the last value at which the figures meet the requirements; surely, fails from: beyond the 95 % \
         confidence intervals.",
    )
}

/// Such as "up to 320".
fn meets(point: &BreakingPoint) -> String {
    let value = point.meets().map_or("", |one| &one.value);
    match point.side() {
        MetSide::Below => format!("up to {value}"),
        MetSide::Above => format!("from {value}"),
        MetSide::Everywhere => format!("beyond {value}"),
        MetSide::Nowhere => "nowhere".to_owned(),
    }
}

/// Prints which value of each key would mend the requirements.
pub(crate) fn write_remedies(out: &mut impl Write, all: &[UntilResults]) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let remedies: Vec<String> = all.iter().map(remedy).collect();
    paragraph(out, "", &format!("Enough, each by itself: {}.", remedies.join("; ")))
}

/// Such as "rate from 400 kbit/s (cocoa)": the value nearest to the scenario's, and its control.
fn remedy(found: &UntilResults) -> String {
    let mended = |point: &&BreakingPoint| matches!(point.side(), MetSide::Above | MetSide::Below);
    let place = |point: &BreakingPoint| point.meets().map_or(f64::NAN, |one| one.place);
    let mending = || found.points.iter().filter(mended);
    let above = mending().filter(|point| point.side() == MetSide::Above);
    let nearest = above.min_by(|a, b| place(a).total_cmp(&place(b)));
    let below = mending().filter(|point| point.side() == MetSide::Below);
    let nearest = nearest.or(below.max_by(|a, b| place(a).total_cmp(&place(b))));
    match (nearest, found.points.first()) {
        (Some(point), _) => format!("{} {} ({})", point.key, meets(point), point.cc),
        (None, Some(first)) => format!("{} at no value that was tried", first.key),
        (None, None) => String::new(),
    }
}
