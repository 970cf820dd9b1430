//! `ebbtide map`: what it refuses, what it leaves out, and that it continues.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::Path;
use std::process::{Command, Output};

fn map(arguments: &[&str]) -> Output {
    map_of("3", arguments)
}

fn map_of(networks: &str, arguments: &[&str]) -> Output {
    let small = ["map", "--networks", networks, "--reps", "1", "--work", "60", "--cc", "ebb"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.args(small).args(arguments).output().unwrap()
}

fn text(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).unwrap()
}

#[test]
fn invalid_ranges_are_a_wrong_call_that_is_named() {
    for (range, named) in [
        ("clients=0..10", "clients=0..10: cannot begin at 0"),
        ("rate=1 Mbit/s..1 kbit/s", "rate=1 Mbit/s..1 kbit/s: is an empty range"),
        ("errors=dreadful", "errors=dreadful"),
        ("payload=2000", "workload"),
        ("colour=red", "colour: no such range"),
    ] {
        let output = map(&["--range", range]);
        assert_eq!(output.status.code(), Some(2), "{range}");
        assert!(text(&output.stderr).contains(named), "{}", text(&output.stderr));
    }
    let output = map(&["--against", "nobody"]);
    assert!(text(&output.stderr).contains("nobody"));
}

#[test]
fn networks_that_are_not_begun_in_time_are_left_out_by_name() {
    let output = map(&["--within", "0"]);
    assert!(output.status.success());
    assert!(
        text(&output.stdout)
            .contains("Left out because the time limit was reached: networks 0, 1, 2.")
    );
}

#[test]
fn a_map_that_was_begun_is_continued_and_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = map(&["--out", &at("whole"), "--json"]);
    let few = map_of("1", &["--out", &at("parts")]);
    assert!(few.status.success(), "{}", text(&few.stderr));
    let parts = map(&["--out", &at("parts"), "--json"]);
    assert_eq!(text(&whole.stdout), text(&parts.stdout));
    let page = |name: &str| std::fs::read(Path::new(&at(name)).join("map.html")).unwrap();
    assert_eq!(page("whole"), page("parts"));
    // Each line was computed once: eight controls in three networks.
    let lines = std::fs::read_to_string(Path::new(&at("parts")).join("networks.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 3 * 8);
}

#[test]
fn the_command_of_a_worst_network_runs_that_network() {
    let output = map(&["--range", "clients=2..3"]);
    let shown = text(&output.stdout);
    let command = shown.lines().find(|line| line.contains("ebbtide run nb-iot")).unwrap();
    let program = env!("CARGO_BIN_EXE_ebbtide");
    let command = command.trim().replacen("ebbtide", program, 1);
    let ran = Command::new("sh").args(["-c", &format!("{command} --json")]).output().unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert!(text(&ran.stdout).contains("\"ebb\""));
}

#[test]
fn chance_is_what_the_best_published_controls_differ_from_themselves() {
    let shown = text(&map(&["--chance"]).stdout);
    assert!(shown.lines().any(|line| line.starts_with("chance ")), "{shown}");
    let document = text(&map(&["--chance", "--json"]).stdout);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert!(document["command"].as_str().unwrap().ends_with(" --chance"));
    assert!(document["chance"]["median"]["mean"].as_f64().unwrap() > 0.5, "{document}");
    let without = text(&map(&["--json"]).stdout);
    let without: serde_json::Value = serde_json::from_str(&without).unwrap();
    assert!(without["chance"].is_null());
    assert_eq!(without["summaries"], document["summaries"], "the comparison itself is the same");
}

#[test]
fn a_control_that_is_the_best_one_by_several_measures_is_measured_again_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = map(&["--chance", "--out", folder.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = std::fs::read_to_string(folder.path().join("networks.jsonl")).unwrap();
    let distinct: std::collections::BTreeSet<&str> = lines.lines().collect();
    assert_eq!(distinct.len(), lines.lines().count(), "{lines}");
    // Eight controls in three networks, and at least one of them again in each.
    assert!(distinct.len() > 3 * 8, "{lines}");
}
