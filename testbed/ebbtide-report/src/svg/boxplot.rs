//! Box plots, one row per congestion control: box 25 to 75 %, whiskers 10 and 90 %, a line at
//! the median, dots at the smallest and the largest value.

use super::axis::Domain;
use super::{Anchor, Descriptions, Svg};
use crate::text::{brief, shortened};
use ebbtide_sim::stats::Summary;

/// One row.
pub(crate) struct BoxRow {
    /// Name of the control.
    pub(crate) name: String,
    /// Its colour class.
    pub(crate) class: String,
    /// The values to draw.
    pub(crate) summary: Summary,
    /// Shown when the row is pointed at.
    pub(crate) tip: String,
}

/// Heading, axis and width that all rows share.
pub(crate) struct BoxFrame<'a> {
    /// Heading inside the drawing; may be empty.
    pub(crate) heading: &'a str,
    /// Axis title with its unit.
    pub(crate) axis: &'a str,
    /// Range and scale.
    pub(crate) domain: Domain,
    /// A reference line, if there is one, in the unit of the axis.
    pub(crate) limit: Option<f64>,
    /// Width of the drawing.
    pub(crate) width: f64,
}

const ROW: f64 = 26.0;
const LEFT: f64 = 98.0;
const RIGHT: f64 = 50.0;

/// Draws the rows.
pub(crate) fn draw(rows: &[BoxRow], frame: &BoxFrame<'_>, words: &Descriptions) -> String {
    let heading = if frame.heading.is_empty() { 0.0 } else { 22.0 };
    let top = heading + 20.0;
    let bottom = top + ROW * rows.len() as f64 + 4.0;
    let right = frame.width - RIGHT;
    let mut svg = Svg::new(frame.width, bottom + 38.0);
    let scale = frame.domain.place(LEFT, right);
    svg.text((0.0, 14.0), Anchor::Start, "head", frame.heading);
    svg.text((frame.width, top - 6.0), Anchor::End, "tick", "median");
    scale.draw_x(&mut svg, top, bottom, &format!("{}{})", frame.axis, frame.domain.remark()));
    if let Some(limit) = frame.limit.filter(|limit| limit.is_finite() && *limit > 0.0) {
        let x = scale.position(limit);
        svg.line((x, top - 2.0), (x, bottom), "limit");
        let anchor = if x > right - 40.0 { Anchor::End } else { Anchor::Middle };
        svg.text((x, top - 6.0), anchor, "limit-text", &format!("limit {}", brief(limit)));
    }
    for (index, row) in rows.iter().enumerate() {
        let middle = top + 4.0 + ROW * (index as f64 + 0.5);
        svg.open(&format!("row {}", row.class), &row.tip);
        svg.rect((0.0, middle - ROW / 2.0), (frame.width, middle + ROW / 2.0), "hit", "");
        let name = shortened(&row.name, 13);
        svg.text((LEFT - 8.0, middle + 4.0), Anchor::End, "name", &name);
        svg.text((frame.width, middle + 4.0), Anchor::End, "value", &brief(row.summary.median));
        draw_box(&mut svg, &row.summary, middle, |value| scale.position(value));
        svg.close();
    }
    svg.finish(words)
}

fn draw_box(svg: &mut Svg, summary: &Summary, middle: f64, at: impl Fn(f64) -> f64) {
    let Summary { min, p10, p25, median, p75, p90, max } = *summary;
    if [min, p10, p25, median, p75, p90, max].iter().any(|value| !value.is_finite()) {
        return;
    }
    let whiskers = format!(
        "M{l} {m}H{a}M{b} {m}H{r}M{l} {u}V{d}M{r} {u}V{d}",
        l = super::px(at(p10)),
        a = super::px(at(p25)),
        b = super::px(at(p75)),
        r = super::px(at(p90)),
        m = super::px(middle),
        u = super::px(middle - 4.0),
        d = super::px(middle + 4.0),
    );
    svg.path(&whiskers, "whisker", "");
    svg.rect((at(p25), middle - 7.0), (at(p75), middle + 7.0), "box", "");
    svg.line((at(median), middle - 7.0), (at(median), middle + 7.0), "median");
    svg.dot((at(min), middle), 1.8, "end-dot", "");
    svg.dot((at(max), middle), 1.8, "end-dot", "");
}
