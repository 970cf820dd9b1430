//! Simulated hosts: real endpoints of `ebbtide-core` under the virtual clock.

mod client;
mod server;

pub(crate) use client::{Client, ClientSetup};
pub(crate) use server::Server;

use ebbtide_core::endpoint::EndpointConfig;
use std::net::{Ipv4Addr, SocketAddr};

/// CoAP's port (RFC 7252 section 6.1).
pub(crate) const PORT: u16 = 5683;

/// The server's address.
pub(crate) fn server_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), PORT))
}

/// The address of a client: one host each in 10.0.0.0/8.
pub(crate) fn client_address(client: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from_bits(0x0a00_0001 + client), PORT))
}

/// The client that an address belongs to.
pub(crate) fn client_at(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V4(v4) => v4.ip().to_bits().checked_sub(0x0a00_0001),
        SocketAddr::V6(_) => None,
    }
}

/// What a packet belongs to; it travels beside the packet and is known to the testbed only.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The number of the exchange at its client, from 0.
    pub(crate) exchange: u32,
    /// Which transmission of it, 0 for the original.
    pub(crate) ordinal: u8,
    /// It is a probe of congestion control for that transmission, or the answer to one.
    pub(crate) probe: bool,
}

/// Limits of a simulated endpoint: those of a device, not of a server farm, so that a thousand of
/// them fit where one would otherwise be.
pub(crate) fn device_config(config: EndpointConfig, window: u16) -> EndpointConfig {
    let mut config = config;
    config.limits.peers = 4;
    config.limits.exchanges = usize::from(window) + 64;
    config.limits.queue_per_peer = 64;
    config.limits.message_bytes = 65_535;
    config
}
