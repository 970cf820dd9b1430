//! Multicast groups that a server joins (RFC 7252 section 8).

use crate::net::shared::Shared;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// All CoAP Nodes (RFC 7252 section 12.8): the IPv4 group, the IPv6 link-local group, and the IPv6
/// site-local group.
pub const ALL_COAP_NODES: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(224, 0, 1, 187)),
    IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfd)),
    IpAddr::V6(Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 0xfd)),
];

/// The index of an interface, as [`Server::join`](super::Server::join) takes it.
///
/// # Errors
///
/// Returns an error if there is no interface of this name.
pub fn interface_index(name: &str) -> io::Result<u32> {
    // The system resolves the zone of a link-local address (RFC 4007 section 11).
    let found = (format!("fe80::1%{name}").as_str(), 0).to_socket_addrs();
    let zone = found.ok().and_then(|mut addresses| match addresses.next() {
        Some(SocketAddr::V6(address)) => Some(address.scope_id()),
        _ => None,
    });
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no interface '{name}'"));
    zone.filter(|zone| *zone > 0).ok_or_else(missing)
}

/// Joins `group` at the sockets that are bound to all addresses of its family; other sockets do not
/// receive its datagrams. Returns false if there is no such socket.
pub(super) fn join<'s>(
    sockets: impl Iterator<Item = &'s Arc<Shared>>,
    group: IpAddr,
    interface: u32,
) -> io::Result<bool> {
    let mut joined = Vec::new();
    for shared in sockets {
        let address = shared.local_addr();
        // Of several workers at one address, one receives the group's datagrams.
        let is_first = !joined.contains(&address);
        if is_first && shared.device.is_open_to(group) {
            shared.device.join(group, interface).map_err(|error| {
                io::Error::new(error.kind(), format!("group {group} cannot be joined: {error}"))
            })?;
            joined.push(address);
        }
    }
    Ok(!joined.is_empty())
}
