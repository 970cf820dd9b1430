//! A server's session and clients' transfers over a wire that loses, duplicates and reorders, beside
//! strangers who forge addresses, driven by the input: after every step what is held is bounded, no
//! forged address has got much, and in the end every request has ended once and nothing is left. The
//! machine is that of the test `session_machine`; its `step` says what each byte does.
#![no_main]

#[path = "../../crates/ebbtide-core/tests/common/session/mod.rs"]
#[allow(dead_code, clippy::unwrap_used, clippy::expect_used, reason = "as in the test")]
mod session;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    session::play(script.get(..4096).unwrap_or(script));
});
