//! The search for a breaking point: the value at which a control stops meeting its requirements, compared with a closed
//! form, and searches that cannot find one.

use ebbtide_sim::result::{BreakingPoint, MetSide, UntilPoint, answer};
use ebbtide_sim::run::{Campaign, Until, UntilResults};
use ebbtide_sim::scenario::{Source, load, parse_set};

/// Clients that all send one request of 100 bytes at once, on a link of 8 kbit/s without delays, losses or copies: the
/// n-th one is answered after 0.1 s times n.
fn source(rest: &str) -> Source {
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\n{rest}\n\
         [network.up]\nrate = \"8 kbit/s\"\ndelay = \"0 s\"\nbuffer = \"infinite\"\n\
         [network.down]\nrate = \"1 Gbit/s\"\ndelay = \"0 s\"\nbuffer = \"infinite\"\n\
         [clients]\ncount = 10\n[coap]\nack_timeout = \"600 s\"\n\
         [workload]\nkind = \"continuous\"\nexchanges = 1\nrequest_payload = 61\nresponse_payload = 0\n\
         deadline = \"5.05 s\"\n"
    );
    Source::new("x.toml", text)
}

fn search(text: &str, rest: &str) -> UntilResults {
    let cc = vec!["default".to_owned()];
    let until = Until::plan(text, source(rest), Vec::new(), cc, Some(2)).unwrap();
    until.run(&()).unwrap()
}

fn refused(text: &str, set: &[&str]) -> String {
    let axes = set.iter().map(|text| parse_set(text).unwrap()).collect();
    let cc = vec!["default".to_owned()];
    Until::plan(text, source(""), axes, cc, Some(1)).unwrap_err().to_string()
}

#[test]
fn the_largest_number_of_clients_in_time_is_that_of_the_closed_form() {
    // 50 requests take 5.0 s, which is in time; with 51 the last one is not. All must be.
    let found = search("clients.count", "[require]\nin_time = 1.0\n");
    let point = &found.points[0];
    assert_eq!(point.side(), MetSide::Below);
    assert_eq!(point.meets().unwrap().value, "50");
    assert_eq!(point.surely_misses().unwrap().value, "51");
    let words = "The requirements are met with clients.count up to 50, under default.";
    assert_eq!(answer(&found.points), words);
    // Nine of ten: 50 of 55.
    let found = search("clients.count=10..1000", "[require]\nin_time = 0.9\n");
    assert_eq!(found.points[0].meets().unwrap().value, "55");
}

#[test]
fn a_search_begins_at_the_value_that_set_gives() {
    let (source, cc) = (source("[require]\nin_time = 1.0\n"), vec!["default".to_owned()]);
    let axes = vec![parse_set("clients.count=40").unwrap()];
    let found = Until::plan("clients.count", source, axes, cc, Some(1)).unwrap().run(&()).unwrap();
    assert_eq!(found.points[0].meets().unwrap().value, "50");
    // 40 and its double enclose it, so that nothing else was tried before them.
    let tried: Vec<f64> = found.points[0].points.iter().map(|point| point.place).collect();
    assert!(tried.iter().all(|value| (20.0..=80.0).contains(value)), "{tried:?}");
}

#[test]
fn a_key_without_which_the_scenario_is_impossible_is_searched_from_the_value_of_set() {
    let without = source("").text.replace("deadline = \"5.05 s\"\n", "");
    let (source, cc) = (Source::new("x.toml", without), vec!["default".to_owned()]);
    let axes = ["workload.deadline=400 ms", "require.in_time=1.0"];
    let axes = axes.map(|text| parse_set(text).unwrap()).to_vec();
    let until = Until::plan("workload.deadline", source, axes, cc, Some(1)).unwrap();
    let found = until.run(&()).unwrap();
    // Ten requests take 1 s.
    let meets = found.points[0].meets().unwrap().place;
    assert!((1.0..=1.03).contains(&meets), "{meets}");
    let command = &found.campaign.command;
    let end =
        "--set 'workload.deadline=400 ms' --cc default --reps 1 --seed 1 --until workload.deadline";
    assert!(command.ends_with(end), "{command}");
}

#[test]
fn the_value_of_a_buffer_has_its_unit() {
    let cc = vec!["default".to_owned()];
    let plan = Campaign::plan(load("fleet").unwrap(), Vec::new(), cc, Some(1), None).unwrap();
    assert_eq!(plan.cells[0].value_of("buffer").as_deref(), Some("500 kB"));
    assert_eq!(plan.cells[0].value_of("clients").as_deref(), Some("2000"));
}

#[test]
fn where_larger_values_are_better_the_smallest_one_is_found() {
    // Ten requests within 5.05 s need 8000 bits / 5.05 s = 1584 bit/s.
    let found = search("network.up.rate", "[require]\nin_time = 1.0\n");
    let point = &found.points[0];
    assert_eq!(point.side(), MetSide::Above);
    let meets = point.meets().unwrap().place;
    assert!((1584.0..=1584.0 * 1.03).contains(&meets), "{meets}");
    // The values that were tried are cells of a campaign, in order, with the key as their setting.
    let values: Vec<f64> = point.points.iter().map(|point| point.place).collect();
    assert!(values.is_sorted() && values.len() == found.results.cells.len());
    assert_eq!(found.campaign.cells[0].settings[0].0, "network.up.rate");
}

#[test]
fn a_requirement_that_holds_at_every_value_has_no_breaking_point() {
    let found = search("clients.count=10..40", "[require]\nin_time = 1.0\n");
    assert_eq!(found.points[0].side(), MetSide::Everywhere);
    let found = search("clients.count=60..400", "[require]\nin_time = 1.0\n");
    assert_eq!(found.points[0].side(), MetSide::Nowhere);
    assert!(found.points[0].meets().is_none());
}

#[test]
fn an_answer_without_requirements_speaks_of_a_collapse_only() {
    let sentence = |is_met: [bool; 2]| {
        let point = |(place, is_met): (f64, bool)| UntilPoint {
            value: place.to_string(),
            place,
            is_met,
            ..UntilPoint::default()
        };
        let points = [10.0, 20.0].into_iter().zip(is_met).map(point).collect();
        let (cc, key) = ("ebb".to_owned(), "clients".to_owned());
        answer(&[BreakingPoint { cc, key, required: Vec::new(), points }])
    };
    for (is_met, expected) in [
        ([true, false], "There is no collapse with clients up to 10, under ebb."),
        ([false, true], "There is no collapse with clients from 20 on, under ebb."),
        ([true, true], "There is no collapse at any value of clients that was tried, under ebb."),
        ([false, false], "Every control collapses at every value of clients that was tried."),
    ] {
        assert_eq!(sentence(is_met), expected);
    }
}

#[test]
fn a_search_that_cannot_begin_is_refused_with_the_remedy() {
    for (text, set, expected) in [
        ("devices", &[][..], "has no value in the scenario"),
        ("workload.kind", &[], "give a range"),
        ("network.up.delay", &[], "has no value above zero"),
        ("clients.count=40..10", &[], "ascending order"),
        ("clients.count=10", &[], "KEY=FROM..TO"),
        ("devices=1..10", &[], "--until: devices: no such key"),
        (
            "clients.count=10..9000000",
            &[],
            "--until: clients.count=9000000: must be from 1 to 1000000",
        ),
        ("clients.count", &["network.up.rate=1 kbit/s,2 kbit/s"], "is a sweep"),
        ("clients.count=1..10", &["clients.count=4"], "fixed by --set"),
    ] {
        let error = refused(text, set);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn remedies_are_searched_for_under_the_keys_that_a_network_and_its_workload_have() {
    let keys = |source: Source| source.scenario(&[]).unwrap().mending_keys();
    assert_eq!(keys(source("")), ["network.up.rate", "network.up.buffer", "clients.count"]);
    let clocked = source("").text.replace("\"continuous\"", "\"periodic\"");
    let often = clocked.replace("exchanges = 1", "exchanges = 2");
    assert_eq!(keys(Source::new("x.toml", often))[2..], ["workload.period", "clients.count"]);
    // Who asks once only has no period, by whatever name.
    let once = clocked + "[keys]\nevery = [\"workload.period\"]\n";
    assert_eq!(keys(Source::new("x.toml", once))[2..], ["clients.count"]);
    // Short names that stand for both directions, and for nothing else.
    let named = "[keys]\nboth = [\"network.up.rate\", \"network.down.rate\"]\ndevices = [\"clients.count\"]\n";
    assert_eq!(keys(source(named)), ["both", "network.up.buffer", "devices"]);
    let classes = "[[class]]\nname = \"few\"\ncount = 3\n[[class]]\nname = \"many\"\ncount = 7\n";
    let text = source("").text.replace("count = 10\n", "") + classes;
    assert_eq!(keys(Source::new("x.toml", text))[2], "class.many.count");
}
