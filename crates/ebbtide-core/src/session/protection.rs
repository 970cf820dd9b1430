//! Which uploads others do not displace: those that advance, of each source as many as leave as much to all others.

use super::transfer_cache::MAX_TRANSFERS;
use crate::peer::{Source, is_fair};
use alloc::collections::BTreeMap;

/// The protected uploads of all sources and of each, counted as they begin and end to be protected: no block costs
/// a look at all of them.
#[derive(Debug)]
pub(super) struct Protection {
    max_bytes: usize,
    all: Holding,
    by_source: BTreeMap<Source, Holding>,
}

/// Uploads and their bytes, announced ones included.
#[derive(Copy, Clone, Debug, Default)]
struct Holding {
    places: usize,
    bytes: usize,
}

impl Protection {
    pub(super) const fn new(max_bytes: usize) -> Self {
        let all = Holding { places: 0, bytes: 0 };
        Self { max_bytes, all, by_source: BTreeMap::new() }
    }

    /// Whether one more upload of a source, of so many bytes, is within its share.
    pub(super) fn admits(&self, from: Source, bytes: usize) -> bool {
        let own = self.by_source.get(&from.sharing()).copied().unwrap_or_default();
        is_fair(own.bytes, bytes, self.max_bytes.saturating_sub(self.all.bytes))
            && is_fair(own.places, 1, MAX_TRANSFERS.saturating_sub(self.all.places))
    }

    /// An upload of a source, of so many bytes, is protected.
    pub(super) fn add(&mut self, from: Source, bytes: usize) {
        for held in [&mut self.all, self.by_source.entry(from.sharing()).or_default()] {
            held.places += 1;
            held.bytes += bytes;
        }
    }

    /// An upload that was added with so many bytes is not protected any more.
    pub(super) fn remove(&mut self, from: Source, bytes: usize) {
        let from = from.sharing();
        let Some(own) = self.by_source.get_mut(&from) else { return };
        for held in [&mut self.all, &mut *own] {
            held.places -= 1;
            held.bytes -= bytes;
        }
        if own.places == 0 {
            self.by_source.remove(&from);
        }
    }
}
