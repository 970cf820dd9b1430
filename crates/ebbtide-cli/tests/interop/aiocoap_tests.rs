//! aiocoap's own tests of servers, observation and block-wise transfer, against a server of ours.
//! `docs/interop.md` names those that do not apply.

use super::peers::{EBBTIDE, Peer, output, output_of};
use std::path::Path;
use std::process::Command;

/// A cargo that finds everything built. What cargo and `ci.sh` add to the environment of a test is
/// removed: build scripts ask for some of it, and would build nearly every dependency again, now and
/// once more after the tests.
fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(args);
    let added =
        ["RUSTC_BOOTSTRAP", "LD_LIBRARY_PATH", "CARGO_PKG_", "CARGO_MANIFEST", "CARGO_BIN_EXE"];
    for (name, _) in std::env::vars_os() {
        if added.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            command.env_remove(name);
        }
    }
    command
}

#[tokio::test]
async fn aiocoaps_own_tests_pass_against_our_server() {
    if Peer::find("aiocoap").is_none() {
        return;
    }
    // The whole workspace, with the features of CI's tests: those of one package alone are others.
    let features = ["--workspace", "--features", "ebbtide/dtls13"];
    let site = [&["build", "--quiet", "--example", "aiocoap_site"][..], &features].concat();
    let built = output_of(cargo(&site)).await;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let target = Path::new(EBBTIDE).parent().and_then(Path::parent).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop/aiocoap/own_tests.py");
    let python = target.join("interop/aiocoap/bin/python");
    let ran = output(python, &["-W", "ignore", script]).await;
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    // A run without tests succeeds as well.
    let passed = said.lines().filter(|line| line.ends_with("... ok")).count();
    assert!(passed >= 40, "{passed} tests passed:\n{said}");
}
