//! Two peers with both roles in one security context of OSCORE, over a wire that loses, repeats,
//! delays, damages and reflects, while they restart. No nonce is used twice, and what is accepted
//! was said, once. The machine is that of the test `oscore_machine`; its `play` describes the
//! bytes.
#![no_main]

#[path = "../../crates/ebbtide-core/tests/it/common/oscore_machine.rs"]
#[allow(dead_code, reason = "the test reads what has happened")]
mod oscore_machine;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    oscore_machine::play(script);
});
