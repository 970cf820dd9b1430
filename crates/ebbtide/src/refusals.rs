//! Counters of a server's refusals: by reason, by class of address, and of about how many addresses.
//!
//! Counting takes no lock and allocates nothing, since it is done for every datagram of a flood.

use ebbtide_core::Source;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which limit was met.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A datagram that was no CoAP message.
    Malformed,
    /// A request that could not be remembered against duplicates: 5.03.
    NotRemembered,
    /// A message of OSCORE that was not authentic, or not new: 4.00, 4.01 or 4.02.
    Oscore,
    /// An address had to show that it is there: 4.01 with Echo.
    Challenged,
    /// More requests a second than one address may make: 4.29.
    TooManyRequests,
    /// An upload or a message of EDHOC that found no room: 5.03 with Max-Age.
    NoRoom,
    /// All places of asynchronous handlers were taken: 5.03 with Max-Age.
    Overloaded,
    /// All places of observers were taken.
    ObserverRefused,
    /// An address had as many connections as one may have.
    ConnectionsOfAddress,
    /// There were as many connections as there may be.
    ConnectionsFull,
    /// Too few descriptors were left for a connection.
    Descriptors,
    /// The handshake of a connection failed or took too long.
    Handshake,
}

/// Each reason with its name in metrics and in the log.
const REASONS: [(Reason, &str); 12] = [
    (Reason::Malformed, "malformed"),
    (Reason::NotRemembered, "not-remembered"),
    (Reason::Oscore, "oscore"),
    (Reason::Challenged, "challenged"),
    (Reason::TooManyRequests, "too-many-requests"),
    (Reason::NoRoom, "no-room"),
    (Reason::Overloaded, "overloaded"),
    (Reason::ObserverRefused, "observer-refused"),
    (Reason::ConnectionsOfAddress, "connections-of-address"),
    (Reason::ConnectionsFull, "connections-full"),
    (Reason::Descriptors, "descriptors"),
    (Reason::Handshake, "handshake"),
];

/// The class of an address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// This machine.
    Loopback,
    /// It may be forged.
    Unverified(Family),
    /// It has echoed a challenge, or has a connection.
    Verified(Family),
    /// A peer with a key, over DTLS.
    Dtls,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Ipv4,
    Ipv6,
}

const CLASSES: [(Class, &str); 6] = [
    (Class::Loopback, "loopback"),
    (Class::Unverified(Family::Ipv4), "unverified-ipv4"),
    (Class::Unverified(Family::Ipv6), "unverified-ipv6"),
    (Class::Verified(Family::Ipv4), "verified-ipv4"),
    (Class::Verified(Family::Ipv6), "verified-ipv6"),
    (Class::Dtls, "dtls"),
];

impl Class {
    /// The class of an address without a DTLS session.
    pub(crate) fn of_address(address: IpAddr, verified: bool) -> Self {
        let family = match address.to_canonical() {
            IpAddr::V4(_) => Family::Ipv4,
            IpAddr::V6(_) => Family::Ipv6,
        };
        match verified {
            _ if address.to_canonical().is_loopback() => Self::Loopback,
            false => Self::Unverified(family),
            true => Self::Verified(family),
        }
    }
}

/// Words of 64 bits, one bit of which each address sets: 4 KiB.
const WORDS: usize = 512;

/// The refusals for one reason.
#[derive(Debug)]
struct ReasonTally {
    by_class: [AtomicU64; CLASSES.len()],
    /// The refusals of all classes at the time of the last report.
    reported: AtomicU64,
    /// Bits of addresses since the last report: as many addresses at least as bits are set.
    addresses: [AtomicU64; WORDS],
}

/// All refusals of a server.
#[derive(Debug)]
pub(crate) struct Ledger(Box<[ReasonTally]>);

impl Default for Ledger {
    fn default() -> Self {
        let tally =
            || ReasonTally { by_class: zeros(), reported: AtomicU64::new(0), addresses: zeros() };
        Self(REASONS.iter().map(|_| tally()).collect())
    }
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

impl Ledger {
    pub(crate) fn count(&self, reason: Reason, class: Class, source: impl Into<Source>) {
        let Some(tally) = self.0.get(reason as usize) else { return };
        if let Some(at) = CLASSES.iter().position(|(known, _)| *known == class)
            && let Some(count) = tally.by_class.get(at)
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let bit = mix(source.into()) % (64 * WORDS as u64);
        let (word, bit) = ((bit / 64) as usize, 1 << (bit % 64));
        if let Some(word) = tally.addresses.get(word)
            && word.load(Ordering::Relaxed) & bit == 0
        {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(crate) fn counts(&self) -> RefusalCounts {
        let row =
            |tally: &ReasonTally| tally.by_class.each_ref().map(|n| n.load(Ordering::Relaxed));
        let mut counts = RefusalCounts::default();
        counts.0.iter_mut().zip(&self.0).for_each(|(counts, tally)| *counts = row(tally));
        counts
    }

    /// The refusals since the last report, in words; `None` if there were none.
    pub(crate) fn report(&self) -> Option<String> {
        let mut parts = Vec::new();
        for (tally, (_, name)) in self.0.iter().zip(REASONS) {
            let total = tally.by_class.iter().map(|n| n.load(Ordering::Relaxed)).sum();
            let new: u64 = total - tally.reported.swap(total, Ordering::Relaxed);
            let addresses: u32 = tally
                .addresses
                .iter()
                .map(|word| word.swap(0, Ordering::Relaxed).count_ones())
                .sum();
            if new > 0 {
                let noun = if addresses == 1 { "address" } else { "addresses" };
                parts.push(format!("{name} {new} of at least {addresses} {noun}"));
            }
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// A number that says nothing about its neighbours (the finalizer of SplitMix64).
fn mix(source: Source) -> u64 {
    let bits = match source {
        Source::Session(session) => session.number(),
        Source::Address(address) => match address.to_canonical() {
            IpAddr::V4(ip) => u64::from(ip.to_bits()),
            IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64 ^ (ip.to_bits() as u64).rotate_left(32),
        },
    };
    let z = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Refusals of a server, by reason and class of address. See `docs/metrics.md`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalCounts([[u64; CLASSES.len()]; REASONS.len()]);

impl RefusalCounts {
    /// Each reason and class of address with its count, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        self.0.iter().zip(REASONS).flat_map(|(counts, (_, reason))| {
            counts.iter().zip(CLASSES).map(move |(count, (_, class))| (reason, class, *count))
        })
    }

    /// The count of a reason and a class of address, by their names; 0 if there is no such name.
    #[must_use]
    pub fn get(&self, reason: &str, class: &str) -> u64 {
        let wanted = self.iter().find(|(r, c, _)| *r == reason && *c == class);
        wanted.map_or(0, |(_, _, count)| count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    #[test]
    fn reasons_are_in_the_order_of_their_numbers() {
        for (at, (reason, _)) in REASONS.iter().enumerate() {
            assert_eq!(*reason as usize, at);
        }
    }

    #[test]
    fn a_refusal_is_counted_under_its_reason_and_class() {
        let ledger = Ledger::default();
        let unverified = Class::of_address(address(0x0a00_0001), false);
        ledger.count(Reason::Challenged, unverified, address(0x0a00_0001));
        ledger.count(Reason::Challenged, unverified, address(0x0a00_0001));
        ledger.count(
            Reason::NoRoom,
            Class::of_address([127, 0, 0, 1].into(), true),
            IpAddr::from([127, 0, 0, 1]),
        );
        let counts = ledger.counts();
        assert_eq!(counts.get("challenged", "unverified-ipv4"), 2);
        assert_eq!(counts.get("no-room", "loopback"), 1);
        assert_eq!(counts.iter().map(|(_, _, count)| count).sum::<u64>(), 3);
    }

    #[test]
    fn the_class_tells_families_loopback_and_what_is_verified() {
        let class = |text: &str, verified| Class::of_address(text.parse().unwrap(), verified);
        assert_eq!(class("192.0.2.1", true), Class::Verified(Family::Ipv4));
        assert_eq!(class("::ffff:192.0.2.1", false), Class::Unverified(Family::Ipv4));
        assert_eq!(class("2001:db8::1", false), Class::Unverified(Family::Ipv6));
        assert_eq!(class("::1", true), Class::Loopback);
        assert_eq!(class("127.3.2.1", false), Class::Loopback);
    }

    #[test]
    fn a_report_says_how_many_addresses_met_which_limit_since_the_last_one() {
        let ledger = Ledger::default();
        assert_eq!(ledger.report(), None);
        for n in 0..1000 {
            let from = address(0x0a00_0000 + n % 100);
            ledger.count(Reason::Challenged, Class::of_address(from, false), from);
        }
        let v6 = "2001:db8::1".parse().unwrap();
        ledger.count(Reason::ObserverRefused, Class::of_address(v6, true), v6);
        let report = ledger.report().unwrap();
        let (challenged, rest) = report.split_once(", ").unwrap();
        assert_eq!(rest, "observer-refused 1 of at least 1 address");
        let least = challenged.strip_prefix("challenged 1000 of at least ").unwrap();
        let least: u32 = least.strip_suffix(" addresses").unwrap().parse().unwrap();
        assert!((97..=100).contains(&least), "{least}");
        assert_eq!(ledger.report(), None);
        // The counters go on.
        assert_eq!(ledger.counts().get("challenged", "unverified-ipv4"), 1000);
    }
}
