//! `ebbtide check`: what it says of servers that keep the rules, and of one that does not.

use crate::common::{Serving, command, ebbtide, refuse};
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, Stdio};
use std::time::Duration;

#[test]
fn our_own_server_breaks_no_rule() {
    let serving = Serving::start(&[]);
    let uri = format!("coap://{}", serving.address);
    let answer = ebbtide(&["check", &uri, "--write", "/echo"]);
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    assert!(answer.out.contains(" 0 faults, 0 pieces of advice"), "{}", answer.out);
}

/// Answers every datagram of four bytes or more with an Acknowledgement 2.05 without a token,
/// unless `other` has another answer.
fn careless(other: impl Fn(&[u8]) -> Option<[u8; 4]> + Send + 'static) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut buf = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buf) {
            if let Some(answer) = other(&buf[..len]) {
                socket.send_to(&answer, from).unwrap();
            } else if len >= 4 {
                socket.send_to(&[0x60, 0x45, buf[2], buf[3], 0xff, b'x'], from).unwrap();
            }
        }
    });
    address
}

fn verdicts(server: &str) -> Vec<(String, String)> {
    let answer = ebbtide(&["check", &format!("coap://{server}"), "--json", "--write", "/x"]);
    assert_eq!(answer.code, Some(1), "{}", answer.err);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&answer.out).unwrap();
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "rule"), text(row, "verdict"))).collect()
}

#[test]
fn a_server_that_answers_everything_alike_breaks_the_rules_that_are_named() {
    let verdicts = verdicts(&careless(|_| None));
    let verdict = |part: &str| &verdicts.iter().find(|(rule, _)| rule.contains(part)).unwrap().1;
    let broken = [
        "A ping is answered",
        "has the token of its request",
        "A Non-confirmable request is not acknowledged",
        "An unknown method",
        "An unknown critical option in a Confirmable",
        "SZX 7",
        "another version",
        "A token length of 15",
        "A payload marker without",
        "The reserved option nibble",
        "An Empty message with bytes",
        "A response to no request",
        "that fits no message is ignored",
        "without those before it",
        "a block before its last one is missing",
        "shorter than its size",
    ];
    for part in broken {
        assert_eq!(verdict(part), "broken", "{part}");
    }
    for part in ["An unknown elective option", "shorter than a header", "500 damaged datagrams"] {
        assert_eq!(verdict(part), "holds", "{part}");
    }
}

#[test]
fn a_late_message_in_place_of_a_lost_answer_breaks_no_rule() {
    // The Reset of the first copy of each ping is lost; a message that belongs to nothing comes instead.
    let seen = std::sync::Mutex::new(Vec::new());
    let server = careless(move |datagram| {
        let &[0x40, 0, high, low] = datagram else { return None };
        let mut seen = seen.lock().unwrap();
        if seen.contains(&[high, low]) {
            return Some([0x70, 0, high, low]);
        }
        seen.push([high, low]);
        Some([0x50, 0x45, !high, low])
    });
    let ping = verdicts(&server).into_iter().find(|(rule, _)| rule.contains("A ping is answered"));
    assert_eq!(ping.unwrap().1, "holds");
}

#[test]
fn a_server_that_dies_is_a_fault_of_the_rule_that_was_tried_and_the_rest_is_not_tried() {
    let server = careless(|datagram| {
        // Another version than 1 (RFC 7252 section 3).
        if datagram.first().is_some_and(|first| first >> 6 != 1) {
            loop {
                std::thread::park();
            }
        }
        None
    });
    let uri = format!("coap://{server}");
    let answer = ebbtide(&["check", &uri, "--json", "--wait", "0.1"]);
    assert_eq!(answer.code, Some(1), "{}", answer.err);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&answer.out).unwrap();
    let died = rows
        .iter()
        .position(|row| row["rule"].as_str().unwrap().contains("another version"))
        .unwrap();
    assert_eq!((&rows[died]["verdict"], &rows[died]["level"]), (&"broken".into(), &"must".into()));
    assert!(
        rows[died]["detail"].as_str().unwrap().contains("has the server died"),
        "{}",
        rows[died]
    );
    assert!(rows.len() > died + 1);
    assert!(rows[died + 1..].iter().all(|row| row["detail"] == "the server answers no more"));
}

#[test]
fn a_silent_server_is_an_error_and_another_scheme_a_wrong_argument() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}", silent.local_addr().unwrap());
    let answer = ebbtide(&["check", &uri, "--wait", "0.1"]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.err.contains("answers none of six GETs"), "{}", answer.err);
    refuse(&["check", "coaps://127.0.0.1"], &["coap://"]);
}

/// Starts `check --listen` and reads its address.
fn listening() -> (Child, String) {
    let mut child = command(&["check", "--listen", "127.0.0.1:0", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("coap://").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    (child, address)
}

/// The rows of a check, when it has ended.
fn rows_of(mut child: Child) -> Vec<serde_json::Value> {
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.wait().unwrap();
    serde_json::from_str(&out).unwrap()
}

fn broken(rows: &[serde_json::Value]) -> Vec<&str> {
    let is_broken = |row: &&serde_json::Value| row["verdict"] == "broken";
    rows.iter().filter(is_broken).map(|row| row["rule"].as_str().unwrap()).collect()
}

#[test]
fn our_own_client_breaks_no_rule_for_clients() {
    let (child, address) = listening();
    let uri = format!("coap://{address}/x");
    for _ in 0..7 {
        // Whether it has an answer or not: the next request is the next lesson.
        let _ = command(&["get", &uri, "-B", "60"]).output();
    }
    let rows = rows_of(child);
    let of = |verdict: &str| {
        let is_it = |row: &&serde_json::Value| row["level"] == "must" && row["verdict"] == verdict;
        rows.iter().filter(is_it).collect::<Vec<_>>()
    };
    assert!(of("broken").is_empty(), "{:?}", of("broken"));
    // Two at most are not tried: the client may have ended, or have found out by pings.
    assert!(of("holds").len() >= 8, "{rows:?}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a client that sends by the wall clock is checked")]
fn a_client_that_only_repeats_breaks_the_rules_that_are_named() {
    let (child, address) = listening();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(address).unwrap();
    let repeating = std::thread::spawn(move || {
        // Each message four times, until nobody listens.
        for id in 0..400_u16 {
            let [high, low] = (id / 4).to_be_bytes();
            if socket.send(&[0x40, 1, high, low]).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(150));
        }
    });
    let rows = rows_of(child);
    repeating.join().unwrap();
    let broken = broken(&rows);
    for part in [
        "An empty Acknowledgement ends",
        "A Confirmable response is acknowledged",
        "A ping is answered",
        "with a format error is rejected",
        "response to no request is rejected",
        "no earlier than a second",
        "Each wait for an answer is longer",
    ] {
        assert!(broken.iter().any(|rule| rule.contains(part)), "{part}: {broken:?}");
    }
}
