//! A server's session and clients' transfers over a wire that loses, duplicates and reorders,
//! together with attackers who forge addresses, driven by the input. After every step memory is
//! bounded and no forged address has received much, and in the end every request has ended once
//! and no state is left. The machine is that of the test `session_machine`; its `step` describes
//! each byte.
#![no_main]

#[path = "../../crates/ebbtide-core/tests/it/common/session/mod.rs"]
#[allow(dead_code, clippy::unwrap_used, clippy::expect_used, reason = "as in the test")]
mod session;
#[path = "../../crates/ebbtide-core/tests/it/common/split_mix.rs"]
mod split_mix;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    session::play(script.get(..4096).unwrap_or(script));
});
