//! Shared by the tests of the testbed.

pub(crate) mod csma_model;
pub(crate) mod dcf_model;
pub(crate) mod radio;
pub(crate) mod wifi;

use ebbtide_sim::record::RunRecord;
use ebbtide_sim::run::Controls;
use ebbtide_sim::run::simulate;
use ebbtide_sim::scenario::{Override, Scenario, load};

/// A built-in scenario with settings.
pub(crate) fn scenario(name: &str, settings: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<Override> = settings
        .iter()
        .map(|(key, value)| Override { key: (*key).to_owned(), value: (*value).to_owned() })
        .collect();
    load(name).unwrap().scenario(&overrides).unwrap()
}

/// The controls that a `--cc` argument names.
pub(crate) fn controls(scenario: &Scenario, cc: &str) -> Controls {
    cc.split('+').map(|name| scenario.control_config(name).unwrap()).collect()
}

/// One replication.
pub(crate) fn run(scenario: &Scenario, cc: &str, seed: u64, replication: u32) -> RunRecord {
    simulate(scenario, &controls(scenario, cc), seed, replication, false).unwrap()
}

/// Whether `measured` is within a relative `bound` of `expected`.
#[track_caller]
pub(crate) fn assert_near(measured: f64, expected: f64, bound: f64, what: &str) {
    let difference = (measured - expected).abs() / expected.abs();
    assert!(
        difference <= bound,
        "{what}: measured {measured}, expected {expected}: off by {:.2} %, allowed {:.2} %",
        difference * 100.0,
        bound * 100.0
    );
}
