//! All integration tests of the crate in one program, which links once. `cargo test -p ebbtide-dtls FILE` runs the
//! tests of one file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

mod addresses;
mod bounds;
#[cfg(feature = "certificates")]
mod certificates;
mod common;
#[cfg(feature = "certificates")]
mod costs;
#[path = "../../../ebbtide/tests/it/common/counting.rs"]
mod counting;
mod faults;
mod handshake;
#[cfg(feature = "certificates")]
mod illegal_points;
mod libcoap;
mod psk_client;
#[cfg(feature = "certificates")]
mod raw_keys;
mod scripts;
#[cfg(feature = "certificates")]
mod shares;
mod speed;
mod stored_sessions;
mod wireshark;
