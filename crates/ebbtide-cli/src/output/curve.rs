//! The table of `run --curve`, for a terminal of 80 columns.

use crate::text::paragraph;
use ebbtide_sim::result::Results;
use ebbtide_sim::result::{CurveLine, CurvePoint, curves};
use ebbtide_sim::run::{Campaign, left_out, report};
use std::io::{self, Write};

/// Columns of a terminal.
const WIDTH: usize = 80;

/// The columns before those of the controls: value, exchanges, limit.
const FIXED: usize = 11 + 10 + 7;

/// A control delivers everything if it misses less than this share.
const NEARLY_ALL: f64 = 0.999;

/// Prints the goodput of each control over the key.
pub(crate) fn write(
    out: &mut impl Write,
    campaign: &Campaign,
    results: &Results,
) -> io::Result<()> {
    let data = report(campaign, results);
    let Some(curve) = &data.curve else { return Ok(()) };
    let plural = if campaign.reps == 1 { "" } else { "s" };
    let head = format!(
        "{}: goodput over {} as a share of the link's capacity, and the share delivered where it is less than \
         100 %; {} replication{plural}, seed {}; at most {} exchanges a point",
        campaign.source.place, curve.key, campaign.reps, campaign.seed, curve.work
    );
    paragraph(out, "", &head)?;
    let all = curves(&data);
    let mut rest = all.as_slice();
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|line| line.setting == first.setting).count();
        let (own, others) = rest.split_at(count);
        rest = others;
        if !first.setting.is_empty() {
            writeln!(out)?;
            paragraph(out, "", &first.setting)?;
        }
        for block in blocks(own) {
            writeln!(out)?;
            rows(out, &curve.key, block)?;
        }
        writeln!(out)?;
        for line in own {
            in_words(out, &curve.key, line)?;
        }
    }
    if let Some(left_out) = left_out(campaign, results) {
        writeln!(out)?;
        paragraph(out, "", &left_out)?;
    }
    Ok(())
}

/// The width of a control's column.
fn width(line: &CurveLine) -> usize {
    line.cc.chars().count().max(9) + 2
}

/// As many controls beside each other as fit.
fn blocks(lines: &[CurveLine]) -> Vec<&[CurveLine]> {
    let mut all = Vec::new();
    let (mut from, mut used) = (0, FIXED);
    for (place, line) in lines.iter().enumerate() {
        if place > from && used + width(line) > WIDTH {
            all.push(&lines[from..place]);
            (from, used) = (place, FIXED);
        }
        used += width(line);
    }
    all.push(&lines[from..]);
    all
}

fn rows(out: &mut impl Write, key: &str, lines: &[CurveLine]) -> io::Result<()> {
    let Some(longest) = lines.iter().max_by_key(|line| line.points.len()) else { return Ok(()) };
    write!(out, "{:11}{:>10}{:>7}", short(key), "exchanges", "limit")?;
    for line in lines {
        write!(out, "{:>1$}", line.cc, width(line))?;
    }
    writeln!(out)?;
    for point in &longest.points {
        let row = format!("{:11}{:>10}{:>7}", point.value, point.exchanges, share(point.limit));
        write!(out, "{row}")?;
        for line in lines {
            let own = line.points.iter().find(|own| own.place == point.place);
            write!(out, "{:>1$}", own.map_or_else(|| "-".to_owned(), entry), width(line))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The last part of a dotted key, if that is short enough.
fn short(key: &str) -> String {
    key.rsplit('.').next().unwrap_or(key).chars().take(11).collect()
}

fn entry(point: &CurvePoint) -> String {
    let goodput = share(point.goodput.mean);
    let delivered = point.delivered.mean;
    if delivered >= NEARLY_ALL {
        return format!("{goodput}     ");
    }
    // Never rounded up to everything.
    format!("{goodput} {:>2.0} %", (100.0 * delivered).min(99.0))
}

fn share(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { "-".to_owned() }
}

fn in_words(out: &mut impl Write, key: &str, line: &CurveLine) -> io::Result<()> {
    let Some(best) = line.best() else { return Ok(()) };
    let fall = match line.collapse() {
        Some(point) => format!("less than half of that at {}", point.value),
        None => "never less than half of that beyond".to_owned(),
    };
    let text = format!(
        "{}: most goodput {} at {} {}, {fall}.",
        line.cc,
        share(best.goodput.mean),
        short(key),
        best.value
    );
    paragraph(out, "", &text)
}
