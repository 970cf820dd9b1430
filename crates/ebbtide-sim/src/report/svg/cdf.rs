//! Cumulative distributions, one curve per congestion control, labelled on the curve.

use super::axis::Domain;
use super::{Anchor, Svg, Words, polyline};
use crate::report::text::brief;

/// One curve through equally spaced quantiles, 0 to 100 %.
pub(crate) struct Curve<'a> {
    /// Name of the control.
    pub(crate) name: String,
    /// Its colour class.
    pub(crate) class: String,
    /// The quantiles.
    pub(crate) quantiles: &'a [f64],
    /// Shown when the curve is pointed at.
    pub(crate) tip: String,
}

/// What the curves have in common.
pub(crate) struct Frame<'a> {
    /// Heading inside the drawing; may be empty.
    pub(crate) heading: &'a str,
    /// Axis title with its unit.
    pub(crate) axis: &'a str,
    /// Range and scale.
    pub(crate) domain: Domain,
    /// The physical limit, if there is one.
    pub(crate) limit: Option<f64>,
    /// Width of the drawing.
    pub(crate) width: f64,
    /// Draw every so-manieth quantile.
    pub(crate) every: usize,
}

const LEFT: f64 = 40.0;

/// More curves than this have no labels on them; the legend tells them apart.
const MOST_LABELS: usize = 8;

/// Draws the curves.
pub(crate) fn draw(curves: &[Curve<'_>], frame: &Frame<'_>, words: &Words) -> String {
    let heading = if frame.heading.is_empty() { 0.0 } else { 22.0 };
    let top = heading + 26.0;
    let bottom = top + (frame.width * 0.38).clamp(170.0, 280.0);
    let right = frame.width - 12.0;
    let mut svg = Svg::new(frame.width, bottom + 38.0);
    let x = frame.domain.place(LEFT, right);
    let y = Domain::linear(0.0, 100.0).place(bottom, top);
    svg.text((0.0, 14.0), Anchor::Start, "head", frame.heading);
    y.draw_y(&mut svg, LEFT, right, "clients done (%)");
    x.draw_x(&mut svg, top, bottom, &format!("{}{})", frame.axis, frame.domain.remark()));
    if let Some(limit) = frame.limit.filter(|limit| limit.is_finite() && *limit > 0.0) {
        let at = x.at(limit);
        svg.line((at, top - 4.0), (at, bottom), "limit");
        let anchor = if at > right - 30.0 { Anchor::End } else { Anchor::Middle };
        svg.text((at, top - 8.0), anchor, "limit-text", &format!("limit {}", brief(limit)));
    }
    for curve in curves.iter().filter(|curve| curve.quantiles.len() > 1) {
        let last = curve.quantiles.len() - 1;
        let share = |index: usize| 100.0 * index as f64 / last as f64;
        let points = curve
            .quantiles
            .iter()
            .enumerate()
            .filter(|(index, value)| {
                value.is_finite() && (index.is_multiple_of(frame.every.max(1)) || *index == last)
            })
            .map(|(index, value)| (x.at(*value), y.at(share(index))));
        svg.path(&polyline(points), &format!("curve {}", curve.class), &curve.tip);
    }
    if curves.len() <= MOST_LABELS {
        label(&mut svg, curves, (top, bottom), right, |value| x.at(value));
    }
    svg.finish(words)
}

/// Labels stand right of their curves, each on a height of its own, the leftmost highest, so
/// that none covers another.
fn label(
    svg: &mut Svg,
    curves: &[Curve<'_>],
    (top, bottom): (f64, f64),
    right: f64,
    at: impl Fn(f64) -> f64,
) {
    let mut order: Vec<&Curve<'_>> = curves
        .iter()
        .filter(|curve| curve.quantiles.len() > 1 && curve.quantiles.iter().all(|q| q.is_finite()))
        .collect();
    let middle = |curve: &Curve<'_>| {
        curve.quantiles.get(curve.quantiles.len() / 2).copied().unwrap_or_default()
    };
    order.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
    let gap = ((bottom - top) * 0.8 / order.len() as f64).min(22.0);
    for (index, curve) in order.iter().enumerate() {
        // The leftmost curve lowest: its label then stands before the others begin to rise.
        let up = 14.0 + gap * index as f64;
        let share = up / (bottom - top);
        let place = (share * (curve.quantiles.len() - 1) as f64).round() as usize;
        let x = at(curve.quantiles.get(place).copied().unwrap_or_default());
        let width = 7.0 * curve.name.chars().count() as f64;
        let class = format!("on-curve {}", curve.class);
        if x + 8.0 + width > right {
            svg.text((x - 8.0, bottom - up + 4.0), Anchor::End, &class, &curve.name);
        } else {
            svg.text((x + 8.0, bottom - up + 4.0), Anchor::Start, &class, &curve.name);
        }
    }
}
