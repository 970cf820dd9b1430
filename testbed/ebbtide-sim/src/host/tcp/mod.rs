//! Simulated hosts that speak CoAP over TCP (RFC 8323).
//!
//! Each end of a connection is a stack of its own: smoltcp between a [device] without hardware and
//! the CoAP connection of `ebbtide-core`. IPv4 packets cross the links, byte for byte.

mod bulk;
mod client;
mod connection;
mod device;
mod handshake;
mod ledger;
mod segment;
mod server;
mod socket;
#[cfg(test)]
mod tests;
mod wheel;

pub(crate) use bulk::{Bulk, Side, starts};
pub(crate) use client::TcpClient;
pub(crate) use segment::Segment;

use crate::scenario::Scenario;

/// Bytes of IPv4 and UDP, which `network.header` counts where there is nothing else: what it has
/// beyond them is around a packet of TCP as well.
const IPV4_UDP: u32 = 28;

/// The length on the wire of an IPv4 packet that holds a segment.
pub(crate) const fn wire_length(header: u32, packet: u32) -> u32 {
    (packet + header).saturating_sub(IPV4_UDP)
}

/// Requests of a client that are open at once: NSTART, or of a flow, which has no such limit over a
/// reliable transport (RFC 8323 section 2.2), as many as a connection holds.
fn window(scenario: &Scenario) -> u32 {
    match scenario.workload.flow().is_some() {
        true => 1024,
        false => scenario.coap.nstart.max(1).into(),
    }
}

/// Bytes of token that tell so many requests apart.
fn token_length(scenario: &Scenario) -> u8 {
    let least = if scenario.workload.flow().is_some() { 2 } else { 0 };
    scenario.coap.token_length.max(least)
}

/// The largest IPv4 packet of a scenario, bytes.
fn mtu(scenario: &Scenario) -> usize {
    let network = &scenario.network;
    (network.mtu + IPV4_UDP).saturating_sub(network.header) as usize
}
