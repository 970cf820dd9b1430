//! Maps: many networks drawn from stated ranges, several controls in each.
//!
//! A scenario says how a control does in a network that was chosen; a map says how it does in those
//! that were not. [`Ranges`] say what is drawn from, [`Network::draw`] draws, [`Plan::run`] runs every
//! control in every network under the same seeds, and [`Map`] compares: each control with the best
//! published one of the network ([`Regret`]), over all networks ([`Summary`]).

mod journal;
mod measures;
mod network;
mod page;
mod ranges;
mod regret;
mod result;
mod run;
mod sobol;

pub use measures::Measures;
pub use network::Network;
pub use page::render;
pub use ranges::{Property, Ranges};
pub use regret::{COST_OF, PUBLISHED, Reference, Regret, Spread};
pub use result::{Map, Summary, Worst};
pub use run::{MapError, Plan, WORK};
