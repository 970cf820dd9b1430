//! A figure over a swept setting: a line per control with the confidence band of each point.

use super::axis::Domain;
use super::{Anchor, Descriptions, Svg, point, polyline};

/// One line.
pub(crate) struct Line {
    /// Name of the control.
    pub(crate) name: String,
    /// Its colour class.
    pub(crate) class: String,
    /// For each place of the axis the mean and half of its confidence interval; `None`: no value there.
    pub(crate) points: Vec<Option<(f64, f64)>>,
    /// Shown when the line is pointed at.
    pub(crate) tip: String,
}

/// Heading, axes and width that all lines share.
pub(crate) struct LineFrame<'a> {
    /// Heading inside the drawing; may be empty.
    pub(crate) heading: &'a str,
    /// Title of the horizontal axis.
    pub(crate) across: &'a str,
    /// Its values, as written.
    pub(crate) values: &'a [String],
    /// Title of the vertical axis: the quantity measured, with its unit.
    pub(crate) axis: &'a str,
    /// Range and scale of it.
    pub(crate) domain: Domain,
    /// Width of the drawing.
    pub(crate) width: f64,
}

const LEFT: f64 = 46.0;

/// Room at the right for names, px per character.
const CHARACTER: f64 = 7.2;

/// Draws the lines.
pub(crate) fn draw(lines: &[Line], frame: &LineFrame<'_>, words: &Descriptions) -> String {
    let heading = if frame.heading.is_empty() { 0.0 } else { 22.0 };
    let top = heading + 28.0;
    let bottom = top + (frame.width * 0.4).clamp(170.0, 300.0);
    let longest = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let right = frame.width - 14.0 - CHARACTER * longest as f64;
    let mut svg = Svg::new(frame.width, bottom + 38.0);
    let y = frame.domain.place(bottom, top);
    svg.text((0.0, 14.0), Anchor::Start, "head", frame.heading);
    y.draw_y(&mut svg, LEFT, right, "");
    svg.text(
        (2.0, heading + 14.0),
        Anchor::Start,
        "title",
        &format!("{}{}", frame.axis, frame.domain.remark()),
    );
    let steps = frame.values.len().saturating_sub(1).max(1) as f64;
    let at = |place: usize| LEFT + 10.0 + (right - LEFT - 20.0) * place as f64 / steps;
    for (place, value) in frame.values.iter().enumerate() {
        svg.line((at(place), top), (at(place), bottom), "grid");
        svg.text((at(place), bottom + 14.0), Anchor::Middle, "tick", value);
    }
    svg.line((LEFT, bottom), (right, bottom), "axis");
    svg.text(((LEFT + right) / 2.0, bottom + 31.0), Anchor::Middle, "title", frame.across);
    for line in lines {
        for run in runs(&line.points) {
            let upper = run.iter().map(|(place, mean, half)| (at(*place), y.position(mean + half)));
            let lower =
                run.iter().rev().map(|(place, mean, half)| (at(*place), y.position(mean - half)));
            let outline: Vec<String> = upper.chain(lower).map(point).collect();
            svg.path(
                &format!("M{}Z", outline.join("L")),
                &format!("confidence {}", line.class),
                "",
            );
            let middle = run.iter().map(|(place, mean, _)| (at(*place), y.position(*mean)));
            svg.path(&polyline(middle), &format!("curve {}", line.class), &line.tip);
            for (place, mean, _) in run {
                svg.dot((at(place), y.position(mean)), 2.6, &format!("end-dot {}", line.class), "");
            }
        }
    }
    names(&mut svg, lines, top, bottom, right, |value| y.position(value));
    svg.finish(words)
}

/// The stretches of a line without a gap: place, mean, half of the interval.
pub(super) fn runs(points: &[Option<(f64, f64)>]) -> Vec<Vec<(usize, f64, f64)>> {
    let mut all: Vec<Vec<(usize, f64, f64)>> = vec![Vec::new()];
    for (place, value) in points.iter().enumerate() {
        match (value, all.last_mut()) {
            (Some((mean, half)), Some(run)) => run.push((place, *mean, *half)),
            _ => all.push(Vec::new()),
        }
    }
    all.retain(|run| !run.is_empty());
    all
}

/// Names stand right of the lines' last points, moved apart where they would lie on each other.
pub(super) fn names(
    svg: &mut Svg,
    lines: &[Line],
    top: f64,
    bottom: f64,
    right: f64,
    at: impl Fn(f64) -> f64,
) {
    let mut places: Vec<(f64, &Line)> = lines
        .iter()
        .filter_map(|line| {
            let (mean, _) = line.points.iter().rev().find_map(|value| *value)?;
            Some((at(mean), line))
        })
        .collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    let gap = 14.0f64.min((bottom - top) / places.len().max(1) as f64);
    let mut next = f64::NEG_INFINITY;
    for (height, _) in &mut places {
        *height = height.max(next);
        next = *height + gap;
    }
    let mut below = bottom - 6.0;
    for (height, line) in places.iter_mut().rev() {
        *height = height.min(below);
        below = *height - gap;
        let class = format!("on-curve {}", line.class);
        svg.text((right + 6.0, *height + 4.0), Anchor::Start, &class, &line.name);
    }
}
