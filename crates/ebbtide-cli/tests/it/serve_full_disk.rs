//! A disk that is full, in namespaces where the test can make one.
#![cfg(target_os = "linux")]

use crate::common::namespaces::{in_namespaces, is_inside, run};
use crate::common::{Serving, command, ebbtide};
use crate::metrics::scrape;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_full_disk_is_logged_and_counted_until_there_is_room_again() {
    in_namespaces("serve_full_disk::the_machine_with_the_disk");
}

/// Takes what room is left.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    while file.write(&[0; 512]).is_ok_and(|written| written > 0) {}
}

/// Without the namespaces it is no test.
#[test]
fn the_machine_with_the_disk() {
    if !is_inside() {
        return;
    }
    assert!(run("ip", &["link", "set", "lo", "up"]));
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().to_str().unwrap();
    assert!(run("mount", &["-t", "tmpfs", "-o", "size=128k", "none", disk]));
    let (state, filler) = (format!("{disk}/state"), folder.path().join("filler"));

    // A file of a client.
    fill(&filler);
    let mut files = command(&["serve", "--bind", "127.0.0.1:0", "--dir", disk, "--writable"]);
    let mut server = Serving::spawn(files.stderr(Stdio::piped()));
    let mut log = BufReader::new(server.take_stderr()).lines();
    let text = "x".repeat(9000);
    let put = ebbtide(&["put", &server.uri("/file"), "-e", &text, "-B", "60"]);
    assert!(put.code == Some(1) && put.err.contains("5.03"), "{}", put.err);
    assert!(log.next().unwrap().unwrap().contains("a file cannot be stored"));
    fs::remove_file(&filler).unwrap();
    drop(server);

    // The state.
    let arguments =
        ["serve", "--bind", "127.0.0.1:0", "--state", &state, "--metrics", "127.0.0.1:0"];
    let mut server = Serving::spawn(command(&arguments).stderr(Stdio::piped()));
    let metrics = server.after("metrics at http://").trim_end_matches("/metrics").to_owned();
    let mut log = BufReader::new(server.take_stderr()).lines();
    fill(&filler);
    let observer = UdpSocket::bind("127.0.0.1:0").unwrap();
    observer.connect(&server.address).unwrap();
    observer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut bytes = [0; 100];
    for number in 0..400_u16 {
        let [high, low] = number.to_be_bytes();
        observer
            .send(&[&[0x42, 1, high, low, high, low, 0x60, 0x54], &b"time"[..]].concat())
            .unwrap();
        observer.recv(&mut bytes).unwrap();
        if bytes[0] >> 4 == 4 {
            observer.send(&[0x60, 0, bytes[2], bytes[3]]).unwrap();
        }
    }
    let line = log.next().unwrap().unwrap();
    assert!(line.contains("the state cannot be stored") && line.contains(&state), "{line}");
    assert!(scrape(&metrics)["ebbtide_state_errors_total"] > 0.0);
    fs::remove_file(&filler).unwrap();
    assert!(log.next().unwrap().unwrap().contains("the state is stored again"));
    // It has all of them: the server serves as before.
    assert_eq!(ebbtide(&["get", &server.uri("/test"), "-B", "60"]).code, Some(0));
    let stored = fs::read(&state).unwrap();
    assert!(stored.windows(4).filter(|bytes| bytes == b"time").count() >= 400);
}
