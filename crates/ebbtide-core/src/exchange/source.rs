//! Fair shares of a bounded resource.

use core::net::{IpAddr, Ipv6Addr};

/// The source of a message, which has one share: an IPv4 address, or an IPv6 prefix of 64 bits, of which one host may use any
/// address (RFC 4291 section 2.5.4).
#[must_use]
pub fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        ip => ip,
    }
}

/// Whether a source that holds `own` may have `more`, where `free` is left: no source holds more than is
/// free to all others. So one that takes as much as it can gets half, two get a third each, and a
/// newcomer always finds room.
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
    fn the_addresses_of_an_ipv6_prefix_are_one_source() {
        let of = |text: &str| source(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
