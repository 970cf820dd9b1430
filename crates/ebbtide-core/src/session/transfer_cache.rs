//! Bodies in transfer in both directions, with bounded memory, and the choice of the one to drop.

use super::key::TransferKey;
use super::recency::RecencyMap;
use crate::peer::Source;
use crate::time::{Duration, Instant};

/// Transfers in each direction.
pub(super) const MAX_TRANSFERS: usize = 1024;

/// Uploads and downloads, which together have a limit in bytes. The answers of finished uploads
/// have memory of their own, one message each, so that new bodies do not displace them.
#[derive(Debug)]
pub(super) struct TransferCache<U, D, A> {
    pub(super) uploads: RecencyMap<TransferKey, U>,
    pub(super) downloads: RecencyMap<TransferKey, D>,
    /// The answers to whole uploads, for copies of their last blocks.
    pub(super) answers: RecencyMap<TransferKey, A>,
    max_bytes: usize,
    /// How long a transfer may pause.
    lifetime: Duration,
    /// Whether an upload may be dropped in favour of others.
    may_go: fn(&U) -> bool,
    /// Uploads that were dropped for lack of memory.
    pub(super) evicted: u64,
}

impl<U, D, A> TransferCache<U, D, A> {
    pub(super) fn new(max_bytes: usize, lifetime: Duration, may_go: fn(&U) -> bool) -> Self {
        let (uploads, downloads) = (RecencyMap::new(), RecencyMap::new());
        let answers = RecencyMap::new();
        Self { uploads, downloads, answers, max_bytes, lifetime, may_go, evicted: 0 }
    }

    /// The bytes of bodies, the number of uploads including finished ones, and the number of stored
    /// downloads.
    pub(super) fn held(&mut self, now: Instant) -> (usize, usize, usize) {
        self.expire(now);
        (self.bytes(), self.uploads.len() + self.answers.len(), self.downloads.len())
    }

    fn bytes(&self) -> usize {
        self.uploads.bytes() + self.downloads.bytes()
    }

    /// Whether half of the memory for uploads is taken.
    pub(super) fn is_half_full(&self) -> bool {
        self.uploads.len().max(self.answers.len()) >= MAX_TRANSFERS / 2
            || self.bytes() >= self.max_bytes / 2
    }

    /// Drops transfers that have paused for too long.
    pub(super) fn expire(&mut self, now: Instant) {
        while self.uploads.pop_oldest(now, self.lifetime).is_some() {}
        while self.downloads.pop_oldest(now, self.lifetime).is_some() {}
        while self.answers.pop_oldest(now, self.lifetime).is_some() {}
    }

    /// Records the answer to an upload: its body is dropped, and the answer stays.
    pub(super) fn finish(&mut self, now: Instant, key: TransferKey, answer: A) {
        self.uploads.remove(&key);
        self.answers.remove(&key);
        if self.answers.len() >= MAX_TRANSFERS {
            self.answers.pop_oldest(now, Duration::ZERO);
        }
        self.answers.insert(now, key, answer, 0);
    }

    /// Begins an upload, and replaces the one under this key. Returns false if there is no room.
    pub(super) fn begin_upload(
        &mut self,
        now: Instant,
        key: TransferKey,
        upload: U,
        bytes: usize,
    ) -> bool {
        self.uploads.remove(&key);
        let full = self.uploads.len() >= MAX_TRANSFERS && !self.evict_upload(|_| 1, 0);
        if full || !self.make_room(now, bytes) {
            return false;
        }
        self.uploads.insert(now, key, upload, bytes);
        true
    }

    /// Makes room for the next bytes of an upload. Returns `None` if the upload itself was dropped,
    /// since no other one may be.
    pub(super) fn grow_upload(
        &mut self,
        now: Instant,
        key: TransferKey,
        by: usize,
    ) -> Option<&mut U> {
        self.uploads.advance(now, key);
        if !self.make_room(now, by) {
            self.evicted += u64::from(self.uploads.remove(&key).is_some());
            return None;
        }
        self.uploads.grow(&key, by);
        self.uploads.get_mut(&key)
    }

    /// Stores a download, and replaces the one under this key, unless it alone exceeds the limit.
    pub(super) fn keep_download(
        &mut self,
        now: Instant,
        key: TransferKey,
        download: D,
        bytes: usize,
    ) {
        self.downloads.remove(&key);
        if bytes > self.max_bytes {
            return;
        }
        let (from, one) = (key.remote.source().sharing(), |_| 1);
        if self.downloads.len() >= MAX_TRANSFERS {
            self.evict_download(one, |other| usize::from(*other == from), 0);
        }
        let half = self.max_bytes / 2;
        while self.bytes() + bytes > self.max_bytes
            && self.evict_download(|held| held, |of| if *of == from { bytes } else { 0 }, half)
        {
        }
        if self.make_room(now, bytes) {
            self.downloads.insert(now, key, download, bytes);
        }
    }

    /// Drops what has not advanced for longest until so many bytes find room: downloads first,
    /// since the handler can be called again. Returns false if the rest may not be dropped.
    fn make_room(&mut self, now: Instant, bytes: usize) -> bool {
        while self.bytes() + bytes > self.max_bytes {
            let evicted = self.evict_download(|held| held, |_| 0, self.max_bytes / 2)
                || self.downloads.pop_oldest(now, Duration::ZERO).is_some();
            if !evicted
                && !self.evict_upload(|held| held, self.max_bytes / 2)
                && !self.evict_upload(|_| 1, 0)
            {
                return false;
            }
        }
        true
    }

    /// Drops the oldest download of the source that takes most, if that is more than `above`: half of
    /// the room. A source that fetches little then keeps what it fetches while others fetch much, and one
    /// that fetches several bodies is not the first to lose them beside many that hold a little each.
    /// Returns false if there is no such source.
    fn evict_download(
        &mut self,
        weigh: impl Fn(usize) -> usize,
        extra: impl Fn(&Source) -> usize,
        above: usize,
    ) -> bool {
        let of = |key: &TransferKey| key.remote.source().sharing();
        let oldest = self.downloads.oldest_of_largest(|_| true, of, weigh, extra, above);
        oldest.is_some_and(|key| self.downloads.remove(&key).is_some())
    }

    /// Of the uploads of the source that takes most, if that is more than `above`, the one that has not advanced for
    /// longest is dropped, so that one that waits for its next block is not dropped for the many, or the long ones, of
    /// another source.
    fn evict_upload(&mut self, weigh: impl Fn(usize) -> usize, above: usize) -> bool {
        let of = |key: &TransferKey| key.remote.source().sharing();
        let oldest = self.uploads.oldest_of_largest(self.may_go, of, weigh, |_| 0, above);
        let evicted = oldest.is_some_and(|key| self.uploads.remove(&key).is_some());
        self.evicted += u64::from(evicted);
        evicted
    }
}
