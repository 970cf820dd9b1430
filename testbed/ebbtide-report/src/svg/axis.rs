//! Axes: which range, which scale, which ticks.

#![expect(
    clippy::disallowed_methods,
    reason = "positions are printed to a tenth of a pixel and ticks to a few digits: the last bit of a \
              logarithm never shows"
)]

use super::{Anchor, Svg};
use crate::text::fixed;

/// How values become positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScaleKind {
    /// Equal steps.
    Linear,
    /// Equal ratios; positive values only.
    Log,
    /// Equal ratios of 1 + value: counts that may be zero.
    Log1p,
}

/// A range of values and its scale, shared by the panels of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Domain {
    pub(crate) kind: ScaleKind,
    lo: f64,
    hi: f64,
}

/// A range this wide, largest to smallest, needs a logarithmic axis.
const LOG_FROM: f64 = 20.0;

impl Domain {
    /// For durations: logarithmic if the range demands it, from zero if it is near.
    pub(crate) fn durations(values: impl Iterator<Item = f64>) -> Self {
        let (lo, hi) = extent(values.filter(|value| *value > 0.0));
        if hi / lo > LOG_FROM {
            return Self { kind: ScaleKind::Log, lo: floor_125(lo), hi: ceil_125(hi) };
        }
        if hi > 2.0 * lo {
            return Self::linear(0.0, hi);
        }
        let margin = if hi > lo { (hi - lo) * 0.08 } else { hi * 0.1 };
        Self::linear((lo - margin).max(0.0), hi + margin)
    }

    /// For counts from zero: logarithmic in 1 + value if the largest demands it.
    pub(crate) fn counts(values: impl Iterator<Item = f64>) -> Self {
        let (_, hi) = extent(values);
        if hi > LOG_FROM {
            return Self { kind: ScaleKind::Log1p, lo: 0.0, hi: ceil_125(hi) };
        }
        Self::linear(0.0, hi.max(1.0))
    }

    /// Equal steps over a range, widened to whole ticks.
    pub(crate) fn linear(lo: f64, hi: f64) -> Self {
        let hi = if hi > lo { hi } else { lo + 1.0 };
        let step = nice_step((hi - lo) / 5.0);
        Self {
            kind: ScaleKind::Linear,
            lo: (lo / step).floor() * step,
            hi: (hi / step).ceil() * step,
        }
    }

    /// Equal ratios between two positive values.
    pub(crate) const fn logarithmic(lo: f64, hi: f64) -> Self {
        Self { kind: ScaleKind::Log, lo, hi }
    }

    /// The same range on so many pixels.
    pub(crate) fn place(self, from: f64, to: f64) -> Scale {
        Scale { domain: self, from, to }
    }

    /// Text to append to the axis title; empty for a linear scale.
    pub(crate) fn remark(self) -> &'static str {
        if self.kind == ScaleKind::Linear { "" } else { ", log scale" }
    }

    fn bend(self, value: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear => value,
            ScaleKind::Log => value.max(self.lo).ln(),
            ScaleKind::Log1p => value.max(0.0).ln_1p(),
        }
    }

    /// Ticks at 1, 2 and 5 times powers of ten, about as many as asked for at most.
    fn ticks(self, most: usize) -> Vec<f64> {
        let most = most.max(2);
        if self.kind == ScaleKind::Linear {
            let step = nice_step((self.hi - self.lo) / most as f64);
            let first = (self.lo / step - 1e-9).ceil() as i64;
            let last = (self.hi / step + 1e-9).floor() as i64;
            return (first..=last).map(|index| index as f64 * step).collect();
        }
        let lo = if self.kind == ScaleKind::Log { self.lo } else { 1.0 };
        let exponents = lo.log10().floor() as i32..=self.hi.log10().ceil() as i32;
        for digits in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
            let all = exponents.clone().flat_map(|e| digits.iter().map(move |d| d * 10f64.powi(e)));
            let mut ticks: Vec<f64> =
                all.filter(|t| *t >= lo * 0.999 && *t <= self.hi * 1.001).collect();
            if self.kind == ScaleKind::Log1p {
                ticks.insert(0, 0.0);
            }
            if ticks.len() <= most || digits.len() == 1 {
                let every = ticks.len().div_ceil(most + 1);
                return ticks.into_iter().step_by(every.max(1)).collect();
            }
        }
        Vec::new()
    }
}

/// A domain laid over pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) domain: Domain,
    from: f64,
    to: f64,
}

impl Scale {
    /// The pixel of a value; values outside stop at the edge.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let (lo, hi) = (self.domain.bend(self.domain.lo), self.domain.bend(self.domain.hi));
        let share = ((self.domain.bend(value) - lo) / (hi - lo)).clamp(0.0, 1.0);
        self.from + share * (self.to - self.from)
    }

    /// Draws grid lines, tick labels and title of a horizontal axis below `top..bottom`.
    pub(crate) fn draw_x(&self, svg: &mut Svg, top: f64, bottom: f64, title: &str) {
        let ticks = self.domain.ticks((((self.to - self.from) / 58.0) as usize).min(10));
        for tick in &ticks {
            let x = self.position(*tick);
            svg.line((x, top), (x, bottom), "grid");
            svg.text(
                (x, bottom + 14.0),
                Anchor::Middle,
                "tick",
                &label(*tick, &ticks, self.domain.kind),
            );
        }
        svg.line((self.from, bottom), (self.to, bottom), "axis");
        let middle = (self.from + self.to) / 2.0;
        svg.text((middle, bottom + 31.0), Anchor::Middle, "title", title);
    }

    /// Draws grid lines and tick labels of a vertical axis, its title on top of it.
    pub(crate) fn draw_y(&self, svg: &mut Svg, left: f64, right: f64, title: &str) {
        let ticks = self.domain.ticks(((self.from - self.to) / 30.0) as usize);
        for tick in &ticks {
            let y = self.position(*tick);
            svg.line((left, y), (right, y), "grid");
            svg.text(
                (left - 6.0, y + 4.0),
                Anchor::End,
                "tick",
                &label(*tick, &ticks, self.domain.kind),
            );
        }
        svg.text((2.0, self.to - 10.0), Anchor::Start, "title", title);
    }
}

/// A tick with as many decimals as the step (linear) or the tick itself (log) needs.
fn label(tick: f64, ticks: &[f64], kind: ScaleKind) -> String {
    let fineness = match (kind, ticks) {
        (ScaleKind::Linear, [first, second, ..]) => second - first,
        _ => tick.abs(),
    };
    let decimals = if fineness > 0.0 { -(fineness * 1.000_1).log10().floor() } else { 0.0 };
    fixed(tick, decimals.clamp(0.0, 6.0) as usize)
}

/// Smallest and largest finite value; 0 and 1 when there is none.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (lo, hi) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
    if lo.is_finite() { (lo, hi) } else { (0.5, 1.0) }
}

/// The next of 1, 2, 5, 10, ... at or above.
fn nice_step(raw: f64) -> f64 {
    if raw.is_finite() && raw > 0.0 { ceil_125(raw) } else { 1.0 }
}

fn ceil_125(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let digit = value / power;
    let nice = [1.0, 2.0, 5.0].into_iter().find(|nice| digit <= nice * 1.000_001);
    power * nice.unwrap_or(10.0)
}

fn floor_125(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let digit = value / power;
    let nice = [5.0, 2.0, 1.0].into_iter().find(|nice| digit >= nice * 0.999_999);
    power * nice.unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_range_is_logarithmic_and_a_narrow_one_is_not() {
        assert_eq!(Domain::durations([10.0, 300.0].into_iter()).kind, ScaleKind::Log);
        assert_eq!(Domain::durations([500.0, 2425.0].into_iter()).kind, ScaleKind::Linear);
        assert_eq!(Domain::counts([0.0, 300.0].into_iter()).kind, ScaleKind::Log1p);
    }

    #[test]
    fn ticks_are_1_2_5_and_no_more_than_asked_for() {
        let ticks = Domain::durations([500.0, 2425.0].into_iter()).ticks(6);
        assert_eq!(ticks, [0.0, 500.0, 1000.0, 1500.0, 2000.0, 2500.0]);
        assert_eq!(label(0.4, &[0.0, 0.2, 0.4], ScaleKind::Linear), "0.4");
        assert_eq!(label(0.0, &[0.0, 1.0, 10.0], ScaleKind::Log1p), "0");
    }

    #[test]
    fn a_single_value_and_none_at_all_have_an_axis_too() {
        for values in [vec![33.003], vec![0.0], vec![], vec![f64::NAN, f64::INFINITY]] {
            for domain in
                [Domain::durations(values.iter().copied()), Domain::counts(values.iter().copied())]
            {
                assert!(domain.ticks(5).len() >= 2, "{values:?}");
                assert!(domain.place(0.0, 100.0).position(33.0).is_finite());
            }
        }
    }
}
