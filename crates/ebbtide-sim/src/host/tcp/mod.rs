//! Simulated hosts that speak CoAP over TCP (RFC 8323).
//!
//! Each end of a connection is a stack of its own: smoltcp between a [device] without hardware and
//! the CoAP connection of `ebbtide-core`. What crosses the links is IPv4 packets, byte for byte.

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

pub(crate) use client::TcpClient;
pub(crate) use segment::Segment;
pub(crate) use server::TcpServer;

use crate::scenario::Scenario;

/// Bytes of IPv4 and UDP, which `network.header` counts where there is nothing else: what it has
/// beyond them is around a packet of TCP as well.
const IPV4_UDP: u32 = 28;

/// The length on the wire of an IPv4 packet that holds a segment.
pub(crate) const fn wire_length(header: u32, packet: u32) -> u32 {
    (packet + header).saturating_sub(IPV4_UDP)
}

/// The largest IPv4 packet of a scenario, bytes.
fn mtu(scenario: &Scenario) -> usize {
    let network = &scenario.network;
    (network.mtu + IPV4_UDP).saturating_sub(network.header) as usize
}
