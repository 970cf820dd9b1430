//! Cumulative distributions, one curve per congestion control, labelled on the curve.

use super::axis::Domain;
use super::{Anchor, Descriptions, Svg, polyline};
use crate::text::brief;

/// One curve through equally spaced quantiles, 0 to 100 %.
pub(crate) struct Curve<'a> {
    /// Name of the control.
    pub(crate) name: String,
    /// Its colour class.
    pub(crate) class: String,
    /// The quantiles.
    pub(crate) quantiles: &'a [f64],
    /// The share that the last of them stands for, %: what is above never comes.
    pub(crate) top: f64,
    /// Shown when the curve is pointed at.
    pub(crate) tip: String,
}

/// Heading, axes and settings that all curves share.
pub(crate) struct CdfFrame<'a> {
    /// Heading inside the drawing; may be empty.
    pub(crate) heading: &'a str,
    /// Axis title with its unit.
    pub(crate) axis: &'a str,
    /// Title of the axis of shares: the items of which they are a share.
    pub(crate) share: &'a str,
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
pub(crate) fn draw(curves: &[Curve<'_>], frame: &CdfFrame<'_>, words: &Descriptions) -> String {
    let heading = if frame.heading.is_empty() { 0.0 } else { 22.0 };
    let top = heading + 40.0;
    let bottom = top + (frame.width * 0.38).clamp(170.0, 280.0);
    let right = frame.width - 12.0;
    let mut svg = Svg::new(frame.width, bottom + 38.0);
    let x = frame.domain.place(LEFT, right);
    let y = Domain::linear(0.0, 100.0).place(bottom, top);
    svg.text((0.0, 14.0), Anchor::Start, "head", frame.heading);
    y.draw_y(&mut svg, LEFT, right, "");
    svg.text((2.0, heading + 12.0), Anchor::Start, "title", frame.share);
    x.draw_x(&mut svg, top, bottom, &format!("{}{})", frame.axis, frame.domain.remark()));
    if let Some(limit) = frame.limit.filter(|limit| limit.is_finite() && *limit > 0.0) {
        let at = x.position(limit);
        svg.line((at, top - 4.0), (at, bottom), "limit");
        let anchor = if at > right - 30.0 { Anchor::End } else { Anchor::Middle };
        svg.text((at, top - 8.0), anchor, "limit-text", &format!("limit {}", brief(limit)));
    }
    for curve in curves.iter().filter(|curve| curve.quantiles.len() > 1) {
        let last = curve.quantiles.len() - 1;
        let share = |index: usize| curve.top * index as f64 / last as f64;
        let points = curve
            .quantiles
            .iter()
            .enumerate()
            .filter(|(index, value)| {
                value.is_finite() && (index.is_multiple_of(frame.every.max(1)) || *index == last)
            })
            .map(|(index, value)| (x.position(*value), y.position(share(index))));
        svg.path(&polyline(points), &format!("curve {}", curve.class), &curve.tip);
    }
    if curves.len() <= MOST_LABELS {
        label(&mut svg, curves, top, bottom, right, |value| x.position(value));
    }
    svg.finish(words)
}

/// Labels stand right of their curves, each on a height of its own so that none covers
/// another, and clear of the curves beside: a thin line leads back where that is far.
fn label(
    svg: &mut Svg,
    curves: &[Curve<'_>],
    top: f64,
    bottom: f64,
    right: f64,
    at: impl Fn(f64) -> f64,
) {
    let mut order: Vec<&Curve<'_>> = curves
        .iter()
        .filter(|curve| curve.quantiles.len() > 1 && curve.quantiles.iter().all(|q| q.is_finite()))
        .collect();
    let x_at = |curve: &Curve<'_>, share: f64| {
        let share = (100.0 * share / curve.top.max(1e-9)).min(1.0);
        let place = (share * (curve.quantiles.len() - 1) as f64).round() as usize;
        at(curve.quantiles.get(place).copied().unwrap_or_default())
    };
    order.sort_by(|a, b| x_at(a, 0.5).total_cmp(&x_at(b, 0.5)));
    let gap = ((bottom - top) * 0.8 / order.len() as f64).min(24.0);
    for (index, curve) in order.iter().enumerate() {
        let up = 16.0 + gap * index as f64;
        // A label is as high as a text: look at the curves at its foot and at its head.
        let shares = [-6.0, 0.0, 6.0].map(|by| ((up + by) / (bottom - top)).clamp(0.0, 1.0));
        let width = 7.4 * curve.name.chars().count() as f64;
        let from = x_at(curve, shares[1]);
        let others = || order.iter().filter(|other| other.name != curve.name);
        let mut x = from + 8.0;
        for _ in 0..order.len() {
            let covered = others()
                .flat_map(|other| shares.map(|share| x_at(other, share)))
                .filter(|other| *other > x - 5.0 && *other < x + width + 4.0)
                .fold(f64::NEG_INFINITY, f64::max);
            x = x.max(covered + 9.0);
        }
        let class = format!("on-curve {}", curve.class);
        let y = bottom - up;
        if x + width <= right {
            if x > from + 9.0 {
                svg.line((from, y), (x - 3.0, y), &format!("leader {}", curve.class));
            }
            svg.text((x, y + 4.0), Anchor::Start, &class, &curve.name);
        } else {
            svg.text((from - 8.0, y + 4.0), Anchor::End, &class, &curve.name);
        }
    }
}
