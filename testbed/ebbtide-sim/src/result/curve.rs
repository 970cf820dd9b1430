//! The points of the curves: goodput and share delivered of each control as one key grows.

use super::model::{Cell, Report};
use crate::scenario::place;
use crate::stats::mean_and_half_width;
use serde::Serialize;

/// A share, mean over replications, and half of its 95 % confidence interval.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct MeanShare {
    /// The mean; NaN where there is nothing to divide by.
    pub mean: f64,
    /// Half of the interval; 0 for one replication.
    pub half: f64,
}

/// One value of the key under one control.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The value, as `--set` takes it.
    pub value: String,
    /// The same as a number, in s, bit/s or B if it has a unit.
    pub place: f64,
    /// Exchanges that all clients of a replication asked for.
    pub exchanges: u64,
    /// The share of the capacity that no control can exceed.
    pub limit: f64,
    /// Share of the capacity that delivered exchanges took, until the last client was done, but for no less
    /// than the time that the link needs for all exchanges unless these go by the clock.
    pub goodput: MeanShare,
    /// Share of the exchanges that were delivered.
    pub delivered: MeanShare,
}

/// One control under one combination of the other settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurveLine {
    /// Its name.
    pub cc: String,
    /// The other settings that vary, in words.
    pub setting: String,
    /// Its points, in ascending order.
    pub points: Vec<CurvePoint>,
}

impl CurveLine {
    /// The point with the most goodput.
    pub fn best(&self) -> Option<&CurvePoint> {
        let known = self.points.iter().filter(|point| point.goodput.mean.is_finite());
        known.reduce(|best, one| if one.goodput.mean > best.goodput.mean { one } else { best })
    }

    /// The first point beyond the best one with less than half of its goodput: there the control has collapsed.
    pub fn collapse(&self) -> Option<&CurvePoint> {
        let best = self.best()?;
        let beyond = self.points.iter().skip_while(|point| point.place <= best.place);
        beyond.into_iter().find(|point| point.goodput.mean < 0.5 * best.goodput.mean)
    }
}

/// The curves of a report; none unless one was asked for.
pub fn curves(report: &Report) -> Vec<CurveLine> {
    let Some(curve) = &report.curve else { return Vec::new() };
    let setting = |cell: &Cell| {
        let others = cell.settings.iter().filter(|(key, _)| *key != curve.key);
        let pairs = others.map(|(key, value)| format!("{key}\u{a0}=\u{a0}{value}"));
        pairs.collect::<Vec<String>>().join(", ")
    };
    let mut all: Vec<CurveLine> = Vec::new();
    for cell in &report.cells {
        let Some(point) = point(cell, cell.setting(&curve.key)) else { continue };
        let (cc, setting) = (&cell.cc, setting(cell));
        match all.iter_mut().find(|line| line.cc == *cc && line.setting == setting) {
            Some(line) => line.points.push(point),
            None => all.push(CurveLine { cc: cc.clone(), setting, points: vec![point] }),
        }
    }
    for line in &mut all {
        line.points.sort_by(|a, b| a.place.total_cmp(&b.place));
    }
    // Controls of one setting stand together, also where the key of the curve is not the last one.
    let order: Vec<String> = all.iter().map(|line| line.setting.clone()).collect();
    all.sort_by_key(|line| order.iter().position(|setting| *setting == line.setting));
    all
}

fn point(cell: &Cell, value: &str) -> Option<CurvePoint> {
    let runs = &cell.outcome.runs;
    let share = |of: fn(&crate::judge::RunFigures) -> f64| {
        let (mean, half) = mean_and_half_width(&runs.iter().map(of).collect::<Vec<f64>>());
        MeanShare { mean, half }
    };
    let exchanges = cell.outcome.asked / runs.len().max(1) as u64;
    // Clients that give up early must not make the link look quick: the time that counts is at least the
    // link's for everything that was asked. Where clients go by the clock, that time is given.
    let has_clock = cell.outcome.demand.period_s.is_some();
    let patient = |run: &crate::judge::RunFigures| run.goodput_share.min(run.delivered);
    Some(CurvePoint {
        value: value.to_owned(),
        place: place(value)?,
        exchanges,
        limit: limit(cell, exchanges),
        goodput: if has_clock { share(|run| run.goodput_share) } else { share(patient) },
        delivered: share(|run| run.delivered),
    })
}

/// Goodput if everything is delivered at the physical limit; NaN without a link.
fn limit(cell: &Cell, exchanges: u64) -> f64 {
    let demand = &cell.outcome.demand;
    if demand.each_s <= 0.0 {
        return f64::NAN;
    }
    let load = match demand.period_s {
        Some(period) => f64::from(demand.clients) * demand.each_s / period,
        None => exchanges as f64 * demand.each_s / cell.fct_limit_s,
    };
    load.min(1.0)
}
