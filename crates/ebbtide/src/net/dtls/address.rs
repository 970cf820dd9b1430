//! Stand-ins for the addresses of DTLS peers.
//!
//! Everything above the sessions (the message layer, congestion control, observers) identifies a
//! peer by its address. A session outlives its peer's address and therefore gets an address of its
//! own: an IPv6 address with a unique local prefix (RFC 4193) and the session's number. It never
//! leaves this process.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The prefix, drawn once according to RFC 4193 section 3.2.2.
const PREFIX: [u16; 3] = [0xfdeb, 0xb71d, 0xed71];

/// The port of CoAP over DTLS (RFC 7252 section 6.2).
pub(crate) const PORT: u16 = 5684;

/// The stand-in for the session with this number on a socket of this address family.
pub(super) fn stand_in(is_ipv4: bool, number: u64) -> SocketAddr {
    let [a, b, c] = PREFIX;
    let family = if is_ipv4 { 4 } else { 6 };
    let part = |shift: u32| (number >> shift) as u16;
    let ip = Ipv6Addr::new(a, b, c, family, part(48), part(32), part(16), part(0));
    SocketAddr::new(ip.into(), PORT)
}

/// A stand-in that belongs to no session.
pub(crate) fn any(is_ipv4: bool) -> SocketAddr {
    stand_in(is_ipv4, 0)
}

/// The session number in a stand-in.
pub(super) fn number(stand_in: SocketAddr) -> Option<u64> {
    family(stand_in)?;
    let IpAddr::V6(ip) = stand_in.ip() else { return None };
    let [.., a, b, c, d, e, f, g, h] = ip.octets();
    Some(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
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
        ([a, b, c, family, ..], PORT) if [a, b, c] == PREFIX => Some(family == 4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_has_its_session_s_number_and_others_have_none() {
        for (is_ipv4, session) in [(true, 0), (false, u64::MAX), (true, 0x0123_4567_89ab_cdef)] {
            let address = stand_in(is_ipv4, session);
            assert_eq!((number(address), family(address)), (Some(session), Some(is_ipv4)));
        }
        for other in ["192.0.2.1:5684", "[fdeb:b71d:ed71:4::1]:5683", "[fdeb:b71d::1]:5684"] {
            let other: SocketAddr = other.parse().unwrap();
            assert_eq!((number(other), family(other)), (None, None));
        }
    }
}
