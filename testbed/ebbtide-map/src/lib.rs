//! Maps: many networks drawn from given ranges, with several controls in each.
//!
//! A scenario shows how a control performs in one chosen network; a map shows how it performs in
//! many others. [`Ranges`] state the distributions, [`DrawnNetwork::draw`] draws networks,
//! [`Plan::run`] runs every control in every network with the same seeds, and [`Map`] compares
//! each control with the best published one of the network ([`Regret`]) and over all networks
//! ([`MapSummary`]).

mod document;
mod draw;
mod journal;
mod measures;
mod network;
mod page;
mod plan;
mod ranges;
mod regret;
mod result;
mod rule;
mod run;
mod safety;
mod sobol;
mod strata;
mod worst;

pub use document::document;
pub use draw::Draw;
pub use measures::{Measured, Measures, NEVER};
pub use network::DrawnNetwork;
pub use page::render;
pub use plan::{Plan, PlanSettings, scenario_of};
pub use ranges::{FLEETS, Property, Ranges};
pub use regret::{Again, Best, COST_OF, PUBLISHED, Reference, Regret, Spread};
pub use result::{Map, MapCell, MapSummary, RegretSummary};
pub use rule::{Beaten, BestControls, Figures, RuleStep, choose};
pub use run::MapError;
pub use strata::{Stratum, WORK};
pub use worst::{Unsafe, Worst};
