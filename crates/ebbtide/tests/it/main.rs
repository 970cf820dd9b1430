//! All integration tests of the crate in one program, which links once. `cargo test -p ebbtide FILE` runs the
//! tests of one file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

mod allocations;
mod amplification;
mod bind_errors;
mod brief_handlers;
mod burst;
mod client_messages;
mod client_observation;
mod client_patience;
mod client_room;
mod common;
mod conformance_page;
mod dtls;
mod dtls13;
mod dtls_certificates;
mod dtls_many;
mod dtls_raw_keys;
mod dtls_restart;
mod dtls_speed;
mod dtls_workers;
mod edhoc;
mod equal_requests;
mod extractors;
mod fair_shares;
mod floods;
mod handler_cost;
mod handlers;
mod lifecycle;
mod lossy_relay;
mod many_peers;
mod measurement;
mod metrics;
mod multicast;
mod network_errors;
mod node;
mod observe_late;
mod oscore;
mod oscore_copies;
mod oscore_costs;
mod oscore_kills;
mod oscore_protocols;
mod oscore_renewal;
mod oscore_streams;
mod probes;
mod quick_blocks;
mod quick_server;
mod readme;
mod receiving;
mod recipes;
mod refusals;
mod request_timeout;
mod restart;
mod server_protocols;
mod stranger_costs;
mod stream_bad_input;
mod stream_certificates;
mod stream_floods;
mod stream_requests;
mod streamed_bodies;
mod streamed_uploads;
mod subjects;
mod tracing_spans;
mod upload_anew;
mod upload_answers;
mod upload_copies;
mod upload_in_order;
mod wire_verdicts;
