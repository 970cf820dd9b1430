//! Shares at a limit: a source that has very many handshakes or sessions loses its own first. A source is an
//! IPv4 address or an IPv6 network of 64 bits.
//!
//! The sources are counted each time, which costs a small part of the handshake for which room is made.

use super::Dtls13Endpoint;
use ebbtide_core::sharing_prefix;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

impl Dtls13Endpoint {
    /// The handshake that gives way to one of `from`: the oldest one of `from`, if that has as many as are free to
    /// others; at the limit that of the source with most.
    pub(super) fn surplus_handshake(&self, from: SocketAddr) -> Option<u64> {
        let counts = counts(&self.handshakes);
        let (from, max) = (sharing_prefix(from.ip()), self.limits.handshakes.max(1));
        let free = max.saturating_sub(self.handshakes.len());
        let own = counts.get(&from).copied().unwrap_or(0);
        match (own > 0 && own >= free, free) {
            (true, _) => self.oldest(&self.handshakes, from),
            (false, 0) => self.oldest(&self.handshakes, largest(&counts)?),
            (false, _) => None,
        }
    }

    /// The session that gives way at the limit: the least recently used one of the source with most.
    pub(super) fn surplus_session(&self) -> Option<u64> {
        self.oldest(&self.established, largest(&counts(&self.established))?)
    }

    fn oldest(&self, places: &BTreeMap<SocketAddr, u64>, source: IpAddr) -> Option<u64> {
        let own = places.iter().filter(|(remote, _)| sharing_prefix(remote.ip()) == source);
        // Numbers are given in order, so of two handshakes the older one has the lower.
        let used = |number: &u64| self.sessions.get(number).map(|session| (session.used, *number));
        own.map(|(_, number)| *number).min_by_key(used)
    }
}

fn counts(places: &BTreeMap<SocketAddr, u64>) -> BTreeMap<IpAddr, usize> {
    let mut counts = BTreeMap::new();
    for remote in places.keys() {
        *counts.entry(sharing_prefix(remote.ip())).or_default() += 1;
    }
    counts
}

fn largest(counts: &BTreeMap<IpAddr, usize>) -> Option<IpAddr> {
    counts.iter().max_by_key(|(_, count)| **count).map(|(source, _)| *source)
}
