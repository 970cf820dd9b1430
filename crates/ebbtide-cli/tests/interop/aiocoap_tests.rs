//! aiocoap's own tests of servers, observation and block-wise transfer, against a server of ours.
//! `docs/interop.md` names those that do not apply.

use super::peers::{EBBTIDE, Peer, output};
use std::path::Path;

#[tokio::test]
async fn aiocoaps_own_tests_pass_against_our_server() {
    if Peer::find("aiocoap").is_none() {
        return;
    }
    let site = ["build", "--quiet", "-p", "ebbtide", "--example", "aiocoap_site"];
    let built = output(env!("CARGO"), &site).await;
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
