//! All integration tests of the crate in one program.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

mod connections;
mod groups;
mod hour;
mod links;
mod lost_sessions;
mod observations;
mod outages;
mod patience;
mod protected_blocks;
mod protected_hour;
mod repetition;
mod whole_server;
mod wire_verdicts;
#[path = "../../../../crates/ebbtide/tests/it/common/wire_words.rs"]
mod wire_words;
