//! The table of `run --until`, for a terminal of 80 columns.

use super::{NAME, name, name_width};
use crate::text::paragraph;
use ebbtide_sim::result::{BreakingPoint, MetSide, UntilPoint, answer};
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
    writeln!(
        out,
        "\n{:width$} {:>16} {:>16} {:>16}",
        "control", "meets", "certainly", "fails from"
    )?;
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
    paragraph(out, "", &answer(&found.points))?;
    writeln!(out)?;
    paragraph(
        out,
        "",
        "meets: the last value that was tried whose figures meet the requirements. certainly, fails from: the last \
         one whose figures meet them, and the first one whose figures miss them, by more than their 95 % confidence \
         intervals.",
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

/// Says how to find what would mend requirements that no control meets.
pub(crate) fn write_hint(out: &mut impl Write) -> io::Result<()> {
    writeln!(out)?;
    paragraph(
        out,
        "",
        "The same command with --mend searches the rate, the buffer, the period and the number of devices with which \
         a control does.",
    )
}

/// Prints which value of each key would mend the requirements.
pub(crate) fn write_remedies(out: &mut impl Write, all: &[UntilResults]) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let enough: Vec<String> = all.iter().filter_map(remedy).collect();
    let without = all.iter().filter(|found| remedy(found).is_none());
    let not: Vec<&str> =
        without.filter_map(|found| Some(found.points.first()?.key.as_str())).collect();
    let mut text = match enough.as_slice() {
        [] => "Nothing that was tried is enough by itself.".to_owned(),
        enough => format!("Enough, each by itself: {}.", enough.join("; ")),
    };
    if !not.is_empty() {
        let not = not.join(", ");
        text.push_str(&format!(" At no value that was tried: {not}."));
    }
    paragraph(out, "", &text)
}

/// Such as "rate from 400 kbit/s (cocoa)": the value nearest to the scenario's, and its control. `None` if no
/// value that was tried is enough.
fn remedy(found: &UntilResults) -> Option<String> {
    let mended = |point: &&BreakingPoint| matches!(point.side(), MetSide::Above | MetSide::Below);
    let place = |point: &BreakingPoint| point.meets().map_or(f64::NAN, |one| one.place);
    let mending = || found.points.iter().filter(mended);
    let above = mending().filter(|point| point.side() == MetSide::Above);
    let nearest = above.min_by(|a, b| place(a).total_cmp(&place(b)));
    let below = mending().filter(|point| point.side() == MetSide::Below);
    let nearest = nearest.or(below.max_by(|a, b| place(a).total_cmp(&place(b))));
    nearest.map(|point| format!("{} {} ({})", point.key, meets(point), point.cc))
}
