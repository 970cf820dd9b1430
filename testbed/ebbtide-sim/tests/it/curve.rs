//! `--curve`: its points, the exchanges that large loads can afford, the limit, and its figures.

use ebbtide_sim::record::Store;
use ebbtide_sim::result::{CurveLine, curves};
use ebbtide_sim::run::{Campaign, Shard, report};
use ebbtide_sim::scenario::{LoadCurve, load, parse_set};

/// A curve over the clients of `nb-iot`, with eight exchanges each.
fn planned(range: &str, work: u32, sets: &[&str]) -> Campaign {
    let (curve, axis) = LoadCurve::parse(range, None, work).unwrap();
    let sets = ["buffer=infinite", "exchanges=8"].iter().chain(sets);
    let mut axes: Vec<_> = sets.map(|text| parse_set(text).unwrap()).collect();
    axes.push(axis);
    let cc = ["default", "ebb"].map(str::to_owned).to_vec();
    let campaign = Campaign::plan(load("nb-iot").unwrap(), axes, cc, Some(1), None).unwrap();
    campaign.with_curve(curve)
}

fn lines(campaign: &Campaign) -> Vec<CurveLine> {
    curves(&report(campaign, &campaign.run(None, None, &()).unwrap()))
}

#[test]
fn goodput_falls_under_a_control_that_collapses_and_never_exceeds_the_limit() {
    let all = lines(&planned("clients=10..1000", 8000, &[]));
    let [default, ebb] = all.as_slice() else { unreachable!("two controls") };
    for point in all.iter().flat_map(|line| &line.points) {
        assert!(point.goodput.mean <= point.limit + 1e-3, "{point:?}");
    }
    // Ten clients cannot fill the link: a round trip of 660 ms, and 25 ms of the link for a response.
    let first = &default.points[0];
    assert!((first.limit - 10.0 * 0.025 / 0.66).abs() < 0.02, "{first:?}");
    assert_eq!(default.points.last().unwrap().limit, 1.0);
    assert!(default.best().unwrap().goodput.mean > 0.85, "{default:?}");
    let fall = default.collapse().unwrap();
    assert!((100.0..=460.0).contains(&fall.place), "{fall:?}");
    assert!(ebb.collapse().is_none(), "{ebb:?}");
}

#[test]
fn large_loads_ask_for_fewer_exchanges_and_their_command_says_so() {
    let campaign = planned("clients=10..1000", 2000, &[]);
    let exchanges: Vec<u32> =
        campaign.cells.iter().step_by(2).map(|cell| cell.scenario.workload.exchanges).collect();
    assert_eq!(exchanges, [8, 8, 8, 8, 8, 4, 2]);
    let last = campaign.replay_command(campaign.cells.last().unwrap(), 0);
    assert!(
        last.contains("--set exchanges=8 --set clients=1000 --set workload.exchanges=2"),
        "{last}"
    );
    let command = &campaign.command;
    assert!(command.ends_with("--curve clients=10..1000 --work 2000"), "{command}");
    // One exchange remains, however small the work is.
    assert!(
        planned("clients=10..1000", 1, &[])
            .cells
            .iter()
            .all(|c| c.scenario.workload.exchanges == 1)
    );
    // The key that is drawn is not changed.
    let (curve, axis) = LoadCurve::parse("workload.exchanges=10..1000", None, 1).unwrap();
    let cc = vec!["default".to_owned()];
    let plan = Campaign::plan(load("nb-iot").unwrap(), vec![axis], cc, Some(1), None).unwrap();
    let plan = plan.with_curve(curve);
    assert_eq!(plan.cells.last().unwrap().scenario.workload.exchanges, 1000);
}

#[test]
fn a_folder_of_results_knows_that_it_is_a_curve() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let campaign = planned("clients=10..100", 300, &[]);
    drop(store.claim(&campaign.manifest()).unwrap());
    let first = campaign.run(Some(&store), None, &()).unwrap();
    let again =
        Campaign::from_manifest(&store.load_manifest().unwrap(), Default::default()).unwrap();
    assert_eq!((&again.curve, &again.command), (&campaign.curve, &campaign.command));
    // Nothing is run again: every replication is found.
    let read = again.run(Some(&store), Some(Shard { index: u32::MAX, of: 1 }), &()).unwrap();
    assert_eq!(curves(&report(&again, &read)), curves(&report(&campaign, &first)));
}

#[test]
fn other_settings_that_vary_have_curves_of_their_own() {
    let (curve, axis) =
        LoadCurve::parse("network.down.rate=4 kbit/s..40 kbit/s", Some(3), 900).unwrap();
    let axes = vec![axis, parse_set("clients=5,50").unwrap(), parse_set("exchanges=3").unwrap()];
    let cc = vec!["default".to_owned()];
    let plan = Campaign::plan(load("nb-iot").unwrap(), axes, cc, Some(1), None).unwrap();
    let all = lines(&plan.with_curve(curve));
    let settings: Vec<&str> = all.iter().map(|line| line.setting.as_str()).collect();
    assert_eq!(settings, ["clients\u{a0}=\u{a0}5", "clients\u{a0}=\u{a0}50"]);
    let places: Vec<f64> = all[0].points.iter().map(|point| point.place).collect();
    assert_eq!(places, [4000.0, 13000.0, 40000.0]);
}

#[test]
fn clients_that_give_up_early_do_not_make_the_link_look_quick() {
    let (curve, axis) = LoadCurve::parse("clients=500..1000", Some(2), 2000).unwrap();
    let axes = ["buffer=infinite", "exchanges=2", "max_retransmit=1"];
    let mut axes: Vec<_> = axes.iter().map(|text| parse_set(text).unwrap()).collect();
    axes.push(axis);
    let plan =
        Campaign::plan(load("nb-iot").unwrap(), axes, vec!["default".to_owned()], Some(1), None);
    let campaign = plan.unwrap().with_curve(curve);
    let results = campaign.run(None, None, &()).unwrap();
    let last = results.cells.last().unwrap();
    let raw = last.1.cell.outcome.all.goodput_share;
    let point = curves(&report(&campaign, &results))[0].points[1].clone();
    // 1000 clients give up both exchanges within 18 s; the link needs 50 s for what they ask.
    assert!(raw > 1.3 * point.delivered.mean, "{raw} {point:?}");
    assert_eq!(point.goodput.mean, point.delivered.mean);
}
