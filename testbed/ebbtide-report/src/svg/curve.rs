//! A share of the capacity over a load on a logarithmic axis: a line per control, and the limit.

use super::axis::Domain;
use super::lines::{Line, names, runs};
use super::{Anchor, Descriptions, Svg, point, polyline};

/// Titles, places and width that all lines share.
pub(crate) struct CurveFrame<'a> {
    /// Heading inside the drawing; may be empty.
    pub(crate) heading: &'a str,
    /// Title of the horizontal axis.
    pub(crate) across: &'a str,
    /// Title of the vertical axis.
    pub(crate) axis: &'a str,
    /// Where each point of the lines stands on the horizontal axis; ascending and above zero.
    pub(crate) places: &'a [f64],
    /// The limit at each of them; empty if none is drawn.
    pub(crate) limit: &'a [f64],
    /// For each line and point, whether everything was delivered.
    pub(crate) is_complete: &'a dyn Fn(usize, usize) -> bool,
    /// Width of the drawing.
    pub(crate) width: f64,
}

const LEFT: f64 = 46.0;

/// Room at the right for names, px per character.
const CHARACTER: f64 = 7.2;

/// The name of the line above all others.
const LIMIT: &str = "limit";

/// Draws the lines, whose points are at the frame's places.
pub(crate) fn draw(lines: Vec<Line>, frame: &CurveFrame<'_>, words: &Descriptions) -> String {
    let heading = if frame.heading.is_empty() { 0.0 } else { 22.0 };
    let top = heading + 28.0;
    let bottom = top + (frame.width * 0.4).clamp(190.0, 320.0);
    let longest = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let right = frame.width - 14.0 - CHARACTER * longest.max(LIMIT.len()) as f64;
    let mut svg = Svg::new(frame.width, bottom + 38.0);
    svg.text((0.0, 14.0), Anchor::Start, "head", frame.heading);
    svg.text((2.0, heading + 14.0), Anchor::Start, "title", frame.axis);
    let y = Domain::linear(0.0, 1.0).place(bottom, top);
    y.draw_y(&mut svg, LEFT, right, "");
    let (Some(first), Some(last)) = (frame.places.first(), frame.places.last()) else {
        return svg.finish(words);
    };
    let x = Domain::logarithmic(*first, *last).place(LEFT + 10.0, right - 10.0);
    x.draw_x(&mut svg, top, bottom, &format!("{}, log scale", frame.across));
    svg.line((LEFT, bottom), (right, bottom), "axis");
    let at = |place: usize| frame.places.get(place).map_or(LEFT, |value| x.position(*value));
    let limit = frame.limit.iter().enumerate().filter(|(_, value)| value.is_finite());
    svg.path(
        &polyline(limit.map(|(place, value)| (at(place), y.position(*value)))),
        "limit unfilled",
        "",
    );
    for (index, line) in lines.iter().enumerate() {
        for run in runs(&line.points) {
            let upper = run.iter().map(|(place, mean, half)| (at(*place), y.position(mean + half)));
            let lower =
                run.iter().rev().map(|(place, mean, half)| (at(*place), y.position(mean - half)));
            let outline: Vec<String> = upper.chain(lower).map(point).collect();
            let band = format!("M{}Z", outline.join("L"));
            svg.path(&band, &format!("confidence {}", line.class), "");
            let middle = run.iter().map(|(place, mean, _)| (at(*place), y.position(*mean)));
            svg.path(&polyline(middle), &format!("curve {}", line.class), &line.tip);
            for (place, mean, _) in run {
                let mark = if (frame.is_complete)(index, place) { "inside" } else { "outside" };
                svg.dot((at(place), y.position(mean)), 3.0, &format!("{mark} {}", line.class), "");
            }
        }
    }
    let mut named = lines;
    if let Some(end) = frame.limit.last().filter(|end| end.is_finite()) {
        let (name, class, tip) = (LIMIT.to_owned(), "up".to_owned(), String::new());
        named.push(Line { name, class, points: vec![Some((*end, 0.0))], tip });
    }
    names(&mut svg, &named, top, bottom, right, |value| y.position(value));
    svg.finish(words)
}
