//! Controls from outside in campaigns: their versions, and how they end a run.

use ebbtide_core::cc::{
    CongestionControl, Context, ControlFactory, Custom, DynControl, Metrics, Registry, Sample,
    Slot, Transmission,
};
use ebbtide_core::time::Micros;
use ebbtide_sim::record::Store;
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::{load, parse_set};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Waits so long, or unwinds with the number 7.
#[derive(Debug)]
struct Constant(Option<Micros>);

impl CongestionControl for Constant {
    fn on_transmit(&mut self, _: &Transmission, _: &mut Slot, _: &mut Context<'_>) -> Micros {
        self.0.unwrap_or_else(|| resume_unwind(Box::new(7_u8)))
    }
    fn on_feedback(&mut self, _: &Slot, _: &Sample, _: &mut Context<'_>) {}
    fn metrics(&self) -> Metrics {
        Metrics::default()
    }
}

struct Constants {
    wait: Option<Micros>,
    version: &'static str,
}

impl ControlFactory for Constants {
    fn name(&self) -> &'static str {
        "constant"
    }
    fn build(&self) -> Box<dyn DynControl> {
        Box::new(Constant(self.wait))
    }
    fn version(&self) -> &str {
        self.version
    }
}

fn campaign(wait: Option<Micros>, version: &'static str) -> Campaign {
    let registry = Registry::new([Custom::new(Constants { wait, version })]).unwrap();
    let axes = ["clients=5", "exchanges=3"].map(|text| parse_set(text).unwrap());
    let source = load("nb-iot").unwrap().with_controls(registry);
    Campaign::plan(source, axes.to_vec(), vec!["constant".to_owned()], Some(2), None).unwrap()
}

#[test]
fn results_of_another_version_of_a_control_are_not_reused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let reused = |seconds: u32, version| {
        let wait = Micros::from_millis(1000 * seconds);
        campaign(Some(wait), version).run(Some(&store), None, &()).unwrap().reused
    };
    assert_eq!(reused(3, "one"), 0);
    assert_eq!(reused(3, "one"), 2);
    assert_eq!(reused(4, "two"), 0);
}

#[test]
fn a_control_that_unwinds_with_a_value_of_its_own_ends_the_piece_and_is_not_a_failed_run() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let campaign = campaign(None, "");
    let tasks = [(0, 0), (0, 1)];
    let ended = catch_unwind(AssertUnwindSafe(|| campaign.run_chunk(&tasks, &store, &())));
    assert_eq!(ended.err().and_then(|value| value.downcast::<u8>().ok()), Some(Box::new(7)));
    assert!(!folder.path().join("failed").exists());
}

#[test]
fn a_manifest_with_such_a_control_is_read_with_the_control() {
    let planned = campaign(Some(Micros::from_millis(3000)), "one");
    let manifest = planned.manifest();
    assert!(Campaign::from_manifest(&manifest, Registry::default()).is_err());
    let controls = planned.source.custom.clone();
    let read = Campaign::from_manifest(&manifest, controls).unwrap();
    assert_eq!(read.manifest().cells, manifest.cells);
}
