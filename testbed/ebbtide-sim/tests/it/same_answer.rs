//! The same seed gives the same answer, however the work is divided; compared controls meet the
//! same luck.

use crate::common::{controls, run, scenario};
use ebbtide_core::cc::Registry;
use ebbtide_core::time::Instant;
use ebbtide_sim::net::{Direction, Fate, Loss};
use ebbtide_sim::random::Streams;
use ebbtide_sim::record::Store;
use ebbtide_sim::run::{Campaign, Details, Recorder, Results, Shard, report, simulate_with};
use ebbtide_sim::scenario::{Scenario, Source, load, parse_set};
use std::collections::BTreeMap;
use std::path::Path;

const REPS: u32 = 3;

fn campaign(seed: u64) -> Campaign {
    let sets =
        ["clients=5,20", "buffer=2500", "errors=none,high", "exchanges=8", "workload=random"];
    let axes = sets.iter().map(|text| parse_set(text).unwrap()).collect();
    let cc = ["default", "cocoa", "fasor-token", "tcp"].map(str::to_owned).to_vec();
    Campaign::plan(load("nb-iot").unwrap(), axes, cc, Some(REPS), Some(seed)).unwrap()
}

fn execute(
    campaign: &Campaign,
    threads: usize,
    store: Option<&Store>,
    shard: Option<Shard>,
) -> Results {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| campaign.run(store, shard, &())).unwrap()
}

/// Everything that is computed, as text. Only the cost in wall-clock time is left out.
fn answer(campaign: &Campaign, results: &Results) -> String {
    let report = report(campaign, results);
    let cells: Vec<String> = results
        .cells
        .iter()
        .map(|(index, result)| {
            let rest = (&result.halves, result.events, result.sim_s, &result.per_run);
            format!("{index} {:?} {rest:?}", result.cell)
        })
        .collect();
    format!("{}\n{report:?}", cells.join("\n"))
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder.join("runs")).unwrap();
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn one_thread_and_many_give_the_same_results_and_the_same_files() {
    let campaign = campaign(7);
    let mut seen = Vec::new();
    for threads in [1, 2, 5] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let results = execute(&campaign, threads, Some(&store), None);
        assert_eq!(results.cells.len(), campaign.cells.len());
        seen.push((answer(&campaign, &results), files(folder.path())));
    }
    assert_eq!(seen[0].1.len(), campaign.runs(), "one file per replication");
    assert!(seen[0] == seen[1] && seen[0] == seen[2]);
}

#[test]
fn another_seed_gives_another_answer_and_other_files() {
    let (one, other) = (campaign(7), campaign(8));
    let medians = |campaign: &Campaign| -> Vec<Vec<f64>> {
        let results = execute(campaign, 2, None, None);
        results
            .cells
            .into_iter()
            .map(|(_, result)| result.per_run.iter().map(|run| run.median_fct).collect())
            .collect()
    };
    for (a, b) in medians(&one).iter().zip(&medians(&other)) {
        assert_ne!(a, b);
    }
    assert!(
        one.manifest().cells[0]
            .runs
            .iter()
            .all(|run| { other.manifest().cells.iter().all(|cell| !cell.runs.contains(run)) })
    );
}

#[test]
fn replications_differ_from_one_another() {
    let scenario = scenario("nb-iot", &[("clients", "10"), ("exchanges", "5")]);
    let fcts = |replication| -> Vec<_> {
        run(&scenario, "default", 1, replication).clients.iter().map(|client| client.fct).collect()
    };
    assert_ne!(fcts(0), fcts(1));
}

#[test]
fn results_from_files_equal_those_that_were_just_computed() {
    let campaign = campaign(7);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let computed = execute(&campaign, 2, Some(&store), None);
    let read = execute(&campaign, 2, Some(&store), None);
    assert_eq!((computed.reused, read.reused), (0, campaign.runs() as u64));
    assert_eq!(answer(&campaign, &computed), answer(&campaign, &read));
    let without = execute(&campaign, 2, None, None);
    assert_eq!(answer(&campaign, &computed), answer(&campaign, &without));
}

#[test]
fn a_resumed_campaign_equals_an_uninterrupted_one() {
    let campaign = campaign(7);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let whole = answer(&campaign, &execute(&campaign, 2, Some(&store), None));
    let before = files(folder.path());
    let mut gone = 0;
    for (number, name) in before.keys().enumerate() {
        let path = folder.path().join("runs").join(name);
        if number % 4 > 1 {
            continue;
        }
        std::fs::remove_file(path).unwrap();
        gone += 1;
    }
    let resumed = execute(&campaign, 2, Some(&store), None);
    assert_eq!(resumed.reused, campaign.runs() as u64 - gone);
    assert_eq!(answer(&campaign, &resumed), whole);
    assert!(files(folder.path()) == before);
}

#[test]
fn more_replications_keep_the_ones_that_are_there() {
    let campaign = campaign(7);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    execute(&campaign, 2, Some(&store), None);
    let longer = Campaign { reps: REPS + 1, ..campaign.clone() };
    let results = execute(&longer, 2, Some(&store), None);
    assert_eq!(results.reused, campaign.runs() as u64);
    assert_eq!(answer(&longer, &results), answer(&longer, &execute(&longer, 2, None, None)));
}

#[test]
fn shards_together_equal_the_whole() {
    let campaign = campaign(7);
    let together = tempfile::tempdir().unwrap();
    let store = Store::open(together.path()).unwrap();
    let of = 3;
    let mut reused = 0;
    for index in 0..of {
        let results = execute(&campaign, 2, Some(&store), Some(Shard { index, of }));
        assert_eq!(results.reused, reused, "a shard reads what is there and runs its own");
        reused = files(together.path()).len() as u64;
    }
    assert_eq!(reused, campaign.runs() as u64);
    let merged = execute(&campaign, 2, Some(&store), None);
    assert_eq!(merged.reused, reused);
    let alone = tempfile::tempdir().unwrap();
    let whole = execute(&campaign, 2, Some(&Store::open(alone.path()).unwrap()), None);
    assert_eq!(answer(&campaign, &merged), answer(&campaign, &whole));
    assert!(files(together.path()) == files(alone.path()));
}

#[test]
fn the_manifest_is_enough_to_compute_everything_again() {
    let campaign = campaign(7);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.save_manifest(&campaign.manifest()).unwrap();
    let again =
        Campaign::from_manifest(&store.load_manifest().unwrap(), Registry::default()).unwrap();
    assert_eq!(again.manifest(), campaign.manifest());
    let results = execute(&campaign, 2, None, None);
    assert_eq!(answer(&again, &execute(&again, 2, None, None)), answer(&campaign, &results));
}

/// The packets of a replication as they enter the links and arrive at the clients.
#[derive(Default)]
struct Seen {
    /// When, client, exchange, ordinal, what became of it: those towards the server.
    up: Vec<(Instant, u32, u32, u8, Fate)>,
    /// The first exchange of each batch of client 0.
    batches: Vec<u32>,
    open: i64,
    answered: Vec<u32>,
}

impl Recorder for Seen {
    fn at_link(&mut self, now: Instant, packet: &Details<'_>) {
        if packet.direction == Direction::Down {
            return;
        }
        self.up.push((
            now,
            packet.tagged.client,
            packet.tagged.exchange,
            packet.tagged.ordinal,
            packet.fate,
        ));
        if packet.tagged.client == 0 && packet.tagged.ordinal == 0 {
            if self.open == 0 {
                self.batches.push(packet.tagged.exchange);
            }
            self.open += 1;
        }
    }
    fn arrived(&mut self, _now: Instant, packet: &Details<'_>) {
        if packet.direction == Direction::Down
            && packet.tagged.client == 0
            && !self.answered.contains(&packet.tagged.exchange)
        {
            self.answered.push(packet.tagged.exchange);
            self.open -= 1;
        }
    }
}

fn observe(scenario: &Scenario, cc: &str) -> Seen {
    let (_, seen) =
        simulate_with(scenario, &controls(scenario, cc), 3, 0, Seen::default()).unwrap();
    seen
}

const COMPARED: [&str; 4] = ["default", "cocoa", "fasor", "fasor-token"];

#[test]
fn compared_controls_get_the_same_batches() {
    // With four requests open at a time, a batch shows: the next one waits for the last answer.
    // Two clients at a time keep the path idle enough for nothing to be repeated.
    let settings =
        [("clients", "2"), ("workload", "random"), ("nstart", "4"), ("exchanges", "200")];
    let scenario = scenario("nb-iot", &settings);
    let first = observe(&scenario, COMPARED[0]).batches;
    assert!((20..80).contains(&first.len()), "batches of 1 to 10: {}", first.len());
    assert!(first.windows(2).all(|pair| (1..=10).contains(&(pair[1] - pair[0]))), "{first:?}");
    for cc in &COMPARED[1..] {
        assert_eq!(observe(&scenario, cc).batches, first, "{cc}");
    }
}

#[test]
fn compared_controls_start_at_the_same_instants() {
    let scenario = scenario("nb-iot", &[("clients", "30"), ("clients.start_window", "60 s")]);
    let starts = |cc| -> BTreeMap<u32, Instant> {
        let first =
            observe(&scenario, cc).up.into_iter().filter(|packet| (packet.2, packet.3) == (0, 0));
        first.map(|packet| (packet.1, packet.0)).collect()
    };
    let first = starts(COMPARED[0]);
    assert_eq!(first.len(), 30);
    for cc in &COMPARED[1..] {
        assert_eq!(starts(cc), first, "{cc}");
    }
}

#[test]
fn compared_controls_meet_the_same_bad_times() {
    let text =
        ebbtide_sim::scenario::BUILTIN[0].toml.replace("errors = \"none\"", "errors = \"fading\"")
            + "\n[errors.fading]\nkind = \"time-driven\"\ngood = 0.0\nbad = 1.0\naverage = 0.2\n\
           mean_bad = \"900 ms\"\n";
    let source = Source::new("test", text);
    let set = [parse_set("clients=10").unwrap(), parse_set("network.up.delay=0 s").unwrap()];
    let set = ebbtide_sim::scenario::combinations(&set);
    let scenario = source.scenario(&set[0]).unwrap();
    let (mut lost, mut delivered) = (0, 0);
    for cc in COMPARED {
        // A chain of the same name, asked at the same instants, without any control.
        let stream = |name| Streams::new(3, 0).stream(name);
        let mut states =
            Loss::new(scenario.loss_model(), stream("link/up/loss"), stream("link/up/loss/states"));
        for (_, client, exchange, ordinal, fate) in observe(&scenario, cc).up {
            let packet = format!("{cc}: client {client}, exchange {exchange}, copy {ordinal}");
            match fate {
                Fate::Lost { left } => assert!(states.loses(left), "{packet}"),
                Fate::Delivered { at } => assert!(!states.loses(at), "{packet}"),
                Fate::Dropped => panic!("{packet}: the buffer is infinite"),
            }
            lost += u32::from(matches!(fate, Fate::Lost { .. }));
            delivered += u32::from(matches!(fate, Fate::Delivered { .. }));
        }
    }
    assert!(lost > 100 && delivered > 1000, "{lost} lost, {delivered} delivered");
}
