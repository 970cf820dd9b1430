//! A deterministic testbed for CoAP congestion controls.

pub mod report;
