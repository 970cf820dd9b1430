//! Stand-ins for the addresses of DTLS peers.
//!
//! Everything above the sessions (the message layer, congestion control, observers) identifies a
//! peer by its address. A session outlives its peer's address and therefore gets an address of its
//! own: an IPv6 address with a prefix that is reserved and never assigned (0100::/8, RFC 4291), the
//! session's number, and that of the socket, since all sockets of a server share state. It never leaves this process, and a datagram that comes from such an address is
//! dropped. The upper half of the address, whose holder has one fair share, differs from session to
//! session.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The first bits, followed by the family of the socket.
const PREFIX: u16 = 0x01eb;

/// The port of CoAP over DTLS (RFC 7252 section 6.2).
pub(crate) const PORT: u16 = 5684;

/// A socket that has sessions.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Place {
    pub(crate) is_ipv4: bool,
    /// The socket's number.
    pub(crate) socket: u32,
}

impl Place {
    /// The stand-in for the session with this number.
    pub(super) fn stand_in(self, number: u64) -> SocketAddr {
        let family = if self.is_ipv4 { 4 } else { 6 };
        let part = |shift: u32| (number >> shift) as u16;
        let (high, low) = ((self.socket >> 16) as u16, self.socket as u16);
        let (a, b, c, d) = (part(48), part(32), part(16), part(0));
        let ip = Ipv6Addr::new(PREFIX, family, c, d, a, b, high, low);
        SocketAddr::new(ip.into(), PORT)
    }
}

/// A stand-in that belongs to no session.
pub(crate) fn any(is_ipv4: bool) -> SocketAddr {
    Place { is_ipv4, socket: 0 }.stand_in(0)
}

/// The session number in a stand-in.
pub(super) fn number(stand_in: SocketAddr) -> Option<u64> {
    family(stand_in)?;
    let IpAddr::V6(ip) = stand_in.ip() else { return None };
    let [_, _, c, d, a, b, ..] = ip.segments().map(u64::from);
    Some(a << 48 | b << 32 | c << 16 | d)
}

/// Whether an address is a stand-in.
pub(crate) fn is_stand_in(ip: IpAddr) -> bool {
    family(SocketAddr::new(ip, PORT)).is_some()
}

/// Whether the socket of a stand-in is an IPv4 socket; `None` for addresses that are not
/// stand-ins.
pub(crate) fn family(address: SocketAddr) -> Option<bool> {
    let IpAddr::V6(ip) = address.ip() else { return None };
    match (ip.segments(), address.port()) {
        ([PREFIX, family @ (4 | 6), ..], PORT) => Some(family == 4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_has_its_session_s_number_and_others_have_none() {
        for (is_ipv4, session) in [(true, 0), (false, u64::MAX), (true, 0x0123_4567_89ab_cdef)] {
            let [address, other] =
                [7, 1 << 20].map(|socket| Place { is_ipv4, socket }.stand_in(session));
            assert_eq!((number(address), family(address)), (Some(session), Some(is_ipv4)));
            assert_ne!(address, other, "sessions of two sockets");
        }
        for other in ["192.0.2.1:5684", "[1eb:4::1]:5683", "[1eb:5::1]:5684", "[2001:db8::1]:5684"]
        {
            let other: SocketAddr = other.parse().unwrap();
            assert_eq!((number(other), family(other)), (None, None));
        }
    }
}
