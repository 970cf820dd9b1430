//! Requirements: who meets them is counted from the records, the cheapest of those is named, and what no control can
//! meet is said before anything runs.

use crate::common::run;
use ebbtide_sim::judge::{Judgement, Percentile};
use ebbtide_sim::result::{judge_cells, judge_classes};
use ebbtide_sim::run::{Campaign, document};
use ebbtide_sim::scenario::{Source, parse_set};

const REPS: u32 = 3;
const CONTROLS: [&str; 3] = ["default", "cocoa", "fasor-token"];

/// A few alarms beside meters that all report at once, on a link that loses one packet in twenty.
fn source(rest: &str) -> Source {
    let link = "rate = \"20 kbit/s\"\ndelay = [\"50 ms\", \"90 ms\"]\nbuffer = \"20 kB\"\n";
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\n[network]\nerrors = \"some\"\n[network.up]\n{link}[network.down]\n{link}\
         [errors.some]\nkind = \"independent\"\naverage = 0.05\n\
         [workload]\nkind = \"synchronised\"\nperiod = \"60 s\"\nexchanges = 4\nrequest_payload = 60\n\
         [[class]]\nname = \"meters\"\ncount = 60\n\
         [[class]]\nname = \"alarms\"\ncount = 5\n[class.workload]\nkind = \"poisson\"\ndeadline = \"4 s\"\n{rest}"
    );
    Source::new("x.toml", text)
}

fn campaign(rest: &str) -> Campaign {
    let cc = CONTROLS.map(str::to_owned).to_vec();
    Campaign::plan(source(rest), Vec::new(), cc, Some(REPS), Some(5)).unwrap()
}

fn refused(rest: &str) -> String {
    source(rest).scenario(&[]).unwrap_err().to_string()
}

/// The share of the alarms' exchanges in time and the transmissions of all clients for each delivered exchange of one
/// control, counted from its records.
fn counted(campaign: &Campaign, cc: &str) -> (f64, f64) {
    let scenario = &campaign.cells[0].scenario;
    let (mut asked, mut in_time, mut delivered, mut sent) = (0u64, 0u64, 0u64, 0u64);
    for replication in 0..REPS {
        let record = run(scenario, cc, 5, replication);
        for client in &record.clients {
            delivered += u64::from(client.completed);
            if client.client >= 60 {
                asked += u64::from(client.asked);
                in_time += u64::from(client.in_time);
            }
        }
        sent += record.totals.delivery.transmissions;
    }
    (in_time as f64 / asked as f64, sent as f64 / delivered as f64)
}

#[test]
fn the_cheapest_control_that_meets_the_requirement_of_a_class_is_named() {
    let plain = campaign("");
    let counts = CONTROLS.map(|cc| counted(&plain, cc));
    // A bound that some controls meet and some miss, whatever their order is.
    let mut shares = counts.map(|(share, _)| share);
    shares.sort_by(f64::total_cmp);
    assert!(shares[0] < shares[2], "the network does not tell the controls apart: {shares:?}");
    let wanted = (shares[0] + shares[2]) / 2.0;
    let campaign = campaign(&format!("[class.require]\nin_time = {wanted}\n"));
    let results = campaign.run(None, None, &()).unwrap();
    let cells: Vec<_> = results.cells.iter().map(|(_, result)| &result.cell).collect();
    let verdict = judge_cells(cells.iter().copied(), Percentile::default());
    let chosen = verdict.choose.as_deref().unwrap();
    let meets = |place: usize| counts[place].0 >= wanted;
    for (place, (cc, judgement)) in verdict.judgements.iter().enumerate() {
        assert_eq!(!meets(place), *judgement == Judgement::Misses, "{cc}: {counts:?}");
        let check = &cells[place].outcome.checks[0];
        assert_eq!((check.class.as_str(), check.met().is_met()), ("alarms", meets(place)));
        assert!((check.found - counts[place].0).abs() < 1e-12, "{cc}");
    }
    let place = CONTROLS.iter().position(|cc| *cc == chosen).unwrap();
    assert!(meets(place));
    for other in (0..CONTROLS.len()).filter(|other| meets(*other)) {
        // No other one is cheaper by more than the margin; within it the interval decides.
        assert!(counts[place].1 <= counts[other].1 * 1.05, "{chosen}: {counts:?}");
    }
    // The class's own verdict says the same of the class.
    let classes = judge_classes(cells.iter().copied(), Percentile::default());
    assert!(classes[1].1.sentence.starts_with("Required is at least"), "{}", classes[1].1.sentence);
    assert!(!classes[0].1.sentence.starts_with("Required"), "meters have no requirement");
}

#[test]
fn if_no_control_meets_a_requirement_none_is_named_and_each_shortfall_is() {
    // On a link that loses packets, one transmission for each exchange is not enough.
    let campaign = campaign("[require]\ntransmissions = 1.0\n");
    let results = campaign.run(None, None, &()).unwrap();
    let verdict =
        judge_cells(results.cells.iter().map(|(_, result)| &result.cell), Percentile::default());
    let counts = CONTROLS.map(|cc| counted(&campaign, cc));
    assert!(counts.iter().all(|(_, sent)| *sent > 1.0), "{counts:?}");
    assert_eq!(verdict.choose, None);
    assert!(verdict.judgements.iter().all(|(_, found)| *found == Judgement::Misses));
    assert!(verdict.sentence.contains("No control meets this; "), "{}", verdict.sentence);
    for cc in CONTROLS {
        assert!(verdict.sentence.contains(cc), "{}", verdict.sentence);
    }
}

#[test]
fn the_document_has_the_requirement_the_figure_and_its_interval() {
    let campaign = campaign("[class.require]\nin_time = 0.5\ntransmissions = 3.0\n");
    let results = campaign.run(None, None, &()).unwrap();
    let document = document(&campaign, &results);
    let checks = document["cells"][0]["requirements"].as_array().unwrap();
    let keys: Vec<&str> = checks.iter().map(|one| one["figure"].as_str().unwrap()).collect();
    assert_eq!(keys, ["in_time", "transmissions"]);
    assert_eq!(checks[0]["class"], "alarms");
    assert_eq!((&checks[0]["required"], &checks[0]["deadline_s"]), (&0.5.into(), &4.0.into()));
    assert!(checks[0]["half"].as_f64().unwrap() > 0.0);
    assert_eq!(document["cells"][0]["classes"][1]["requirements"].as_array().unwrap().len(), 2);
}

#[test]
fn a_requirement_changes_no_result_and_no_key_of_one() {
    let (plain, stated) = (campaign(""), campaign("[require]\ndelivered = 0.9\n"));
    let keys = |campaign: &Campaign| {
        let spec = &campaign.cells[0];
        campaign.keys(spec)(0)
    };
    assert_eq!(keys(&plain), keys(&stated));
}

#[test]
fn requirements_that_cannot_be_measured_are_refused_with_the_remedy() {
    for (rest, expected) in [
        ("[require]\nin_time = 0.9\n", "class meters has none: set workload.deadline"),
        ("[require]\ndelivered = 1.5\n", "above 0 and at most 1"),
        ("[require]\ndelivered = 0\n", "above 0 and at most 1"),
        ("[require]\ntransmissions = 0.5\n", "at least 1"),
        ("[require]\npower_mw = 1.0\n", "known of LoRaWAN, NB-IoT and meshes only"),
        ("[require]\ndeadline = \"1 s\"\n", "unknown field `deadline`"),
        ("[class.require]\nleft_to_others = 0.5\n", "state it in [require]"),
        ("[class.require]\npower_mw = 0.5\n", "state it in [require]"),
    ] {
        let error = refused(rest);
        assert!(error.contains(expected), "{rest}: {error}");
    }
}

#[test]
fn requirements_that_no_control_can_meet_are_known_before_a_run() {
    let sentences = |rest: &str, set: &[&str]| -> Vec<String> {
        let axes = set.iter().map(|text| parse_set(text).unwrap()).collect();
        let cc = vec!["default".to_owned()];
        let campaign = Campaign::plan(source(rest), axes, cc, Some(1), None).unwrap();
        campaign.unreachable_requirements().into_iter().map(|(_, sentence)| sentence).collect()
    };
    // Both ways take 2 x 50 ms at least, and about 250 bytes at 20 kbit/s.
    for (rest, set, expected) in [
        ("[class.require]\nin_time = 0.9\n", "class.alarms.workload.deadline=150 ms", "idle path"),
        // 1 - (1 - 0.95^2)^5 = 0.999991
        ("[class.require]\ndelivered = 1.0\n", "coap.max_retransmit=1", "at most 0.99"),
        // 1 / 0.95^2 = 1.108
        ("[class.require]\ntransmissions = 1.05\n", "coap.nstart=1", "1.11 transmissions"),
        ("[require]\nbytes = 50\n", "class.alarms.count=6", ""),
    ] {
        let found = sentences(rest, &[set]);
        match expected {
            // The clients of all classes together have no single length.
            "" => assert!(found.is_empty(), "{found:?}"),
            expected => {
                assert_eq!(found.len(), 1, "{rest}: {found:?}");
                assert!(found[0].starts_with("class.alarms.require."), "{found:?}");
                assert!(found[0].contains(expected), "{found:?}");
            }
        }
    }
    assert!(sentences("[class.require]\nin_time = 0.9\n", &[]).is_empty());
}
