//! Two endpoints over a wire that loses, duplicates, reorders and corrupts, driven by the input.
//! After every step the open exchanges are bounded and accounted for, every accepted exchange ends
//! exactly once, and in the end everything is free. The machine is that of the property tests; its
//! `step` describes each byte.
#![no_main]

#[path = "../../crates/ebbtide-core/tests/it/common/machine.rs"]
#[allow(dead_code, reason = "the property tests use more of it")]
mod machine;
#[path = "../../crates/ebbtide-core/tests/it/common/split_mix.rs"]
mod split_mix;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| machine::play(script));
