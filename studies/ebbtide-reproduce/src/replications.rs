//! How many replications a judgement needs, and what is said without them.

use super::papers::Paper;
use super::statement::REPS_TO_JUDGE;
use ebbtide_sim::result::Comparison;
use ebbtide_sim::run::Campaign;

/// The replications of a paper's cell that has fewest.
#[must_use]
pub fn replications(paper: Paper, campaign: &Campaign) -> u32 {
    campaign.cells.iter().filter(|spec| paper.ran(spec)).map(|spec| spec.reps).min().unwrap_or(0)
}

/// Removes the judgement whether values are within their tolerances if there are too few
/// replications.
pub fn withhold(rows: &mut [Comparison], reps: u32) {
    if reps >= REPS_TO_JUDGE {
        return;
    }
    for row in rows {
        row.within = None;
        row.ci = (f64::NAN, f64::NAN);
        row.note = format!("not judged: needs {REPS_TO_JUDGE} replications or more");
    }
}
