//! A group with members of ours and of libcoap, on a network made for it.

use super::peers::{EBBTIDE, output};
use std::process::Command;

const NAMESPACES: [&str; 7] =
    ["--user", "--map-root-user", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"];

/// Whether this machine lets a test make networks.
fn can_make_networks() -> bool {
    let run = Command::new("unshare").args(NAMESPACES).args(["ip", "link"]).output();
    let can = run.is_ok_and(|output| output.status.success());
    if !can {
        // Past the capture of the test harness, which hides what a passing test prints.
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"skipped: no network namespaces for this user, or no `unshare` or `ip`\n",
        );
    }
    can
}

#[tokio::test]
async fn the_members_of_a_group_answer_at_leisure_and_only_if_they_have_something_to_say() {
    if !can_make_networks() {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/members.sh");
    let output = output("unshare", &[&NAMESPACES[..], &["sh", script, EBBTIDE]].concat()).await;
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let has = |line: &str| said.lines().any(|said| said.starts_with(line));
    let count = |line: &str| said.lines().filter(|said| said.starts_with(line)).count();
    let with_libcoap = Command::new("coap-server-notls").arg("-h").output().is_ok();
    let members = if with_libcoap { 3 } else { 2 };
    for n in 2..2 + members {
        assert!(has(&format!("discover 10.9.0.{n}:5683")), "{said}\n{errors}");
        assert!(has(&format!("get 10.9.0.{n}:5683")), "{said}\n{errors}");
    }
    assert_eq!(count("discover </time>"), members, "{said}\n{errors}");
    // libcoap has joined the IPv4 group only.
    assert_eq!(count("link [fe80::"), 2, "{said}\n{errors}");
    assert!(said.contains("missing ebbtide: coap://224.0.1.187/missing: no answer"), "{said}");
}
