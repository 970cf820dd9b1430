//! Several replications in one file are those of the command line, byte for byte.

use ebbtide_sim::record::Store;
use ebbtide_sim::run::{Campaign, Progress, Shard, document};
use ebbtide_sim::scenario::{load, parse_set};
use std::sync::atomic::{AtomicU32, Ordering};

fn campaign(sets: &[&str], cc: &[&str], reps: u32) -> Campaign {
    let mut axes = vec![parse_set("clients=5").unwrap(), parse_set("exchanges=3").unwrap()];
    axes.extend(sets.iter().map(|text| parse_set(text).unwrap()));
    let cc = cc.iter().map(|name| (*name).to_owned()).collect();
    Campaign::plan(load("nb-iot").unwrap(), axes, cc, Some(reps), None).unwrap()
}

fn all(campaign: &Campaign) -> Vec<(usize, u32)> {
    let cells = campaign.cells.iter().enumerate();
    cells.flat_map(|(index, cell)| (0..cell.reps).map(move |rep| (index, rep))).collect()
}

#[test]
fn a_replication_out_of_a_file_of_many_is_its_own_file_byte_for_byte() {
    let campaign = campaign(&["clients.start_window=0 s,5 s"], &["default", "fasor-token"], 3);
    let (one, many) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let each = Store::open(one.path()).unwrap();
    campaign.run(Some(&each), None, &()).unwrap();
    let store = Store::open(many.path()).unwrap();
    let tasks = all(&campaign);
    for tasks in tasks.chunks(5) {
        let done = campaign.run_chunk(tasks, &store, &()).unwrap();
        assert_eq!((done.keys.len(), done.failed.len()), (tasks.len(), 0));
    }
    let together = Store::open(many.path()).unwrap();
    let keys = together.keys().unwrap();
    assert_eq!(keys.len(), 12);
    assert_eq!(keys, each.keys().unwrap());
    for key in &keys {
        assert!(together.file(key).unwrap() == each.file(key).unwrap(), "{key}");
    }
}

#[test]
fn figures_do_not_tell_how_results_are_kept() {
    let campaign = campaign(&[], &["default"], 4);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    campaign.run_chunk(&all(&campaign), &store, &()).unwrap();
    let nothing = Shard { index: u32::MAX, of: 1 };
    let store = Store::open(folder.path()).unwrap();
    let read = campaign.run(Some(&store), Some(nothing), &()).unwrap();
    let ran = campaign.run(None, None, &()).unwrap();
    let without_cost = |results| {
        let mut document = document(&campaign, results);
        document["cells"][0]["wall_s"] = 0.into();
        document
    };
    assert_eq!(without_cost(&read), without_cost(&ran));
    assert_eq!(read.reused, 4);
}

#[test]
fn the_same_piece_of_work_done_twice_leaves_the_same_bytes() {
    let campaign = campaign(&[], &["cocoa"], 3);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let bytes = || {
        campaign.run_chunk(&all(&campaign), &store, &()).unwrap();
        let files = folder.path().join("chunks").read_dir().unwrap();
        let files = files.map(|entry| entry.unwrap().path());
        let files: Vec<_> = files.filter(|path| path.extension().unwrap() == "parquet").collect();
        assert_eq!(files.len(), 1);
        std::fs::read(&files[0]).unwrap()
    };
    assert!(bytes() == bytes());
}

#[test]
fn a_replication_that_fails_is_written_down_with_its_replay_and_the_rest_goes_on() {
    // No plan lets this through; a fault that only a run finds is made by hand.
    let mut campaign = campaign(&[], &["default"], 2);
    let mut broken = campaign.cells[0].clone();
    broken.scenario.network.mtu = 40;
    broken.settings.push(("network.mtu".into(), "40".into()));
    campaign.cells.insert(0, broken);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let done = campaign.run_chunk(&all(&campaign), &store, &()).unwrap();
    assert_eq!((done.keys.len(), done.failed.len()), (2, 2));
    let failed = &done.failed[1];
    assert!(failed.error.contains("network.mtu = 40"), "{}", failed.error);
    assert_eq!(
        failed.replay,
        "ebbtide replay nb-iot --set clients=5 --set exchanges=3 --set network.mtu=40 --cc default \
         --rep 1 --seed 1"
    );
    let path = folder.path().join("failed").join(format!("{}.json", failed.key));
    assert!(std::fs::read_to_string(path).unwrap().contains(&failed.replay));
}

#[test]
fn a_chunk_that_has_not_begun_when_it_is_cancelled_is_left_out() {
    struct AfterTwo(AtomicU32);
    impl Progress for AfterTwo {
        fn finished(&self, _simulated_s: f64) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn is_cancelled(&self) -> bool {
            self.0.load(Ordering::Relaxed) >= 2
        }
    }
    let campaign = campaign(&[], &["default"], 5);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let done = campaign.run_chunk(&all(&campaign), &store, &AfterTwo(0.into())).unwrap();
    assert_eq!(done.keys.len(), 2);
    assert_eq!(Store::open(folder.path()).unwrap().keys().unwrap().len(), 2);
}
