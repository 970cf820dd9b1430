//! Low-power networks that cannot be: an error that names the node or the key, and the reason.

use ebbtide_sim::scenario::{Override, Source, load};

/// What is wrong with a built-in scenario once it is changed.
fn refused(name: &str, settings: &[(&str, &str)]) -> String {
    let changes: Vec<Override> = settings
        .iter()
        .map(|(key, value)| Override { key: (*key).to_owned(), value: (*value).to_owned() })
        .collect();
    load(name).unwrap().scenario(&changes).unwrap_err().to_string()
}

#[track_caller]
fn assert_says(message: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

fn cloud(motes: &str) -> String {
    let text = load("lln-cloud").unwrap().text;
    let text = text.replace("\nroutes = 10\n", "\n");
    let (start, rest) = text.split_once("motes = [").unwrap();
    let (_, end) = rest.split_once("]\n\n").unwrap();
    let text = format!("{start}motes = [{motes}]\n\n{end}");
    let source = Source::new("mine.toml", text);
    source.scenario(&[]).unwrap_err().to_string()
}

#[test]
fn a_node_out_of_everyones_range_is_named_with_its_nearest_neighbour() {
    let message = cloud("[10.0, 15.0], [18.0, 15.0], [90.0, 15.0]");
    assert_says(
        &message,
        &["mine.toml", "node 3", "(90, 15)", "out of everyone's range", "72.0 m"],
    );
}

#[test]
fn a_network_that_falls_apart_is_named_by_a_node_without_a_way_to_the_root() {
    let message = cloud("[10.0, 15.0], [60.0, 15.0], [66.0, 15.0]");
    assert_says(&message, &["node 2", "no way to the root", "network.mesh.radio.reach"]);
    let message = refused("lln-grid", &[("network.mesh.topology.spacing", "25")]);
    assert_says(&message, &["node 0", "out of everyone's range", "25.0 m"]);
}

#[test]
fn no_nodes_are_an_error() {
    assert_says(&refused("lln-grid", &[("n", "0")]), &["n=0", "at least 2 nodes"]);
    assert_says(&cloud(""), &["motes", "at least one mote"]);
}

#[test]
fn a_payload_longer_than_a_chain_of_fragments_or_a_queue_is_an_error() {
    let key = "workload.response_payload";
    assert_says(
        &refused("lln-cloud", &[(key, "3000")]),
        &[key, "chain of fragments", "at most 1985"],
    );
    assert_says(&refused("lln-cloud", &[(key, "1500")]), &[key, "fragments", "8 frames"]);
    let key = "workload.mesh.fragment";
    assert_says(&refused("lln-grid", &[(key, "48")]), &[key, "16, 32, 64"]);
}

#[test]
fn networks_and_workloads_that_do_not_belong_together_are_an_error() {
    assert_says(&refused("nb-iot", &[("workload", "burst")]), &["low-power", "[network.mesh]"]);
    assert_says(&refused("nb-iot", &[("workload", "events")]), &["low-power", "[network.mesh]"]);
    assert_says(&refused("lln-grid", &[("workload", "baseline")]), &["network.up", "Internet"]);
    assert_says(&refused("lln-cloud", &[("workload", "events")]), &["grid"]);
}

#[test]
fn impossible_radios_and_buffers_are_an_error() {
    let grid = |key: &str, value: &str| refused("lln-grid", &[(key, value)]);
    assert_says(
        &grid("network.mesh.csma.spacing", "61 s"),
        &["network.mesh.csma.spacing", "at most 60 s"],
    );
    assert_says(&grid("spacing", "125"), &["spacing"]);
    assert_says(&grid("duty_cycle", "contikimax"), &["duty_cycle", "contikimac", "contiki"]);
    assert_says(&grid("network.mesh.radio.reach", "5"), &["reach", "above"]);
    assert_says(&grid("network.mesh.radio.interference", "15"), &["at least", "reach"]);
    assert_says(&grid("network.mesh.lowpan.queue", "0"), &["queue", "from 1"]);
    assert_says(&grid("network.mesh.lowpan.neighbours", "0"), &["neighbours", "from 1"]);
    assert_says(&grid("network.mesh.csma.min_be", "7"), &["min_be", "max_be"]);
    assert_says(&grid("load", "0 bit/s"), &["load"]);
    assert_says(&grid("duration", "0 s"), &["duration", "1 ms"]);
}

#[test]
fn a_number_of_routes_that_the_network_cannot_have_is_an_error() {
    let key = "network.mesh.routes";
    for routes in ["0", "31"] {
        assert_says(&refused("lln-cloud", &[("routes", routes)]), &["routes", "from 1 to 30"]);
    }
    assert_says(&refused("lln-grid", &[("n", "3"), (key, "9")]), &[key, "from 1 to 8"]);
    assert_says(&refused("lln-cloud", &[("routes", "ten")]), &["routes", "ten"]);
    let text = load("lln-cloud").unwrap().text;
    let line = 1 + text.lines().position(|line| line == "routes = 10").unwrap();
    let refused = |value: &str| {
        let source = Source::new("mine.toml", text.replace("\nroutes = 10\n", value));
        source.scenario(&[]).unwrap_err().to_string()
    };
    let place = format!("mine.toml:{line}");
    assert_says(&refused("\nroutes = 31\n"), &[&place, key, "from 1 to 30"]);
    assert_says(&refused("\nroute = 10\n"), &[&place, "unknown field `route`"]);
}
