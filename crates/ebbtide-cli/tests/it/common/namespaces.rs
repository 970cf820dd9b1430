//! Tests that need a network and mounts of their own run again in namespaces.

use std::io::Write as _;
use std::process::Command;

const INSIDE: &str = "EBBTIDE_TEST_INSIDE";

/// Runs a program, and says whether it succeeds.
pub(crate) fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
}

/// Whether the test runs in the namespaces.
pub(crate) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Says why a test is skipped.
pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    // Past the capture of the test harness, which hides what a passing test prints.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Runs this test of this program in namespaces for its network and its mounts, as their root.
#[track_caller]
pub(crate) fn in_namespaces(test: &str) {
    let own = ["--map-root-user", "--net", "--mount"];
    if !run("unshare", &[&own[..], &["true"]].concat()) {
        return skip("this system gives no namespaces");
    }
    let mut inside = Command::new("unshare");
    inside.args(own).arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    let done = inside.env(INSIDE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success(), "{said}");
}
