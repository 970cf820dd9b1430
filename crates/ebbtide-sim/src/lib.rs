//! A deterministic testbed for CoAP congestion controls.
//!
//! Real endpoints of [`ebbtide_core`] exchange real datagrams under a virtual clock, over models of
//! the networks that the research papers used. The same seed gives the same answer on any machine,
//! with any number of threads.
//!
//! * [`scenario`]: one network and workload in a TOML file.
//! * [`run`]: a replication, a cell, a campaign.
//! * [`map`]: many networks drawn from ranges, and how controls compare over all of them.
//! * [`net`]: links; they know no engine.
//! * [`emulation`]: the same links for real packets, with the wall clock outside.
//! * [`reproduce`]: the papers' experiments beside their published figures.
//! * [`judge`]: which control to use in a network, and why.
//! * [`record`], [`stats`], [`report`]: what is measured, summarised and shown.

pub mod emulation;
pub mod engine;
mod host;
pub mod judge;
pub mod map;
pub mod medium;
pub mod mesh;
pub mod net;
pub mod random;
pub mod record;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod scenario;
pub mod stats;
mod wall;
