//! The log of `ebbtide serve`: what is written, in which form, and that nobody has to read it.
#![cfg(unix)]

use crate::common::private::write_private;
use crate::common::{Serving, command, ebbtide};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let mut command = command(&["serve", "--bind", "127.0.0.1:0", "-v"]);
    // A pipe holds 64 KiB, which is less than 400 requests write.
    let mut server = Serving::spawn(command.stderr(Stdio::piped()));
    let errors = server.take_stderr();
    let uri = server.uri("/test");
    let report = ebbtide(&["bench", &uri, "--requests", "600", "--duration", "60", "--json"]);
    assert_eq!(report.code, Some(0), "{}", report.err);
    assert!(report.out.contains("\"answered\":600,"), "{}", report.out);
    assert_eq!(ebbtide(&["get", &uri, "-B", "20"]).code, Some(0));
    server.terminate();
    // The writer gives up in time.
    assert_eq!(server.wait().code(), Some(0));
    drop(errors);
}

#[test]
fn a_failed_handshake_is_logged_once_with_its_address_as_json_with_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys.txt");
    write_private(&keys, "known:sesame\n");
    let arguments = ["serve", "--bind", "127.0.0.1:0", "--bind", "coaps://127.0.0.1:0"];
    let mut command = command(&arguments);
    command.args(["--psk-file", keys.to_str().unwrap(), "--log", "json"]).env_remove("RUST_LOG");
    let mut server = Serving::spawn(command.stderr(Stdio::piped()));
    let errors = server.take_stderr();
    let address = server.after("serving at coaps://");
    let uri = format!("coaps://{address}/test");
    let refused = ebbtide(&["get", &uri, "-u", "ghost", "-k", "sesame", "-B", "20"]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    let mut lines = BufReader::new(errors).lines();
    let line = lines.next().unwrap().unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["level"], "WARN", "{line}");
    assert!(line["message"].as_str().unwrap().starts_with("DTLS handshake"), "{line}");
    assert!(line["remote"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
    assert!(line["timestamp"].as_str().unwrap().starts_with("20"), "{line}");
    assert!(!line.to_string().contains("sesame"), "{line}");
}

#[test]
fn messages_are_logged_on_request_without_the_values_of_queries() {
    for (filter, shows) in
        [("ebbtide::message=debug", false), ("ebbtide::message=debug,ebbtide::query=trace", true)]
    {
        let mut command = command(&["serve", "--bind", "127.0.0.1:0"]);
        let mut server = Serving::spawn(command.env("RUST_LOG", filter).stderr(Stdio::piped()));
        let mut errors = server.take_stderr();
        assert_eq!(ebbtide(&["get", &server.uri("/test?token=secret"), "-B", "20"]).code, Some(0));
        server.terminate();
        let mut log = String::new();
        errors.read_to_string(&mut log).unwrap();
        assert!(
            log.contains("Uri-Path \\\"test\\\"") || log.contains("Uri-Path \"test\""),
            "{log}"
        );
        assert_eq!(log.contains("secret"), shows, "{log}");
        assert!(log.contains("peer=127.0.0.1:"), "{log}");
    }
}

#[test]
fn a_filter_that_is_wrong_is_refused_with_its_variable() {
    let answer = command(&["serve", "--bind", "127.0.0.1:0"]).env("RUST_LOG", "a=loud").output();
    let answer = answer.unwrap();
    assert_eq!(answer.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&answer.stderr).contains("RUST_LOG=a=loud"));
}
