//! The examples of drivers: a client and a server on blocking sockets, with losses.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// An example, which `cargo test` builds beside the tests, unless it is told to build one test program alone.
fn example(name: &str) -> Option<PathBuf> {
    let built = std::env::current_exe().unwrap().ancestors().nth(2)?.join("examples").join(name);
    built.exists().then_some(built)
}

#[test]
fn a_body_comes_back_and_states_arrive_though_every_seventh_datagram_is_lost() {
    let (Some(server), Some(client)) = (example("blocking_server"), example("blocking_client"))
    else {
        println!("skipped: the examples are not built: cargo build --examples -p ebbtide-core");
        return;
    };
    let run = |program: PathBuf, argument: &str| {
        let mut command = Command::new(program);
        command.arg(argument).env("EBBTIDE_LOSE", "7").stdout(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut server = run(server, "127.0.0.1:0");
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let client = run(client, address.trim()).wait_with_output().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let said = String::from_utf8(client.stdout).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        (lines[0], lines[4]),
        ("the body came back: true", "0 exchanges are open"),
        "{said}"
    );
    let times: Vec<u32> = lines[1..4].iter().map(|time| time.parse().unwrap()).collect();
    assert!(times.is_sorted() && times[0] < times[2], "{said}");
}
