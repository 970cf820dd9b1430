//! The papers' experiments, run again, with the published figures beside the measured ones.

mod compare;
mod figures;
mod pages;
mod papers;

pub use compare::{Measured, compare};
pub use figures::{FIGURES, Figure, Quantity};
pub use pages::{Page, pages};
pub use papers::{PAPERS_REPS, Paper, plan};
