//! A deterministic testbed for CoAP congestion controls.
//!
//! Real endpoints of [`ebbtide_core`] exchange real datagrams under a virtual clock, over models
//! of the networks that the research papers used. The same seed gives the same result on any
//! machine, with any number of threads.
//!
//! * [`scenario`]: one network and workload in a TOML file.
//! * [`run`]: a replication, a cell, a campaign.
//! * [`net`]: links, independent of the engine.
//! * [`emulation`]: the same links for real packets under the wall clock.
//! * [`judge`]: the recommended control for a network, with the reason.
//! * [`record`], [`stats`]: measurements and their statistics.
//! * [`result`]: the figures of a campaign, cell by cell.
//!
//! Crates of their own build on these: `ebbtide-report` presents results, `ebbtide-map` compares the controls over
//! many networks, `ebbtide-fit` estimates a scenario from a capture, and `ebbtide-reproduce` repeats published
//! experiments.

pub mod emulation;
pub mod engine;
mod growth;
mod histogram;
mod host;
pub mod judge;
mod keys;
pub mod medium;
pub mod net;
pub mod random;
pub mod record;
pub mod result;
pub mod run;
pub mod scenario;
pub mod stats;
pub mod units;
pub mod wall;
