//! Which addresses may be reached, and by whom.

use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses that begin with the same bits, such as `10.0.0.0/8`; a single address is a prefix as well.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// The address as IPv6 writes it; an IPv4 address is mapped.
    bits: u128,
    /// The number of bits that count, of 128.
    length: u8,
}

/// The reason why a text is not a [`Prefix`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixError(String);

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a prefix such as 10.0.0.0/8, 2001:db8::/32 or 192.0.2.7", self.0)
    }
}

impl core::error::Error for PrefixError {}

/// The bits of an address; those of IPv4 are mapped into IPv6.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

const fn mask(length: u8) -> u128 {
    match length {
        0 => 0,
        length => u128::MAX << (128 - length),
    }
}

impl Prefix {
    /// The prefix of an address with this number of bits: up to 32 of IPv4, 128 of IPv6. A larger number counts as the
    /// largest.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Self {
        let length = match address {
            IpAddr::V4(_) => 96 + length.min(32),
            IpAddr::V6(_) => length.min(128),
        };
        Self { bits: bits(address) & mask(length), length }
    }

    /// Whether an address has this prefix. One of IPv6, such as `::/0`, has no addresses of IPv4.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_comparable = address.is_ipv6() || self.length >= 96;
        is_comparable && bits(address) & mask(self.length) == self.bits
    }

    fn is_within(self, other: Self) -> bool {
        self.length >= other.length && self.bits & mask(other.length) == other.bits
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let wrong = || PrefixError(text.to_owned());
        let (address, length) = text.split_once('/').unwrap_or((text, "128"));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = match text.contains('/') {
            true => length.parse().ok().filter(|length| *length <= most).ok_or_else(wrong)?,
            false => most,
        };
        let prefix = Self::new(address, length);
        // Bits behind the prefix are most likely a mistake, which would allow more than was meant.
        if bits(address) & !mask(prefix.length) == 0 { Ok(prefix) } else { Err(wrong()) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from_bits(self.bits);
        match address.to_ipv4_mapped() {
            Some(address) if self.length >= 96 => write!(f, "{address}/{}", self.length - 96),
            _ => write!(f, "{address}/{}", self.length),
        }
    }
}

/// The addresses that mean this machine, this link, or many receivers. A prefix allows those of a range only if it lies
/// within that range, so that `0.0.0.0/0` does not open a machine's own services to strangers.
fn special_range(address: IpAddr) -> Option<Prefix> {
    let v4 = |a, b, c, d, length| Prefix::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), length);
    let v6 =
        |first, length| Prefix::new(IpAddr::V6(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0)), length);
    let ranges = [
        v4(0, 0, 0, 0, 8),
        v4(127, 0, 0, 0, 8),
        v4(169, 254, 0, 0, 16),
        v4(224, 0, 0, 0, 4),
        v4(240, 0, 0, 0, 4),
        Prefix::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
        Prefix::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
        v6(0xfe80, 10),
        v6(0xff00, 8),
        // Addresses whose IPv4 address is not taken out here: of Teredo (RFC 4380 section 4), which hides it, of
        // translators for one site (RFC 8215), which place it where they like, and the old form ::192.0.2.7 (RFC 4291
        // section 2.5.5.1).
        Prefix { bits: 0x2001_0000 << 96, length: 32 },
        Prefix { bits: 0x0064_ff9b_0001 << 80, length: 48 },
        Prefix { bits: 0, length: 96 },
    ];
    let found = ranges.into_iter().find(|range| range.contains(address));
    found.or_else(|| {
        let embedding = Embedding::of(address)?;
        let range = special_range(IpAddr::V4(embedding.address))?;
        Some(embedding.translated(range))
    })
}

/// An IPv4 address that a translator finds within an IPv6 address.
struct Embedding {
    network: Prefix,
    address: Ipv4Addr,
}

impl Embedding {
    fn of(address: IpAddr) -> Option<Self> {
        let v6 = |first, second, length| {
            Prefix::new(IpAddr::V6(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0)), length)
        };
        // NAT64 (RFC 6052 section 2.1) and 6to4 (RFC 3056 section 2).
        let networks = [v6(0x64, 0xff9b, 96), v6(0x2002, 0, 16)];
        let network = networks.into_iter().find(|network| network.contains(address))?;
        let address = (bits(address) >> (96 - network.length)) as u32;
        Some(Self { network, address: Ipv4Addr::from_bits(address) })
    }

    /// A prefix of IPv4 as IPv6 addresses of this network.
    fn translated(&self, prefix: Prefix) -> Prefix {
        let bits = (prefix.bits & u128::from(u32::MAX)) << (96 - self.network.length);
        let length = self.network.length + (prefix.length - 96);
        Prefix { bits: self.network.bits | bits, length }
    }
}

/// The addresses that clients may reach, and the clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    pub(crate) targets: Vec<Prefix>,
    /// The addresses that they may reach over HTTP.
    pub(crate) web: Vec<Prefix>,
    /// The clients that are served; without a prefix all.
    pub(crate) clients: Vec<Prefix>,
}

impl Reach {
    pub(crate) fn may_reach(&self, address: IpAddr) -> bool {
        is_allowed(&self.targets, address)
    }

    pub(crate) fn may_reach_web(&self, address: IpAddr) -> bool {
        is_allowed(&self.web, address)
    }

    pub(crate) fn may_ask(&self, client: IpAddr) -> bool {
        self.clients.is_empty() || self.clients.iter().any(|allowed| allowed.contains(client))
    }
}

fn is_allowed(targets: &[Prefix], address: IpAddr) -> bool {
    let address = address.to_canonical();
    // A group's members would all answer, each with its own message.
    let is_embedded_group =
        Embedding::of(address).is_some_and(|embedding| embedding.address.is_multicast());
    if address.is_multicast() || is_embedded_group {
        return false;
    }
    let special = special_range(address);
    targets.iter().any(|allowed| {
        allowed.contains(address) && special.is_none_or(|range| allowed.is_within(range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    fn reaches(allowed: &[&str], address: &str) -> bool {
        let targets: Vec<_> = allowed.iter().map(|text| prefix(text)).collect();
        is_allowed(&targets, address.parse().unwrap())
    }

    #[test]
    fn a_prefix_is_read_as_it_is_shown() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "192.0.2.7/32", "2001:db8::/32", "::/0"] {
            assert_eq!(prefix(text).to_string(), text);
        }
        assert_eq!(prefix("192.0.2.7"), prefix("192.0.2.7/32"));
        for text in ["10.0.0.1/8", "10.0.0.0/33", "2001:db8::/129", "ten", "10.0.0.0/", ""] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_is_reached_without_a_prefix() {
        assert!(!reaches(&[], "192.0.2.7"));
        assert!(reaches(&["192.0.2.0/24"], "192.0.2.7"));
        assert!(!reaches(&["192.0.2.0/24"], "192.0.3.7"));
    }

    #[test]
    fn this_machine_and_this_link_are_reached_by_a_prefix_of_their_own_alone() {
        for address in
            ["127.0.0.1", "0.0.0.0", "169.254.169.254", "::1", "::", "fe80::1", "::ffff:127.0.0.1"]
        {
            assert!(!reaches(&["0.0.0.0/0", "::/0"], address), "{address}");
        }
        assert!(reaches(&["127.0.0.0/8"], "127.0.0.1"));
        assert!(reaches(&["127.0.0.1"], "::ffff:127.0.0.1"));
        assert!(reaches(&["fe80::/10"], "fe80::1"));
        assert!(!reaches(&["224.0.0.0/4", "ff00::/8"], "224.0.1.187"));
    }

    #[test]
    fn a_prefix_of_ipv6_has_no_addresses_of_ipv4() {
        for address in ["192.0.2.7", "::ffff:192.0.2.7"] {
            assert!(!reaches(&["::/0", "::/64"], address), "{address}");
            assert!(reaches(&["0.0.0.0/0"], address), "{address}");
        }
        assert!(reaches(&["::/0"], "2001:db8::1"));
        assert!(!reaches(&["0.0.0.0/0"], "2001:db8::1"));
    }

    #[test]
    fn what_a_translator_reaches_is_as_special_as_its_ipv4_address() {
        for address in [
            "2001:0:c000:207::1",
            "64:ff9b:1::1",
            "::127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::",
        ] {
            assert!(!reaches(&["::/0", "64:ff9b::/96", "2002::/16"], address), "{address}");
            assert!(reaches(&[address], address), "{address}");
        }
        assert!(reaches(&["64:ff9b::127.0.0.0/104"], "64:ff9b::127.0.0.1"));
        assert!(reaches(&["2002:7f00::/24"], "2002:7f00:1::1"));
        assert!(reaches(&["64:ff9b:1::/96"], "64:ff9b:1::127.0.0.1"));
        assert!(reaches(&["2001::/16"], "2001:db8::1"));
        assert!(reaches(&["::/0"], "64:ff9b::192.0.2.7"));
        assert!(!reaches(&["64:ff9b::224.0.0.0/100"], "64:ff9b::224.0.1.187"));
    }
}
