//! All integration tests of the crate in one program, which links once. `cargo test -p ebbtide-core FILE` runs the
//! tests of one file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

mod blocking_examples;
mod cc_californium;
mod cc_cocoa;
mod cc_cocoa_contiki;
mod cc_config;
mod cc_custom;
mod cc_default;
mod cc_ebb;
mod cc_ebb_lifetime;
mod cc_ebb_verdicts;
mod cc_ecoap;
mod cc_eifel;
mod cc_fasor;
mod cc_non;
mod cc_properties;
mod cc_rcoap;
mod cc_rcoap_properties;
mod cc_rcoap_receivers;
mod cc_schedule;
mod cc_settings_page;
mod cc_shell;
mod cc_sizes;
mod cc_tcp;
mod clock_jumps;
mod common;
mod device_endpoint;
mod device_forgery;
mod device_observation;
mod device_server;
mod device_transfer;
mod endpoint_block;
mod endpoint_buffers;
mod endpoint_ecn;
mod endpoint_endings;
mod endpoint_flights;
mod endpoint_flows;
mod endpoint_group;
mod endpoint_marks;
mod endpoint_measurement;
mod endpoint_non;
mod endpoint_patience;
mod endpoint_probes;
mod endpoint_properties;
mod endpoint_queue;
mod endpoint_server;
mod endpoint_statistics;
mod endpoint_trust;
mod endpoint_unsent;
mod endpoint_waits;
mod extended_tokens;
mod frame_format;
mod oscore_machine;
mod oscore_messages;
mod oscore_renewal;
mod oscore_restarts;
mod oscore_vectors;
mod q_block_pacing;
mod q_block_properties;
mod session_addresses;
mod session_carriers;
mod session_client_blocks;
mod session_client_observe;
mod session_client_properties;
mod session_client_q_block;
mod session_concurrent;
mod session_fair_shares;
mod session_machine;
mod session_observers;
mod session_once;
mod session_outage;
mod session_properties;
mod session_server;
mod session_silent_clients;
mod session_waiting_observers;
mod soak;
mod spans;
mod strangers;
mod stream_bad_input;
mod stream_connection;
mod stream_patience;
mod stream_properties;
mod wire_encoding;
mod wire_examples;
mod wire_malformed;
mod wire_missing_blocks;
mod wire_options;
mod wire_properties;
mod wire_values;
