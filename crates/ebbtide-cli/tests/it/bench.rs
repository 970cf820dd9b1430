//! `ebbtide bench`: an open loop, the distribution of its times, and a result whatever the server does.
#![cfg(unix)]

use crate::common::{Serving, command, ebbtide, refuse};
use serde_json::Value;
use std::fs;
use std::process::Stdio;

#[test]
fn an_open_loop_sends_as_many_requests_as_its_rate_says_and_writes_their_distribution() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("times.hgrm");
    let server = Serving::start(&[]);
    for engine in ["loop", "client"] {
        let uri = server.uri("/test");
        let bench =
            ["bench", &uri, "--engine", engine, "--rate", "50", "--duration", "1", "--json"];
        let answer = ebbtide(&[&bench[..], &["--hdr", path.to_str().unwrap()]].concat());
        let report: Value = serde_json::from_str(&answer.out).unwrap();
        let sum = report["answered"].as_u64().unwrap() + report["failed"].as_u64().unwrap();
        assert_eq!(sum, 50, "{report}");
        assert!(report["p999_us"].as_f64().unwrap() >= report["p99_us"].as_f64().unwrap());
        let times = fs::read_to_string(&path).unwrap();
        assert!(times.contains("1/(1-Percentile)") && times.contains("Total count"), "{times}");
        let last = times.lines().rev().find(|line| !line.starts_with('#')).unwrap();
        assert_eq!(last.split_whitespace().nth(2).unwrap(), report["answered"].to_string());
    }
    let uri = format!("coap+tcp://{}/test", server.address);
    refuse(&["bench", &uri, "--rate", "1"], &["--rate", "--engine client"]);
    refuse(&["bench", &uri, "--rate", "0"], &["--rate", "requests a second"]);
}

#[test]
fn a_server_that_goes_away_leaves_a_result_at_the_end_of_the_duration() {
    for engine in ["loop", "client"] {
        let server = Serving::start(&[]);
        let uri = server.uri("/separate");
        let mut bench = command(&["bench", &uri, "--engine", engine, "--duration", "3", "--json"]);
        let bench = bench.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A program that starts after the measurement has ended, so that has begun.
        assert_eq!(ebbtide(&["get", &server.uri("/test")]).code, Some(0));
        // The server answers each request after two seconds, those of the measurement before this one; then it is gone.
        let probe = ebbtide(&["get", &uri, "-B", "60"]);
        assert_eq!(probe.code, Some(0), "{}", probe.err);
        drop(server);
        let ended = bench.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(1));
        let out = String::from_utf8(ended.stdout).unwrap();
        let report: Value = serde_json::from_str(&out).unwrap();
        assert!(report["failed"].as_u64().unwrap() > 0, "{report}");
    }
}
