//! Values over time: lines for what always has a value, dots for what happens.

use super::axis::Domain;
use super::{Anchor, Descriptions, PANEL, Svg, push_point};
use crate::text::shortened;

/// One line or cloud of dots.
pub(crate) struct TimeCurve<'a> {
    /// Name of the trace, shown when the trace is pointed at; may be empty.
    pub(crate) name: &'a str,
    /// Class of its look.
    pub(crate) class: String,
    /// (seconds, value) in time order.
    pub(crate) points: &'a [(f64, f64)],
    /// The band around a line; may be empty.
    pub(crate) band: &'a [BandPoint],
    /// Values are divided by this before they are drawn.
    pub(crate) unit: f64,
    /// Dots instead of a line.
    pub(crate) dots: bool,
}

/// A point of a band.
#[derive(Copy, Clone, Debug)]
pub(crate) struct BandPoint {
    /// Seconds.
    pub(crate) at: f64,
    /// Its lower end.
    pub(crate) low: f64,
    /// Its upper end.
    pub(crate) high: f64,
}

/// Headings and axes that all traces share.
pub(crate) struct ChartFrame<'a> {
    /// Heading inside the drawing.
    pub(crate) heading: &'a str,
    /// Second line of the heading; may be empty.
    pub(crate) settings: &'a str,
    /// Title of the vertical axis with its unit, without the closing bracket.
    pub(crate) axis: &'a str,
    /// Range of what runs across: time.
    pub(crate) time: Domain,
    /// Title of that axis with its unit, without the closing bracket.
    pub(crate) across: &'a str,
    /// Range of values.
    pub(crate) values: Domain,
}

const LEFT: f64 = 46.0;

/// Columns of the smallest and the largest value in which a line is drawn at most.
const COLUMNS: f64 = 150.0;

/// Draws the traces.
pub(crate) fn draw(
    traces: &[TimeCurve<'_>],
    frame: &ChartFrame<'_>,
    words: &Descriptions,
) -> String {
    let top = if frame.settings.is_empty() { 44.0 } else { 60.0 };
    let (bottom, right) = (top + 130.0, PANEL - 12.0);
    let mut svg = Svg::new(PANEL, bottom + 38.0);
    let x = frame.time.place(LEFT, right);
    let y = frame.values.place(bottom, top);
    svg.text((0.0, 14.0), Anchor::Start, "head", frame.heading);
    svg.text((0.0, 30.0), Anchor::Start, "tick", &shortened(frame.settings, 60));
    y.draw_y(&mut svg, LEFT, right, &format!("{}{})", frame.axis, frame.values.remark()));
    x.draw_x(&mut svg, top, bottom, &format!("{}{})", frame.across, frame.time.remark()));
    for trace in traces {
        if !trace.band.is_empty() {
            let upper = trace.band.iter().map(|one| (one.at, one.high));
            let lower = trace.band.iter().rev().map(|one| (one.at, one.low));
            let mut outline = String::new();
            for (at, value) in upper.chain(lower) {
                outline.push(if outline.is_empty() { 'M' } else { 'L' });
                push_point(&mut outline, (x.position(at), y.position(value / trace.unit)));
            }
            outline.push('Z');
            svg.path(&outline, &format!("confidence {}", trace.class), "");
        }
        let points = trace
            .points
            .iter()
            .filter(|(at, value)| at.is_finite() && value.is_finite())
            .map(|(at, value)| (x.position(*at), y.position(value / trace.unit)));
        let d = if trace.dots { cloud(points) } else { envelope(points, right - LEFT) };
        if !d.is_empty() {
            let kind = if trace.dots { "cloud" } else { "trace" };
            svg.path(&d, &format!("{kind} {}", trace.class), trace.name);
        }
    }
    svg.finish(words)
}

/// Dots on whole pixels, each once.
fn cloud(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut places: Vec<(i64, i64)> =
        points.map(|(x, y)| (x.round() as i64, y.round() as i64)).collect();
    places.sort_unstable();
    places.dedup();
    places.iter().map(|(x, y)| format!("M{x} {y}h0")).collect()
}

/// A line that keeps first, smallest, largest and last value of each column.
fn envelope(points: impl Iterator<Item = (f64, f64)>, width: f64) -> String {
    let column = |x: f64| (x * COLUMNS / width) as i64;
    let mut d = String::new();
    let mut bundle: Vec<(f64, f64)> = Vec::new();
    for at in points {
        if bundle.first().is_some_and(|first| column(first.0) != column(at.0)) {
            flush(&mut d, &mut bundle);
        }
        bundle.push(at);
    }
    flush(&mut d, &mut bundle);
    d
}

fn flush(d: &mut String, bundle: &mut Vec<(f64, f64)>) {
    let by_height = |a: &usize, b: &usize| bundle[*a].1.total_cmp(&bundle[*b].1);
    let Some(last) = bundle.len().checked_sub(1) else { return };
    let lowest = (0..=last).min_by(by_height).unwrap_or(0);
    let highest = (0..=last).max_by(by_height).unwrap_or(0);
    let mut keep = [0, lowest, highest, last];
    keep.sort_unstable();
    let mut before = None;
    for index in keep {
        if before.replace(index) != Some(index) {
            d.push(if d.is_empty() { 'M' } else { 'L' });
            push_point(d, bundle[index]);
        }
    }
    bundle.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_keeps_the_peak_and_drops_what_is_between() {
        let points =
            (0..10_000).map(|i| (f64::from(i) / 40.0, if i == 5_003 { 99.0 } else { 1.0 }));
        let d = envelope(points, 250.0);
        assert!(d.contains(" 99L"));
        assert!(d.len() < 12_000, "{}", d.len());
    }

    #[test]
    fn dots_on_the_same_pixel_are_drawn_once() {
        assert_eq!(cloud([(1.2, 3.0), (0.9, 3.4), (7.0, 3.0)].into_iter()), "M1 3h0M7 3h0");
    }
}
