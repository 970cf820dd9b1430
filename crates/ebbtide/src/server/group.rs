//! Groups (RFC 7252 section 8): which a server joins, and how it answers what they are asked.

use super::respond::{Asked, respond};
use super::service::{Service, Working};
use crate::message::Response;
use crate::net::shared::Shared;
use ebbtide_core::wire::OptionNumber;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// All CoAP Nodes (RFC 7252 section 12.8): of an IPv4 network, of an IPv6 link, of an IPv6 site.
pub const ALL_COAP_NODES: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(224, 0, 1, 187)),
    IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfd)),
    IpAddr::V6(Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 0xfd)),
];

/// The index of an interface, by which [`Server::join`](super::Server::join) knows it.
///
/// # Errors
///
/// If there is no interface of this name.
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

/// Joins `group` at the sockets that are bound to all addresses of its family: others do not
/// receive what is sent to it. False if there is none.
pub(super) fn join<'s>(
    sockets: impl Iterator<Item = &'s Arc<Shared>>,
    group: IpAddr,
    interface: u32,
) -> io::Result<bool> {
    let mut joined = false;
    for shared in sockets {
        let local = shared.local_addr().ip();
        if local.is_unspecified() && local.is_ipv4() == group.is_ipv4() {
            shared.socket.get_ref().0.join(group, interface).map_err(|error| {
                io::Error::new(error.kind(), format!("group {group} cannot be joined: {error}"))
            })?;
            joined = true;
        }
    }
    Ok(joined)
}

/// RFC 7252 section 8.2: a server should not answer if it has nothing useful to say, as with an
/// error or an empty payload. Which address to trust is useful: the client echoes it (RFC 9175
/// section 2.3) and is told the rest.
fn is_useful(response: &Response) -> bool {
    response.is_success() && !response.payload.is_empty()
        || response.options.get(OptionNumber::ECHO).is_some()
}

impl Service {
    /// Answers a request to a group: not at once, so that the members' answers do not collide, and
    /// not at all if there is nothing to say (RFC 7252 section 8.2).
    pub(crate) fn at_leisure(&self, shared: &Arc<Shared>, asked: Asked, response: Response) {
        if !is_useful(&response) {
            return;
        }
        let Some(working) = Working::begin(self) else { return };
        let shared = shared.clone();
        let leisure = shared.lock().endpoint.params().default_leisure.to_duration();
        let part = crate::net::clock::fraction();
        tokio::spawn(async move {
            tokio::time::sleep(leisure.mul_f64(part)).await;
            shared.with(|state, now| respond(state, now, &asked, &response));
            drop(working);
        });
    }
}
