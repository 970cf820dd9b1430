//! All integration tests of the crate in one program, which links once. `cargo test -p ebbtide-cli FILE` runs the
//! tests of one file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

mod balance;
mod bench;
mod check;
mod client;
mod commands;
mod common;
mod compact;
mod emulate;
mod export;
mod folders;
mod map;
mod metrics;
mod packaged;
mod proxy;
mod put_through_loss;
mod replay;
mod scenario_errors;
mod serve_bad_files;
mod serve_files;
mod serve_full_disk;
mod serve_log;
mod serve_options;
mod serve_restart;
