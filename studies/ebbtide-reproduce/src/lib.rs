//! The papers' experiments, repeated and compared with the published figures.

mod compare;
mod figures;
mod low_power;
mod measured_campaign;
mod page;
mod pages;
mod papers;
mod plan;
mod rcoap21;
mod replications;
mod statement;
mod statements;
#[cfg(test)]
mod tests;

pub use compare::{MeasuredFigure, compare};
pub use figures::{FIGURES, PublishedFigure, Quantity};
pub use page::Page;
pub use pages::pages;
pub use papers::{PAPERS_REPS, Paper};
pub use plan::{campaign_of, plan};
pub use replications::{replications, withhold};
pub use statement::{REPS_TO_JUDGE, Statement};
pub use statements::check_statements;
