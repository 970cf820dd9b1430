//! A connection of RFC 8323 that is fed any bytes, whole and in pieces: what it makes of them is
//! the same, bounded, and ends. The machine is that of the property tests; its `play` says what
//! the first bytes do.
#![no_main]

#[path = "../../crates/ebbtide-core/tests/common/split.rs"]
mod split;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| split::play(script));
