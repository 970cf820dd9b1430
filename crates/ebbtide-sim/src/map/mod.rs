//! Maps: many networks drawn from given ranges, with several controls in each.
//!
//! A scenario shows how a control performs in one chosen network; a map shows how it performs in
//! many others. [`Ranges`] state the distributions, [`Network::draw`] draws networks,
//! [`Plan::run`] runs every control in every network with the same seeds, and [`Map`] compares
//! each control with the best published one of the network ([`Regret`]) and over all networks
//! ([`Summary`]).

mod document;
mod journal;
mod measures;
mod network;
mod page;
mod ranges;
mod regret;
mod result;
mod run;
mod sobol;

pub use document::document;
pub use measures::Measures;
pub use network::Network;
pub use page::render;
pub use ranges::{Property, Ranges};
pub use regret::{Again, Best, COST_OF, PUBLISHED, Reference, Regret, Spread};
pub use result::{Map, MapCell, RegretSummary, Summary, Worst};
pub use run::{MapError, Plan, WORK};
