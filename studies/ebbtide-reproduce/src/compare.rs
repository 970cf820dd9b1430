//! Compares published figures with measured ones.

use super::figures::{PublishedFigure, Quantity};
use super::papers::Paper;
use ebbtide_sim::result::Comparison;
use ebbtide_sim::result::{CellResult, Results};
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::TCP;
use ebbtide_sim::stats::mean_and_half_width;

/// A measured value and its 95 % confidence interval over replications.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct MeasuredFigure {
    /// The value.
    pub value: f64,
    /// Its confidence interval; NaN if there is none.
    pub ci: (f64, f64),
}

/// All figures of a paper in the order of publication, except for those whose cells are missing.
#[must_use]
pub fn compare(paper: Paper, campaign: &Campaign, results: &Results) -> Vec<Comparison> {
    if paper.lists_cells() {
        return match paper {
            Paper::Socne14 => super::low_power::compare(campaign, results),
            Paper::Rcoap21 => super::rcoap21::compare(campaign, results),
            _ => Vec::new(),
        };
    }
    let find = |figure: &PublishedFigure, cc: &str| -> Option<&CellResult> {
        results.cells.iter().find_map(|(index, result)| {
            let spec = &campaign.cells[*index];
            let settings = spec.settings.iter().map(|(_, value)| value.as_str());
            (spec.cc == cc && settings.eq(figure.settings)).then_some(result)
        })
    };
    let figures = PublishedFigure::published_by(paper.source());
    let rows = figures.iter().filter_map(|figure| {
        let result = find(figure, figure.cc)?;
        let against = find(figure, figure.against);
        let measured = measure(figure.quantity, result, against)?;
        Some(row(figure, result, measured))
    });
    rows.collect()
}

/// The name of the figure that the papers call spurious retransmissions.
const UNNECESSARY: &str = "unnecessary_retransmissions";

fn measure(
    quantity: Quantity,
    result: &CellResult,
    against: Option<&CellResult>,
) -> Option<MeasuredFigure> {
    let nothing = (f64::NAN, f64::NAN);
    let fct = &result.cell.fct;
    Some(match quantity {
        Quantity::FctQuantile(share) => {
            let all = [fct.min, fct.p10, fct.p25, fct.median, fct.p75, fct.p90, fct.max];
            let shares = [0.0, 0.10, 0.25, 0.50, 0.75, 0.90, 1.0];
            let place = shares.iter().position(|one| *one == share)?;
            let ci = if share == 0.5 { result.cell.fct_ci } else { nothing };
            MeasuredFigure { value: all[place], ci }
        }
        Quantity::Unnecessary => {
            let values: Vec<f64> = result.per_run.iter().map(|run| run.unnecessary).collect();
            MeasuredFigure { value: result.cell.number(UNNECESSARY), ci: interval(&values) }
        }
        Quantity::RetransmissionClass(class) => {
            let share = |counts: &[u64]| {
                let all: u64 = counts.iter().sum();
                let one: u64 = match class {
                    4.. => counts.iter().skip(4).sum(),
                    _ => counts.get(class).copied().unwrap_or(0),
                };
                100.0 * one as f64 / all.max(1) as f64
            };
            let values: Vec<f64> =
                result.per_run.iter().map(|run| share(&run.by_retransmissions)).collect();
            MeasuredFigure {
                value: share(result.cell.counts("exchanges_by_retransmissions")),
                ci: interval(&values),
            }
        }
        Quantity::UnnecessaryReduction => {
            let against = against?;
            let reduction = |own: f64, other: f64| 100.0 * (1.0 - own / other);
            // Both use the same random numbers, so replications are compared one by one.
            let pairs = result.per_run.iter().zip(&against.per_run);
            let values: Vec<f64> =
                pairs.map(|(own, other)| reduction(own.unnecessary, other.unnecessary)).collect();
            let (own, other) = (result.cell.number(UNNECESSARY), against.cell.number(UNNECESSARY));
            MeasuredFigure { value: reduction(own, other), ci: interval(&values) }
        }
        Quantity::FctChange => {
            let against = against?;
            let change = |own: f64, other: f64| 100.0 * (own / other - 1.0);
            let pairs = result.per_run.iter().zip(&against.per_run);
            let values: Vec<f64> =
                pairs.map(|(own, other)| change(own.median_fct, other.median_fct)).collect();
            let value = change(result.cell.fct.median, against.cell.fct.median);
            MeasuredFigure { value, ci: interval(&values) }
        }
    })
}

fn interval(values: &[f64]) -> (f64, f64) {
    let (mean, half) = mean_and_half_width(values);
    (mean - half, mean + half)
}

fn row(figure: &PublishedFigure, result: &CellResult, measured: MeasuredFigure) -> Comparison {
    let [workload, clients, buffer, errors] = figure.settings;
    let mut cell = format!("{clients} {workload}, buffer {buffer}");
    if errors != "none" {
        cell.push_str(&format!(", errors {errors}"));
    }
    let is_percentage = figure.quantity.is_percentage();
    let scale = if is_percentage { 100.0 } else { figure.value };
    let name = match figure.against {
        "" => figure.name.to_owned(),
        other => format!("{}, against {other}", figure.name),
    };
    Comparison {
        source: figure.source.to_owned(),
        table: figure.table.to_owned(),
        quantity: name,
        cell,
        cc: figure.cc.to_owned(),
        published: figure.value,
        measured: measured.value,
        ci: measured.ci,
        relative: (measured.value - figure.value) / scale,
        is_percentage,
        within: tolerance(figure, result),
        note: note(figure, measured),
    }
}

/// Differences of TCP cells above this limit are explained.
const TCP_DIFFERS: f64 = 0.10;

/// Where the tolerances come from, for a page.
pub(super) const TOLERANCES: &str = "The tolerances: one for each kind of cell, the same for all controls. The papers print no \
     intervals from which to derive them. They state how close this program came with 20 \
     replications (40 with link errors), with some room for other seeds, and hold it there. Nothing \
     is dropped and clients ask continuously: 0.6 %. Random clients: 1.5 %, since the sizes of \
     batches are drawn. A buffer overflows: 4 %, since the moments at which clients start decide \
     whose packets are dropped, and the papers do not give them. Link errors: 1.5 % if low, 8 % if \
     medium or high, since the papers give the share of lost packets and not how long a bad state \
     lasts. Shares of exchanges: 0.5 points. Differences between two controls: 2 points. TCP has no \
     tolerance: the papers' is Linux's, this one is not.";

/// The calibrated numbers, for a page.
pub(super) const CALIBRATED: &str = "Calibrated, once for all controls: each packet's delay varies by 4 ms around 200 and 400 ms, \
     and a bad state lasts 2.5 packets on average. The papers give neither number.";

/// How far a measured value may lie from the published one: see [`TOLERANCES`].
fn tolerance(figure: &PublishedFigure, result: &CellResult) -> Option<f64> {
    if figure.cc == TCP {
        return None;
    }
    let packets = &result.cell.packets;
    let dropped = packets.up.dropped_queue + packets.down.dropped_queue > 0;
    Some(match (figure.quantity, figure.settings[3], figure.settings[0]) {
        (Quantity::RetransmissionClass(_), ..) => 0.005,
        (Quantity::UnnecessaryReduction | Quantity::FctChange, ..) => 0.02,
        (_, "low", _) => 0.015,
        (_, "medium" | "high", _) => 0.08,
        _ if dropped => 0.04,
        (_, _, "random") => 0.015,
        _ => 0.006,
    })
}

/// The explanation, found in traces, of cells that differ by more than their noise.
fn note(figure: &PublishedFigure, measured: MeasuredFigure) -> String {
    let (low, high) = measured.ci;
    if low <= figure.value && figure.value <= high {
        return "the interval includes the published value".to_owned();
    }
    if figure.cc == TCP && (measured.value / figure.value - 1.0).abs() > TCP_DIFFERS {
        return match figure.settings[2] {
            "2500" => "depends on start times and simultaneous timers: see docs/controls/tcp.md",
            _ => "smoltcp, not Linux: see docs/controls/tcp.md",
        }
        .to_owned();
    }
    String::new()
}
