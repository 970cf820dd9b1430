//! Simulated hosts that move a body in the Non-confirmable blocks of RFC 9177: the machines of
//! `ebbtide_core::q_block` and real endpoints on both sides.

mod client;
mod server;

pub(crate) use client::QBlockClient;

use super::endpoint_config;
use crate::scenario::{QBlock, Scenario};
use ebbtide_core::cc::{Algorithm, ControlConfig};
use ebbtide_core::endpoint::EndpointConfig;
use ebbtide_core::q_block::QBlockParameters;
use ebbtide_core::wire::Block;

/// Requests whose answers are waited for: the server answers the last one that it got.
const OPEN: usize = 64;

/// The endpoint of either side, and how fast it may send.
fn configs(scenario: &Scenario, settings: QBlock) -> (EndpointConfig, QBlockParameters) {
    let mut config = endpoint_config(scenario, ControlConfig::new(Algorithm::Default));
    config.q_block = true;
    config.limits.exchanges += OPEN;
    let params = settings.parameters(&config.params);
    (config, params)
}

/// The option of a block. Messages have any length; a block's is given as the power of two below.
fn option(num: u32, more: bool, payload: u32) -> u32 {
    let szx = payload.clamp(16, 1024).ilog2() - 4;
    // At most 6, and the number of blocks is checked.
    Block::new(num, more, szx as u8).map_or(0, Block::to_uint)
}
