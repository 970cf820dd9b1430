//! Pages of campaigns that were run: each kind of network has its section.

use ebbtide_report::{Width, csv, exported, render};
use ebbtide_sim::result::{Report, Value};
use ebbtide_sim::run::{Campaign, report};
use ebbtide_sim::scenario::{LoadCurve, load, parse_set};

/// One replication of every cell of a built-in scenario with these settings.
fn campaign(name: &str, sets: &[&str], cc: &[&str]) -> Campaign {
    let axes = sets.iter().map(|text| parse_set(text).unwrap()).collect();
    let cc = cc.iter().map(|name| (*name).to_owned()).collect();
    Campaign::plan(load(name).unwrap(), axes, cc, Some(1), Some(1)).unwrap()
}

fn reported(campaign: &Campaign) -> Report {
    report(campaign, &campaign.run(None, None, &()).unwrap())
}

#[test]
fn a_page_about_classes_shows_each_class_and_link() {
    let sets = ["meters=10", "panels=3", "exchanges=4"];
    let page = render(&reported(&campaign("two-bottlenecks", &sets, &["default", "fasor"])));
    assert!(page.contains("id=\"classes\"") && page.contains("id=\"links\""));
    // Only panels go by the clock: their times have nothing to do with those of the meters.
    for row in ["default, meters", "default, panels", "fasor, meters", "fasor, panels"] {
        assert!(
            page.contains(&format!("{row}\nmedian")) || page.contains(&format!("{row} ")),
            "{row}"
        );
    }
}

#[test]
fn a_page_about_a_low_power_network_has_its_frames() {
    for (name, sets) in [
        ("lln-grid", ["n=3", "duration=1 min", "load=3 kbit/s"]),
        ("lln-cloud", ["workload=baseline", "duration=20 s", "exchanges=1"]),
    ] {
        let page = render(&reported(&campaign(name, &sets, &["default"])));
        assert!(page.contains("id=\"network\"") && page.contains("frames"), "{name}");
    }
}

#[test]
fn the_page_has_a_column_for_the_drops_where_there_are_any() {
    let page = |routes: &str| {
        let sets = ["workload=many-to-many", "duration=20 s", &format!("routes={routes}")];
        let report = reported(&campaign("lln-cloud", &sets, &["default"]));
        let share = report.cells[0].figures.get("mesh.no_route").map(Value::number);
        (share, render(&report))
    };
    let (share, shown) = page("5");
    assert!(share.is_some_and(|share| share > 0.0 && share < 1.0), "{share:?}");
    assert!(shown.contains(">no route<") && shown.contains("for want of a route"));
    let (none, plain) = page("30");
    assert!(none.is_none() && !plain.contains(">no route<"));
}

#[test]
fn the_page_has_the_curve_and_export_its_data() {
    let (curve, axis) = LoadCurve::parse("clients=10..100", None, 300).unwrap();
    let sets = ["buffer=infinite", "exchanges=8"];
    let mut axes: Vec<_> = sets.iter().map(|text| parse_set(text).unwrap()).collect();
    axes.push(axis);
    let cc = ["default", "ebb"].map(str::to_owned).to_vec();
    let plan = Campaign::plan(load("nb-iot").unwrap(), axes, cc, Some(1), None).unwrap();
    let data = reported(&plan.with_curve(curve));
    let page = render(&data);
    assert!(page.contains("<section id=\"curve\">"), "{page:.200}");
    let figures = exported(&data, Width::Page);
    let figure = figures.iter().find(|one| one.name == "curve-of-goodput-over-clients").unwrap();
    let svg = figure.svg(Width::Page);
    for text in [">limit</text>", ">ebb</text>", ">clients, log scale</text>"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    let table = csv(&data, &figure.title);
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(
        rows[0],
        "setting,cc,value,place,exchanges,limit,goodput,goodput_half,delivered,delivered_half,version,seed,command"
    );
    assert_eq!(rows.len(), 1 + 2 * 4, "{table}");
    assert!(rows[1].starts_with(",default,10,10,80,0.3"), "{}", rows[1]);
}
