//! `ebbtide check`: what it says of servers that keep the rules, and of one that does not.

use crate::common::{Serving, ebbtide, refuse};
use std::net::UdpSocket;

#[test]
fn our_own_server_breaks_no_rule() {
    let serving = Serving::start(&[]);
    let answer = ebbtide(&["check", &format!("coap://{}", serving.address)]);
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    assert!(answer.out.contains(" 0 faults"), "{}", answer.out);
}

/// Answers every datagram of four bytes or more with an Acknowledgement 2.05 without a token.
fn careless() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut buf = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buf) {
            if len >= 4 {
                socket.send_to(&[0x60, 0x45, buf[2], buf[3], 0xff, b'x'], from).unwrap();
            }
        }
    });
    address
}

#[test]
fn a_server_that_answers_everything_alike_breaks_the_rules_that_are_named() {
    let uri = format!("coap://{}", careless());
    let answer = ebbtide(&["check", &uri, "--json"]);
    assert_eq!(answer.code, Some(1), "{}", answer.err);
    let rows: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let verdict = |part: &str| {
        let rows = rows.as_array().unwrap();
        let row = rows.iter().find(|row| row["rule"].as_str().unwrap().contains(part)).unwrap();
        row["verdict"].as_str().unwrap().to_owned()
    };
    let broken = [
        "A ping is answered",
        "has the token of its request",
        "A Non-confirmable request is not acknowledged",
        "An unknown method",
        "An unknown critical option in a Confirmable",
        "SZX 7",
        "another version",
        "A token length above 8",
        "A payload marker without",
        "The reserved option nibble",
        "An Empty message with bytes",
        "A response to no request",
        "that fits no message is ignored",
    ];
    for part in broken {
        assert_eq!(verdict(part), "broken", "{part}");
    }
    for part in ["An unknown elective option", "shorter than a header", "500 damaged datagrams"] {
        assert_eq!(verdict(part), "holds", "{part}");
    }
}

#[test]
fn a_silent_server_is_an_error_and_another_scheme_a_wrong_argument() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let uri = format!("coap://{}", silent.local_addr().unwrap());
    let answer = ebbtide(&["check", &uri, "--wait", "0.1"]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.err.contains("answers neither"), "{}", answer.err);
    refuse(&["check", "coaps://127.0.0.1"], &["coap://"]);
}
