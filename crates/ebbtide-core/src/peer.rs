//! The other end of an exchange: an address, or a session whose address may change.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The peer by which state is kept: exchanges, congestion control, duplicates, transfers, observations. It names
/// what carries the peer's messages as well, so that one who forges a datagram from the address of a
/// connection is another peer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerId {
    /// The sender of datagrams from this address, which may be forged.
    Address(SocketAddr),
    /// The other end of a security session, whatever its address is at the moment. The session has verified it.
    Session(SessionKey),
    /// The other end of a connection with this address, which the connection has verified.
    Connection(SocketAddr),
}

/// The name of a security session among all sessions of the sockets that share state.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    socket: u32,
    /// The halves of the session's number: a `u64` would be aligned to 8 bytes, and each peer with it.
    high: u32,
    low: u32,
}

/// The holder of one share of a bounded resource.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The host with this address, whatever its port.
    Address(IpAddr),
    /// The peer of a session.
    Session(SessionKey),
}

// Each exchange has one.
const _: () = assert!(size_of::<PeerId>() <= size_of::<SocketAddr>() + 4);

impl SessionKey {
    /// The session with this number at the socket with that number, which the driver gives.
    #[must_use]
    pub const fn new(socket: u32, number: u64) -> Self {
        Self { socket, high: (number >> 32) as u32, low: number as u32 }
    }

    /// The number of the session at its socket.
    #[must_use]
    pub const fn number(self) -> u64 {
        (self.high as u64) << 32 | self.low as u64
    }
}

impl PeerId {
    /// The address; `None` for a session, whose address only its driver knows.
    #[inline]
    #[must_use]
    pub const fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) | Self::Connection(address) => Some(address),
            Self::Session(_) => None,
        }
    }

    /// The source to which its messages are attributed.
    #[inline]
    #[must_use]
    pub const fn source(self) -> Source {
        match self {
            Self::Address(address) | Self::Connection(address) => Source::Address(address.ip()),
            Self::Session(session) => Source::Session(session),
        }
    }

    /// Whether it is a group of hosts.
    #[inline]
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        match self {
            Self::Address(address) => address.ip().is_multicast(),
            Self::Session(_) | Self::Connection(_) => false,
        }
    }
}

impl From<SocketAddr> for PeerId {
    #[inline]
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl From<SessionKey> for PeerId {
    #[inline]
    fn from(session: SessionKey) -> Self {
        Self::Session(session)
    }
}

impl Hash for PeerId {
    /// Hashes one or two integers. The standard library hashes an address as byte strings, which costs more
    /// than the rest of a look-up.
    #[expect(clippy::inline_always, reason = "a call costs more than the hashing")]
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (Self::Address(address) | Self::Connection(address)) = self else {
            return self.source().hash(state);
        };
        match address {
            SocketAddr::V4(v4) => {
                state.write_u64((u64::from(v4.ip().to_bits()) << 16) | u64::from(v4.port()));
            }
            // The parts are not folded into one number, because the owner of a prefix must not be
            // able to choose colliding addresses and ports. Flow label and scope are left to the
            // comparison.
            SocketAddr::V6(v6) => {
                state.write_u128(v6.ip().to_bits());
                state.write_u16(v6.port());
            }
        }
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) | Self::Connection(address) => address.fmt(f),
            Self::Session(session) => fmt::Debug::fmt(session, f),
        }
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {} of socket {}", self.number(), self.socket)
    }
}

impl Source {
    /// All sources that have one share together are the same here: the addresses of a [`sharing_prefix`]. A session
    /// has a share of its own.
    #[must_use]
    pub fn sharing(self) -> Self {
        match self {
            Self::Address(address) => Self::Address(sharing_prefix(address)),
            Self::Session(_) => self,
        }
    }
}

/// The addresses that have one share together: an IPv4 address, or an IPv6 prefix of 64 bits, of which one host may
/// use any address (RFC 4291 section 2.5.4).
#[must_use]
pub fn sharing_prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        ip => ip,
    }
}

impl Hash for Source {
    /// Hashes one or two integers, as [`PeerId`] does.
    #[expect(clippy::inline_always, reason = "a call costs more than the hashing")]
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Address(IpAddr::V4(v4)) => state.write_u32(v4.to_bits()),
            Self::Address(IpAddr::V6(v6)) => state.write_u128(v6.to_bits()),
            Self::Session(session) => session.hash(state),
        }
    }
}

impl From<IpAddr> for Source {
    #[inline]
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

/// Whether a source that holds `own` may have `more`, where `free` is left: no source holds more than is
/// free to all others. So one that takes as much as it can gets half, two get a third each, and a
/// newcomer always finds room.
#[cfg_attr(not(feature = "alloc"), expect(dead_code, reason = "what is shared needs an allocator"))]
pub(crate) const fn is_fair(own: usize, more: usize, free: usize) -> bool {
    more <= free && (own == 0 || own + more <= free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greediest_source_gets_half_and_a_newcomer_finds_room() {
        let mut own = 0;
        while is_fair(own, 1, 100 - own) {
            own += 1;
        }
        assert_eq!(own, 50);
        assert!(is_fair(0, 50, 100 - own));
        assert!(!is_fair(0, 51, 100 - own));
    }

    #[test]
    fn the_addresses_of_an_ipv6_prefix_share_and_sessions_do_not() {
        let sharing = |text: &str| Source::Address(text.parse().unwrap()).sharing();
        assert_eq!(sharing("2001:db8::1"), sharing("2001:db8::ffff:2"));
        assert_ne!(sharing("2001:db8::1"), sharing("2001:db8:0:1::1"));
        assert_eq!(sharing("::ffff:192.0.2.1"), sharing("192.0.2.1"));
        assert_ne!(sharing("192.0.2.1"), sharing("192.0.2.2"));
        let session = |socket, number| Source::Session(SessionKey::new(socket, number)).sharing();
        assert_ne!(session(0, 1), session(0, 2));
        assert_ne!(session(0, 1), session(1, 1));
        assert_eq!(SessionKey::new(1, u64::MAX - 1).number(), u64::MAX - 1);
    }
}
