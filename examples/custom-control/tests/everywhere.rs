//! The same control by name on the simulator, and over UDP on loopback.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use custom_control::Doublings;
use ebbtide::congestion::{ControlConfig, Custom, Registry};
use ebbtide::server::{Call, Router, get};
use ebbtide::{Client, ClientConfig, Response, Server, ServerConfig};
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::{load, parse_set};
use std::time::Duration;

fn registry() -> Registry {
    Registry::new([Custom::new(Doublings::default())]).unwrap()
}

fn plan(cc: &[&str]) -> Result<Campaign, String> {
    let source = load("nb-iot").unwrap().with_controls(registry());
    let axes = vec![parse_set("clients=100").unwrap()];
    let cc = cc.iter().map(|&name| name.to_owned()).collect();
    Campaign::plan(source, axes, cc, Some(1), Some(1)).map_err(|error| error.to_string())
}

#[test]
fn the_simulator_runs_it_by_name_beside_the_built_in_ones() {
    let campaign = plan(&["default", "doubling", "doubling:factor=16"]).unwrap();
    let medians = || -> Vec<f64> {
        let results = campaign.run(None, None, &()).unwrap();
        assert!(results.left_out.is_empty());
        results.cells.iter().map(|(_, result)| result.per_run[0].median_fct).collect()
    };
    let first = medians();
    assert_eq!(first.len(), 3);
    assert!(first.iter().all(|median| *median > 0.0), "{first:?}");
    assert!(first[0] != first[1] && first[1] != first[2], "three different controls: {first:?}");
    assert_eq!(medians(), first, "the same seed, the same figures");
}

#[test]
fn its_settings_are_checked_as_those_of_the_built_in_ones_are() {
    let error = plan(&["doubling:factor=99"]).err().unwrap();
    assert!(error.contains("a whole number from 2 to 16"), "{error}");
    let error = plan(&["doubling:speed=1"]).err().unwrap();
    assert!(error.contains("no setting of doubling is named 'speed'"), "{error}");
    let error = plan(&["dubling"]).err().unwrap();
    assert!(error.contains("doubling"), "the hint names it: {error}");
}

#[tokio::test]
async fn a_client_and_a_server_use_it_over_udp() {
    let router = Router::new().route("/time", get(|_: &Call<'_>| Response::content("noon")));
    let control = registry().parse("doubling:factor=4").unwrap();
    let server_config = ServerConfig::new().control(control.clone());
    let server = Server::with_config(router, server_config, ["127.0.0.1:0"]).unwrap();
    let address = server.local_addrs()[0];
    tokio::spawn(server.run());
    let client = Client::with_config(ClientConfig::new().control(control));
    for _ in 0..3 {
        let response = client.get(format!("coap://{address}/time")).await.unwrap();
        assert_eq!(response.text(), "noon");
    }
    let learnt = client.metrics(address).unwrap().srtt.unwrap();
    assert!(learnt.to_duration() < Duration::from_secs(2), "the control has learnt: {learnt:?}");

    // For one peer only, while the client runs:
    client.set_control(address, ControlConfig::custom(Custom::new(Doublings::default()))).unwrap();
    assert_eq!(client.metrics(address).unwrap().srtt, None, "it begins without knowledge");
    client.get(format!("coap://{address}/time")).await.unwrap();
    assert!(client.metrics(address).unwrap().srtt.is_some());
}
