//! The judgement: which control to use in a network, and why. One rule for the terminal, the JSON
//! document and the report; `docs/verdict.md` states it.
//!
//! It reads what replications have measured and runs nothing.

mod compare;
mod figures;
mod judgement;
mod others;
mod outcome;
mod required;
mod requirement;
mod rule;
mod run_figures;
mod sentence;
mod wording;

pub use compare::named_among;
pub use figures::figures;
pub use judgement::{Difference, Judgement, Verdict};
pub use outcome::{ControlOutcome, Demand, Percentile, SHARES};
pub use requirement::{Met, RequirementCheck};
pub use rule::judge;
pub(crate) use rule::judge_fixed;
pub use run_figures::RunFigures;
pub(crate) use wording::enumerate;

/// A control and what it has come to in one setting.
#[derive(Copy, Clone, Debug)]
pub struct Candidate<'c> {
    /// Its name.
    pub cc: &'c str,
    /// Its figures.
    pub outcome: &'c ControlOutcome,
}

/// A difference in time or in cost below this share of the smaller value decides nothing.
pub const MARGIN: f64 = 0.02;

/// So large a share of the transmissions unnecessary is waste, and in a loaded network a collapse.
pub const WASTE: f64 = 0.5;

/// A link that is full and delivers less than this share of its capacity has collapsed.
pub const GOODPUT: f64 = 0.5;

/// A link is full that works this share of the time.
pub const FULL: f64 = 0.9;

/// A network is loaded if one of its links works this share of the time,
pub const BUSY: f64 = 0.5;

/// or if its bottleneck's buffer drops more than this share of the clients' packets,
pub const DROPS: f64 = 0.01;

/// or if half of the round trips take more than so many times the longest one of the idle path.
pub const STRETCH: f64 = 2.0;
