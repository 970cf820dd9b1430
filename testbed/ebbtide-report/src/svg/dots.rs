//! Relative differences between published and measured values: one row per control, one dot
//! per compared value.

use super::axis::Domain;
use super::{Anchor, Descriptions, Svg};
use crate::text::shortened;

/// One dot.
pub(crate) struct Dot {
    /// (measured - published) / published.
    pub(crate) relative: f64,
    /// Confidence interval in the same terms.
    pub(crate) ci: (f64, f64),
    /// Outside the tolerance promised.
    pub(crate) outside: bool,
    /// Shown when pointed at.
    pub(crate) tip: String,
}

/// One row.
pub(crate) struct DotRow {
    /// Name of the control.
    pub(crate) name: String,
    /// Its colour class.
    pub(crate) class: String,
    /// Its compared values.
    pub(crate) dots: Vec<Dot>,
}

const LEFT: f64 = 98.0;

/// Dots of a row are spread over so many heights, so that equal values remain visible.
const LANES: usize = 5;

/// Draws the rows; `band` is the tolerance if all values share one.
pub(crate) fn draw(rows: &[DotRow], band: Option<f64>, width: f64, words: &Descriptions) -> String {
    let row = 34.0;
    let (top, right) = (8.0, width - 16.0);
    let bottom = top + row * rows.len() as f64 + 4.0;
    let reach = rows
        .iter()
        .flat_map(|row| row.dots.iter())
        .flat_map(|dot| [dot.relative, dot.ci.0, dot.ci.1])
        .chain(band)
        .filter(|value| value.is_finite())
        .fold(0.001, |reach: f64, value| reach.max(value.abs()));
    let mut svg = Svg::new(width, bottom + 38.0);
    let scale = Domain::linear(-reach * 105.0, reach * 105.0).place(LEFT, right);
    if let Some(band) = band {
        let (left, right) = (scale.position(-band * 100.0), scale.position(band * 100.0));
        svg.rect((left, top), (right, bottom), "band", "");
    }
    scale.draw_x(&mut svg, top, bottom, "measured minus published (%)");
    svg.line((scale.position(0.0), top), (scale.position(0.0), bottom), "axis");
    for (index, line) in rows.iter().enumerate() {
        let middle = top + 2.0 + row * (index as f64 + 0.5);
        svg.open(&format!("row {}", line.class), "");
        svg.text((LEFT - 8.0, middle + 4.0), Anchor::End, "name", &shortened(&line.name, 13));
        for (place, dot) in line.dots.iter().enumerate().filter(|(_, d)| d.relative.is_finite()) {
            let lane = if line.dots.len() > 1 { place % LANES } else { LANES / 2 };
            let y = middle + 5.0 * (lane as f64 - (LANES / 2) as f64);
            if dot.ci.0.is_finite() && dot.ci.1.is_finite() {
                let ends = (scale.position(dot.ci.0 * 100.0), scale.position(dot.ci.1 * 100.0));
                svg.line((ends.0, y), (ends.1, y), "ci");
            }
            let class = if dot.outside { "outside" } else { "inside" };
            svg.dot((scale.position(dot.relative * 100.0), y), 3.2, class, &dot.tip);
        }
        svg.close();
    }
    svg.finish(words)
}
