//! First ClientHellos that are kept until the second one arrives.

use ebbtide_core::sharing_prefix;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A part of the places that one source can take: anyone can send a first hello, from any port.
const PART_OF_SOURCE: usize = 8;

/// The bodies of ClientHellos, each of at most
/// [`MAX_HANDSHAKE_DATAGRAM`](crate::hello::MAX_HANDSHAKE_DATAGRAM) bytes.
pub(crate) struct KeptHellos {
    /// The oldest first.
    hellos: VecDeque<(SocketAddr, Vec<u8>)>,
    most: usize,
}

impl KeptHellos {
    pub(crate) const fn new(most: usize) -> Self {
        Self { hellos: VecDeque::new(), most }
    }

    /// Keeps a hello as the newest one. An IPv4 address, or an IPv6 prefix of 64 bits, that has its part of the places
    /// loses its oldest hello.
    pub(crate) fn keep(&mut self, from: SocketAddr, body: Vec<u8>) {
        // Another hello from this address may be forged, so it does not replace one.
        self.hellos.retain(|(sender, kept)| *sender != from || *kept != body);
        let source = sharing_prefix(from.ip());
        let is_of_source =
            |(sender, _): &(SocketAddr, Vec<u8>)| sharing_prefix(sender.ip()) == source;
        let taken = self.hellos.iter().filter(|hello| is_of_source(hello)).count();
        if taken >= self.most / PART_OF_SOURCE {
            let oldest = self.hellos.iter().position(is_of_source);
            oldest.map(|oldest| self.hellos.remove(oldest));
        } else if self.hellos.len() >= self.most {
            self.hellos.pop_front();
        }
        self.hellos.push_back((from, body));
    }

    /// The kept hellos from an address.
    pub(crate) fn of(&self, from: SocketAddr) -> impl Iterator<Item = &[u8]> {
        let hellos = self.hellos.iter().filter(move |(sender, _)| *sender == from);
        hellos.map(|(_, body)| &body[..])
    }
}
