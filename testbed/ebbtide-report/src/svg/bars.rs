//! Stacked 100 % bars: how many retransmissions the exchanges took.

use super::axis::Domain;
use super::{Anchor, Descriptions, Svg};
use crate::text::{percent, shortened};

/// Classes of exchanges: 0, 1, 2, 3, and 4 or more retransmissions.
pub(crate) const CLASSES: [&str; 5] = ["0", "1", "2", "3", "4 or more"];

/// One row.
pub(crate) struct BarRow {
    /// Name of the control.
    pub(crate) name: String,
    /// Its colour class.
    pub(crate) class: String,
    /// Whether its parts have tips.
    pub(crate) tips: bool,
    /// Share of the exchanges in each class; `None` if there were no exchanges.
    pub(crate) shares: Option<[f64; 5]>,
}

/// Counts of 0, 1, 2, ... as shares of the classes.
pub(crate) fn shares(counts: &[u64]) -> Option<[f64; 5]> {
    let mut sums = [0.0f64; 5];
    for (index, count) in counts.iter().enumerate() {
        if let Some(sum) = sums.get_mut(index.min(4)) {
            *sum += *count as f64;
        }
    }
    let total: f64 = sums.iter().sum();
    (total > 0.0).then(|| sums.map(|sum| sum / total))
}

const ROW: f64 = 26.0;
const LEFT: f64 = 98.0;

/// Draws the rows.
pub(crate) fn draw(rows: &[BarRow], heading: &str, width: f64, words: &Descriptions) -> String {
    let top = if heading.is_empty() { 6.0 } else { 26.0 };
    let bottom = top + ROW * rows.len() as f64 + 4.0;
    let right = width - 14.0;
    let mut svg = Svg::new(width, bottom + 38.0);
    let scale = Domain::linear(0.0, 100.0).place(LEFT, right);
    svg.text((0.0, 14.0), Anchor::Start, "head", heading);
    scale.draw_x(&mut svg, top, bottom, "share of exchanges (%)");
    for (index, row) in rows.iter().enumerate() {
        let middle = top + 4.0 + ROW * (index as f64 + 0.5);
        svg.open(&format!("row {}", row.class), "");
        svg.text((LEFT - 8.0, middle + 4.0), Anchor::End, "name", &shortened(&row.name, 13));
        match &row.shares {
            Some(shares) => stack(&mut svg, row, shares, middle, |value| scale.position(value)),
            None => svg.text((LEFT + 6.0, middle + 4.0), Anchor::Start, "tick", "no exchanges"),
        }
        svg.close();
    }
    svg.finish(words)
}

fn stack(svg: &mut Svg, row: &BarRow, shares: &[f64; 5], middle: f64, at: impl Fn(f64) -> f64) {
    let mut from = 0.0;
    for (class, share) in shares.iter().enumerate() {
        let (left, right) = (at(from * 100.0), at((from + share) * 100.0));
        from += share;
        if *share <= 0.0 {
            continue;
        }
        let tip = format!(
            "{}: {} of the exchanges took {} retransmissions",
            row.name,
            percent(*share, 2),
            CLASSES.get(class).unwrap_or(&"")
        );
        let tip = if row.tips { tip } else { String::new() };
        svg.rect((left, middle - 9.0), (right, middle + 9.0), &format!("r{class}"), &tip);
        if right - left > 30.0 {
            let at = ((left + right) / 2.0, middle + 4.0);
            svg.text(at, Anchor::Middle, &format!("in{class}"), &format!("{:.0}", share * 100.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_and_more_retransmissions_are_one_class() {
        assert_eq!(shares(&[5, 0, 1, 0, 2, 1, 1]), Some([0.5, 0.0, 0.1, 0.0, 0.4]));
        assert_eq!(shares(&[0, 0]), None);
        assert_eq!(shares(&[]), None);
    }
}
