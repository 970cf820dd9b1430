//! `ebbtide map`: what it refuses, what it leaves out, and that it continues.

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
        ("clients=50..60", "clients=50..60: contradicts exchanges=10..40"),
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
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("worst.txt");
    let shown = text(&map(&["--range", "clients=2..3", "--worst", file.to_str().unwrap()]).stdout);
    assert!(!shown.contains("ebbtide run"), "commands go to the file: {shown}");
    let listed = std::fs::read_to_string(&file).unwrap();
    let command = listed.lines().find(|line| line.starts_with("ebbtide run nb-iot")).unwrap();
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

/// One network of each stratum.
fn fleets(arguments: &[&str]) -> Output {
    let small = ["map", "--preset", "fleets", "--networks", "4", "--reps", "2", "--cc", "ebb"];
    let ranges = ["--range", "clients=1..400", "--against", "default"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.args(small).args(ranges).args(arguments).output().unwrap()
}

#[test]
fn fleets_give_the_same_bytes_with_any_number_of_threads_and_no_stratum_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let run = |jobs: &str| {
        let file = folder.path().join(format!("worst-{jobs}.txt"));
        let output = fleets(&["--json", "--jobs", jobs, "--worst", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), std::fs::read_to_string(file).unwrap())
    };
    let one = run("1");
    assert_eq!(one, run("3"));
    let document: serde_json::Value = serde_json::from_str(&one.0).unwrap();
    let strata = document["strata"].as_array().unwrap();
    let names: Vec<&str> = strata.iter().map(|own| own["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["1 to 3", "4 to 30", "31 to 300", "301 to 400"]);
    for stratum in strata {
        assert_eq!(stratum["networks"], 1, "{stratum}");
        assert_eq!(stratum["summaries"].as_array().unwrap().len(), 3, "ebb, default, fasor-token");
    }
    assert!(document["rule"]["choose"].is_string(), "{}", document["rule"]);
}

#[test]
fn the_tables_of_a_map_fit_80_columns() {
    let shown = text(&fleets(&["--chance"]).stdout);
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{}: {line}", line.chars().count());
    }
    assert!(shown.contains("301 to 400 devices: 1 networks"), "{shown}");
    assert!(shown.contains("The rule chooses "), "{shown}");
}

#[test]
fn fleets_refuse_what_their_strata_contradict() {
    for (arguments, named) in [
        (["--work", "100"], "--work: 100: contradicts --preset fleets"),
        (["--networks", "5"], "--networks: 5: leaves strata empty: there are 6"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
        let output = command.args(["map", "--preset", "fleets"]).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(named), "{}", text(&output.stderr));
    }
}
