//! A DTLS client and server whose datagrams are cut, changed and mixed with arbitrary bytes.
//! Neither side panics, only data that was sent arrives, and memory is bounded. The machine is
//! that of the crate's tests; its `play` describes the first bytes.
#![no_main]

#[path = "../../crates/ebbtide-dtls/tests/it/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| common::script::play(bytes));
