//! A connection of RFC 8323 that receives arbitrary bytes, as a whole and in pieces. Both give the
//! same result, which is bounded and ends. The machine is that of the property tests; its `play`
//! describes the first bytes.
#![no_main]

#[path = "../../crates/ebbtide-core/tests/it/common/split.rs"]
mod split;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| split::play(script));
