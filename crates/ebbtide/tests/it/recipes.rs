//! The recipes of the guide run, each to its end, and the guide shows them as they are.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "an example is a program, and its main is not called"
)]

#[path = "../../examples/building_client.rs"]
mod building_client;
#[path = "../../examples/building_server.rs"]
mod building_server;
#[path = "../../examples/control.rs"]
mod control;
#[path = "../../examples/firmware.rs"]
mod firmware;
#[path = "../../examples/fleet.rs"]
mod fleet;
#[path = "../../examples/gateway.rs"]
mod gateway;
#[path = "../../examples/hello.rs"]
mod hello;
#[path = "../../examples/identity.rs"]
mod identity;
#[path = "../../examples/metrics.rs"]
mod metrics;
#[path = "../../examples/node.rs"]
mod node;
#[path = "../../examples/sensor.rs"]
mod sensor;
#[path = "../../examples/service.rs"]
mod service;
#[path = "../../examples/testing.rs"]
mod testing;

use ebbtide::Server;

#[tokio::test]
async fn hello() {
    assert_eq!(hello::run().await.unwrap(), "Hello, world!");
}

#[tokio::test]
async fn a_sensor_is_observed() {
    let readings = sensor::run(4).await.unwrap();
    assert_eq!(readings.len(), 4);
    assert!(readings.windows(2).all(|pair| pair[0] != pair[1]), "{readings:?}");
}

#[tokio::test]
async fn firmware_is_fetched_and_the_download_resumed() {
    let folder = tempfile::tempdir().unwrap();
    firmware::run(folder.path()).await.unwrap();
}

#[tokio::test]
async fn a_gateway_has_a_path_for_each_device() {
    gateway::run().await.unwrap();
}

#[tokio::test]
async fn identities_are_authorised() {
    identity::run().await.unwrap();
}

#[tokio::test]
async fn a_service_ends_in_good_order() {
    service::run().await.unwrap();
}

#[tokio::test]
async fn a_fleet_of_devices_is_asked() {
    assert_eq!(fleet::run(300).await.unwrap(), 300);
}

#[tokio::test]
async fn handlers_are_tested_without_a_socket() {
    testing::a_lamp_that_was_dimmed_says_so().await.unwrap();
}

#[tokio::test]
async fn a_control_of_one_s_own_is_used() {
    control::run().await.unwrap();
}

#[tokio::test]
async fn a_device_is_asked_by_its_server() {
    assert_eq!(node::run().await.unwrap(), "open");
}

#[tokio::test]
async fn metrics_are_read() {
    let text = metrics::run().await.unwrap();
    assert!(text.contains("# TYPE"), "{text}");
}

#[tokio::test]
async fn fifty_buildings_are_asked_for_everything_at_once() {
    let mut bases = Vec::new();
    for _ in 0..50 {
        let building = building_server::Building::default();
        let server = Server::bind(building_server::router(building), ["127.0.0.1:0"]).unwrap();
        bases.push(format!("coap://{}", server.local_addrs()[0]));
        tokio::spawn(server.run());
    }
    assert_eq!(building_client::run(&bases).await.unwrap(), 50 * 200_000);
}

#[test]
fn a_server_and_a_client_of_everything_are_short() {
    let lines = |source: &str| source.lines().count();
    assert!(lines(include_str!("../../examples/building_server.rs")) <= 60);
    assert!(lines(include_str!("../../examples/building_client.rs")) <= 70);
}

/// Every Rust block of a recipe is a part of its program.
#[test]
fn the_guide_shows_the_recipes_as_they_are() {
    let guide = include_str!("../../../../docs/library.md");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut shown = 0;
    for section in guide.split("\n### ").skip(1) {
        let Some(name) = section.split("examples/").nth(1) else { continue };
        let name = name.split(')').next().unwrap();
        let source = std::fs::read_to_string(folder.join(name)).unwrap();
        for block in section.split("```rust,ignore\n").skip(1) {
            let block = block.split("```").next().unwrap();
            for part in block.split("\n\n") {
                let part = part.trim_end();
                assert!(source.contains(part), "in the guide, but not in {name}:\n{part}");
            }
            shown += 1;
        }
    }
    assert!(shown >= 11, "each recipe shows a part of its program, {shown} do");
}
