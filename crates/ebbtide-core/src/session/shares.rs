//! Fair shares of bounded places: of observers, and of requests at work.

use crate::peer::{Source, is_fair};
use alloc::boxed::Box;
use alloc::vec;
use core::hash::BuildHasher;
use foldhash::quality::FixedState;

/// Counters of sources. Two sources that share a counter seem to have the places of both; a client
/// cannot bring that about without the seed.
const COUNTERS: usize = 1 << 16;

/// How many places each source has: an IPv4 address, or an IPv6 prefix of 64 bits. A source may have at most
/// as many as are free to all others. The places are counted from the first [`Self::add`] on, which takes
/// 256 KiB; where shares matter rarely, that is once half of the places are taken.
#[derive(Debug)]
pub struct FairShares {
    hasher: FixedState,
    counters: Option<Box<[u32]>>,
}

impl FairShares {
    /// No places are taken. `seed` decides which sources share a counter.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { hasher: FixedState::with_seed(seed), counters: None }
    }

    /// Whether they are counted.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.counters.is_some()
    }

    /// Whether a source may have one place more, where `taken` of `max` are. It always may while less than half
    /// of them are.
    #[must_use]
    pub fn admit(&self, from: impl Into<Source>, taken: usize, max: usize) -> bool {
        self.admit_places(from, 1, taken, max)
    }

    /// Whether a source may have so many places more, of which it needs all.
    #[must_use]
    pub fn admit_places(
        &self,
        from: impl Into<Source>,
        places: usize,
        taken: usize,
        max: usize,
    ) -> bool {
        if 2 * (taken + places - 1) < max {
            return true;
        }
        let own = self.counters.as_ref().and_then(|counters| counters.get(self.place(from.into())));
        is_fair(own.map_or(0, |own| *own as usize), places, max.saturating_sub(taken))
    }

    /// A source has a place more.
    pub fn add(&mut self, from: impl Into<Source>) {
        self.add_places(from, 1);
    }

    /// A source has so many places more.
    pub fn add_places(&mut self, from: impl Into<Source>, places: usize) {
        let place = self.place(from.into());
        let counters = self.counters.get_or_insert_with(|| vec![0; COUNTERS].into_boxed_slice());
        if let Some(own) = counters.get_mut(place) {
            *own += places as u32;
        }
    }

    /// A source has given a place back.
    pub fn remove(&mut self, from: impl Into<Source>) {
        self.remove_places(from, 1);
    }

    /// A source has given so many places back.
    pub fn remove_places(&mut self, from: impl Into<Source>, places: usize) {
        let place = self.place(from.into());
        if let Some(own) = self.counters.as_mut().and_then(|counters| counters.get_mut(place)) {
            *own = own.saturating_sub(places as u32);
        }
    }

    fn place(&self, from: Source) -> usize {
        self.hasher.hash_one(from.sharing()) as usize % COUNTERS
    }
}
