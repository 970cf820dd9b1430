//! All integration tests of the crate in one program, which links once. `cargo test -p ebbtide-sim FILE` runs the
//! tests of one file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

mod background;
mod chunks;
mod classes;
mod common;
mod curve;
mod custom_controls;
mod ecn;
mod events;
mod exchange_rows;
mod flows;
mod four_questions;

mod judgement;
mod link_closed_forms;
mod link_references;
mod link_schedule;
mod long_paths;
mod lora;
mod lora_adr;
mod lora_medium;
mod loss_models;
mod low_power;
mod low_power_classes;
mod low_power_errors;
mod low_power_routes;
mod low_power_spacing;
mod measurement;
mod medium_conservation;
mod medium_geometry;
mod medium_saturation;
mod medium_waits;
mod nb_iot;
mod nb_iot_cell;
mod over_time;
mod q_block;
mod queue_disciplines;
mod queue_references;
mod requirements;
mod same_answer;
mod scenario_keys;
mod scenario_properties;
mod security;
mod security_oscore;
mod series;
mod spans;
mod tcp_closed_forms;
mod traffic;
mod until;
mod wifi_errors;
mod wifi_frames;
mod wifi_network;
mod wifi_saturation;
