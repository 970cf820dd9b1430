//! Places by source, so that a source that takes very many displaces itself first.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::{IpAddr, SocketAddr};
use ebbtide_core::sharing_prefix;
use ebbtide_core::time::Instant;

/// The places of each source, an IPv4 address or an IPv6 network of 64 bits, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    places: BTreeSet<(IpAddr, Instant, u32)>,
    counts: BTreeMap<IpAddr, usize>,
    by_count: BTreeSet<(usize, IpAddr)>,
}

impl Shares {
    pub(crate) const fn new() -> Self {
        Self { places: BTreeSet::new(), counts: BTreeMap::new(), by_count: BTreeSet::new() }
    }

    pub(crate) fn add(&mut self, from: SocketAddr, began: Instant, index: u32) {
        let from = sharing_prefix(from.ip());
        if self.places.insert((from, began, index)) {
            self.recount(from, |count| count + 1);
        }
    }

    pub(crate) fn remove(&mut self, from: SocketAddr, began: Instant, index: u32) {
        let from = sharing_prefix(from.ip());
        if self.places.remove(&(from, began, index)) {
            self.recount(from, |count| count.saturating_sub(1));
        }
    }

    /// The places that the source of an address has.
    pub(crate) fn of(&self, from: SocketAddr) -> usize {
        self.counts.get(&sharing_prefix(from.ip())).copied().unwrap_or(0)
    }

    /// The oldest place of the source of an address.
    pub(crate) fn oldest_of(&self, from: SocketAddr) -> Option<u32> {
        self.oldest(sharing_prefix(from.ip()))
    }

    /// The oldest place of the source that has most, if any source has more than one.
    pub(crate) fn oldest_of_largest(&self) -> Option<u32> {
        let (_, largest) = self.by_count.last().copied().filter(|(count, _)| *count > 1)?;
        self.oldest(largest)
    }

    fn oldest(&self, from: IpAddr) -> Option<u32> {
        let first = self.places.range((from, Instant::ZERO, 0)..).next();
        first.filter(|(source, ..)| *source == from).map(|(.., index)| *index)
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
