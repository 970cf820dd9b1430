//! Simulated hosts: real endpoints of `ebbtide-core` under the virtual clock, over UDP or TCP.

mod agenda;
mod answerer;
mod bodies;
mod book;
mod client;
mod device;
mod endpoint_config;
mod exchange_ledger;
mod exchanges;
mod flow;
mod model;
mod observers;
mod oscore;
mod q_block;
mod reports;
mod secure;
mod server;
mod tcp;
mod traffic;
mod traits;

pub(crate) use answerer::Answerer;
pub(crate) use book::Arrivals;
use book::OutcomeBook;
pub(crate) use device::device;
pub(crate) use endpoint_config::device_config;
pub use endpoint_config::endpoint_config;
pub(crate) use exchange_ledger::ExchangeLedger;
pub(crate) use model::{ClientModel, Model};
use observers::observe_before;
pub(crate) use secure::SecureServer;
pub(crate) use server::ConstantServer;
pub(crate) use tcp::{Bulk, Segment, Side, starts, wire_length};
pub(crate) use traffic::Timetable;
pub(crate) use traits::{ArrivingPacket, Host, ObservedHost, ServerEnd};

use crate::record::Tagged;
pub(crate) use client::{Client, ClientSetup};
use ebbtide_core::PeerId;
use q_block::QBlockClient;
use std::net::{Ipv4Addr, SocketAddr};
use tcp::TcpClient;

/// 10.0.0.1.
const FIRST_CLIENT: u32 = 0x0a00_0001;

/// CoAP's port (RFC 7252 section 6.1).
pub(crate) const PORT: u16 = 5683;

/// The first server's address, of those for documentation (RFC 5737).
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// The server's address and port.
pub(crate) fn server_address() -> SocketAddr {
    server_in_turn(0)
}

/// The address and port of one of several servers, which a client asks in turn.
fn server_in_turn(number: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from_bits(SERVER.to_bits().wrapping_add(number)), PORT))
}

/// The address of a client's host: one each in 10.0.0.0/8.
fn client_host(client: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST_CLIENT + client)
}

/// The address and port of a client over UDP.
pub(crate) fn client_address(client: u32) -> SocketAddr {
    SocketAddr::from((client_host(client), PORT))
}

/// The client that an address belongs to.
pub(crate) fn client_at(peer: PeerId) -> Option<u32> {
    match peer {
        PeerId::Address(SocketAddr::V4(v4)) => v4.ip().to_bits().checked_sub(FIRST_CLIENT),
        _ => None,
    }
}

/// The payload of a message: digits, over and over.
pub(crate) fn digits(bytes: u32) -> Vec<u8> {
    b"0123456789".iter().copied().cycle().take(bytes as usize).collect()
}

/// The message to which a packet belongs; it travels beside the packet and is known to the testbed only.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The number of the exchange at its client, from 0.
    pub(crate) exchange: u32,
    /// Which transmission of it, 0 for the original.
    pub(crate) ordinal: u8,
    /// It is a probe of congestion control for that transmission, or the answer to one.
    pub(crate) probe: bool,
}

/// A packet that leaves a client, or the server for a client.
#[derive(Copy, Clone, Debug)]
pub(crate) struct OutgoingPacket<'p> {
    pub(crate) client: u32,
    pub(crate) datagram: &'p [u8],
    pub(crate) tag: Tag,
}

/// Names the message in what a recorder sees.
pub(crate) const fn tagged(client: u32, tag: Tag) -> Tagged {
    Tagged { client, exchange: tag.exchange, ordinal: tag.ordinal, probe: tag.probe }
}
