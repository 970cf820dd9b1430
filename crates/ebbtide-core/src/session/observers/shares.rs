//! Fair shares of the observer table.

use crate::exchange::source::{is_fair, source};
use alloc::boxed::Box;
use alloc::vec;
use core::hash::BuildHasher;
use core::net::IpAddr;
use foldhash::quality::FixedState;

/// Counters by source. Two sources that share a counter appear to have the observers of both; a
/// client cannot cause that without the seed.
const COUNTERS: usize = 1 << 16;

/// The number of observers of each source. It is counted only once half of the table is taken: most
/// sockets and all connections do without these 256 KiB.
#[derive(Debug, Default)]
pub(super) struct Shares(Option<Box<[u32]>>);

impl Shares {
    /// Whether a source may have one more observer, if `taken` of `max` slots are taken; `all`
    /// iterates over their sources.
    pub(super) fn admit(
        &mut self,
        hasher: &FixedState,
        from: IpAddr,
        (taken, max): (usize, usize),
        all: impl Iterator<Item = IpAddr>,
    ) -> bool {
        if 2 * taken < max {
            return true;
        }
        if self.0.is_none() {
            self.0 = Some(vec![0; COUNTERS].into_boxed_slice());
            all.for_each(|address| self.add(hasher, address));
        }
        let own = self.counter(hasher, from).map_or(0, |own| *own as usize);
        is_fair(own, 1, max.saturating_sub(taken))
    }

    pub(super) fn add(&mut self, hasher: &FixedState, from: IpAddr) {
        if let Some(own) = self.counter(hasher, from) {
            *own += 1;
        }
    }

    pub(super) fn remove(&mut self, hasher: &FixedState, from: IpAddr) {
        if let Some(own) = self.counter(hasher, from) {
            *own = own.saturating_sub(1);
        }
    }

    fn counter(&mut self, hasher: &FixedState, from: IpAddr) -> Option<&mut u32> {
        let at = hasher.hash_one(source(from)) as usize % COUNTERS;
        self.0.as_mut()?.get_mut(at)
    }
}
