//! The device's endpoint beside the one for many peers: both get the same calls, datagrams and
//! random numbers from the input, and send the same. The machine is that of the test
//! `device_endpoint`; its `play` describes the bytes.
#![no_main]

#[path = "../../crates/ebbtide-core/tests/it/common/split_mix.rs"]
mod split_mix;
/// Its name in the tests.
mod common {
    pub(crate) use super::split_mix;
}
#[path = "../../crates/ebbtide-core/tests/it/device_endpoint.rs"]
mod device_endpoint;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    device_endpoint::play(script.get(..1601).unwrap_or(script));
});
