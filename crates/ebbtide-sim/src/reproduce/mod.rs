//! The papers' experiments, repeated and compared with the published figures.

mod compare;
mod figures;
mod low_power;
mod pages;
mod papers;
mod rcoap21;
mod statements;

pub use compare::{Measured, REPS_TO_JUDGE, compare, replications, withhold};
pub use figures::{FIGURES, Figure, Quantity};
pub use low_power::check_statements;
pub use pages::{Page, pages};
pub use papers::{PAPERS_REPS, Paper, campaign_of, plan};
pub use statements::Statement;
