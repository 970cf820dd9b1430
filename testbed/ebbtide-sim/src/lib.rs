//! A deterministic testbed for CoAP congestion controls.
//!
//! Real endpoints of [`ebbtide_core`] exchange real datagrams under a virtual clock, over models
//! of the networks that the research papers used. The same seed gives the same result on any
//! machine, with any number of threads.
//!
//! * [`scenario`]: one network and workload in a TOML file.
//! * [`run`]: a replication, a cell, a campaign.
//! * [`map`]: many networks drawn from ranges, and a comparison of the controls over all of them.
//! * [`net`]: links, independent of the engine.
//! * [`emulation`]: the same links for real packets under the wall clock.
//! * [`fit`]: from a capture of a network to a scenario of it.
//! * [`reproduce`]: the papers' experiments, compared with their published figures.
//! * [`judge`]: the recommended control for a network, with the reason.
//! * [`record`], [`stats`]: measurements and their statistics.
//! * [`result`]: the figures of a campaign, cell by cell.
//! * [`report`]: their presentation.

pub mod emulation;
pub mod engine;
pub mod fit;
mod growth;
mod host;
pub mod judge;
mod keys;
mod lowpan;
pub mod map;
pub mod medium;
pub mod mesh;
pub mod net;
pub mod random;
pub mod record;
pub mod report;
pub mod reproduce;
pub mod result;
pub mod run;
pub mod scenario;
pub mod stats;
pub mod units;
mod wall;
