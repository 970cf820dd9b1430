//! Places by source, so that a source that takes very many displaces itself first.

use crate::peer::{is_fair, sharing_prefix};
use alloc::collections::{BTreeMap, BTreeSet};
use core::net::IpAddr;

/// The places of each source, an IPv4 address or an IPv6 network of 64 bits. Places are ordered by age: `K` is less for an
/// older one, and its default is not greater than any.
#[derive(Debug, Default)]
pub struct Shares<K> {
    by_age: BTreeSet<(K, IpAddr)>,
    by_source: BTreeSet<(IpAddr, K)>,
    counts: BTreeMap<IpAddr, usize>,
    by_count: BTreeSet<(usize, IpAddr)>,
}

impl<K: Ord + Copy + Default> Shares<K> {
    /// No places are taken.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            by_age: BTreeSet::new(),
            by_source: BTreeSet::new(),
            counts: BTreeMap::new(),
            by_count: BTreeSet::new(),
        }
    }

    /// The number of places that are taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Whether no place is taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// The oldest place.
    #[must_use]
    pub fn oldest(&self) -> Option<K> {
        self.by_age.first().map(|(place, _)| *place)
    }

    /// A host takes a place.
    pub fn add(&mut self, from: IpAddr, place: K) {
        let from = sharing_prefix(from);
        if self.by_source.insert((from, place)) {
            self.by_age.insert((place, from));
            self.recount(from, |count| count + 1);
        }
    }

    /// A host has left its place, if it had it.
    pub fn remove(&mut self, from: IpAddr, place: K) {
        let from = sharing_prefix(from);
        if self.by_source.remove(&(from, place)) {
            self.by_age.remove(&(place, from));
            self.recount(from, |count| count.saturating_sub(1));
        }
    }

    /// The place of a host gets another age.
    pub fn renew(&mut self, from: IpAddr, place: K, renewed: K) {
        let from = sharing_prefix(from);
        if self.by_source.remove(&(from, place)) {
            self.by_age.remove(&(place, from));
            self.by_source.insert((from, renewed));
            self.by_age.insert((renewed, from));
        }
    }

    /// The place that makes room for one more of a host, of `max` in all: the oldest one of its source if that has as many as
    /// are free to others. At the limit it is the oldest one of the source that has most, or of all if none has more than one.
    #[must_use]
    pub fn surplus(&self, from: IpAddr, max: usize) -> Option<K> {
        let from = sharing_prefix(from);
        let own = self.counts.get(&from).copied().unwrap_or(0);
        let free = max.saturating_sub(self.len());
        match (own, free) {
            (1.., _) if !is_fair(own, 1, free) => self.oldest_of(from),
            (0, 0) => self.surplus_of_all(),
            _ => None,
        }
    }

    /// The oldest place of the source that has most, or of all if none has more than one.
    #[must_use]
    pub fn surplus_of_all(&self) -> Option<K> {
        let largest = self.by_count.last().filter(|(count, _)| *count > 1);
        largest.and_then(|(_, largest)| self.oldest_of(*largest)).or_else(|| self.oldest())
    }

    fn oldest_of(&self, from: IpAddr) -> Option<K> {
        let first = self.by_source.range((from, K::default())..).next();
        first.filter(|(source, _)| *source == from).map(|(_, place)| *place)
    }

    fn recount(&mut self, from: IpAddr, change: impl FnOnce(usize) -> usize) {
        let old = self.counts.remove(&from).unwrap_or(0);
        self.by_count.remove(&(old, from));
        let new = change(old);
        if new > 0 {
            self.counts.insert(from, new);
            self.by_count.insert((new, from));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 100;

    fn host(n: u8) -> IpAddr {
        [192, 0, 2, n].into()
    }

    /// A host takes a place as its age; returns those that made room.
    fn take(shares: &mut Shares<u64>, owners: &mut BTreeMap<u64, IpAddr>, from: IpAddr) -> usize {
        let mut displaced = 0;
        while let Some(place) = shares.surplus(from, MAX) {
            let owner = owners.remove(&place).unwrap();
            shares.remove(owner, place);
            displaced += 1;
        }
        let place = owners.last_key_value().map_or(1, |(last, _)| last + 1);
        owners.insert(place, from);
        shares.add(from, place);
        displaced
    }

    #[test]
    fn the_greediest_source_displaces_its_own_and_a_newcomer_finds_room() {
        let (mut shares, mut owners) = (Shares::new(), BTreeMap::new());
        take(&mut shares, &mut owners, host(1));
        for _ in 0..1000 {
            take(&mut shares, &mut owners, host(2));
        }
        assert!(owners.values().any(|owner| *owner == host(1)), "it is the oldest of all");
        assert!((MAX / 2 - 1..=MAX / 2 + 1).contains(&shares.len()), "{}", shares.len());
        assert_eq!(take(&mut shares, &mut owners, host(3)), 0);
    }

    #[test]
    fn at_the_limit_the_source_with_most_makes_room_and_else_the_oldest_of_all() {
        let (mut shares, mut owners) = (Shares::new(), BTreeMap::new());
        take(&mut shares, &mut owners, host(0));
        for n in 1..MAX as u8 {
            assert_eq!(take(&mut shares, &mut owners, host(n)), 0);
        }
        assert_eq!(shares.surplus(host(200), MAX), Some(1));
        shares.remove(host(5), 6);
        shares.add(host(7), 1000);
        assert_eq!(shares.surplus(host(200), MAX), Some(8), "the older one of two");
        shares.renew(host(7), 8, 2000);
        assert_eq!(shares.surplus_of_all(), Some(1000));
        assert_eq!(shares.len(), MAX);
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_are_one_source_and_nothing_is_left_of_who_has_left() {
        let mut shares: Shares<u64> = Shares::new();
        let address = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n]);
        for n in 1..=9 {
            shares.add(address(n), n.into());
        }
        assert_eq!(shares.surplus(address(99), 18), Some(1));
        assert_eq!(shares.surplus(host(1), 18), None);
        for n in 1..=9 {
            shares.remove(address(10 - n), n.into());
            shares.remove(address(n), n.into());
        }
        assert!(shares.is_empty() && shares.counts.is_empty() && shares.by_count.is_empty());
        assert!(shares.by_source.is_empty());
    }
}
