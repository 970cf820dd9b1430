//! A DTLS client and server whose datagrams are cut, changed and mixed with any bytes: neither panics,
//! no data arrives that was not sent, and nothing is kept without bound. The machine is that of the
//! crate's tests; its `play` says what the first bytes do.
#![no_main]

#[path = "../../crates/ebbtide-dtls/tests/common/mod.rs"]
mod common;
#[path = "../../crates/ebbtide-dtls/tests/common/script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| script::play(bytes));
