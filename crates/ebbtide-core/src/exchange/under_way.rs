//! Requests that the application answers later.
//!
//! Idempotent requests are not remembered for deduplication ([`dedup`](super::dedup)): a copy of
//! one that has been answered is processed again. A copy of one that is still being processed is
//! not, since the answer to the first copy answers it too (RFC 7252 section 4.5).

use crate::peer::PeerId;
use crate::time::{Duration, Instant};
use crate::wire::MessageId;
use alloc::boxed::Box;
use core::hash::BuildHasher;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// The requests under way, by remote and message ID.
#[derive(Debug)]
pub(crate) struct RequestsUnderWay {
    /// `None` until there is one, because a client never has any.
    entries: Option<Box<HashTable<RequestUnderWay>>>,
    hasher: FixedState,
    max: usize,
    /// When entries that had expired were last removed.
    swept: Instant,
}

#[derive(Debug)]
struct RequestUnderWay {
    remote: PeerId,
    id: MessageId,
    /// The message ID may name another request from then on (RFC 7252 section 4.4).
    expires: Instant,
}

impl RequestsUnderWay {
    pub(crate) const fn new(max: usize, hash_seed: u64) -> Self {
        let hasher = FixedState::with_seed(hash_seed);
        Self { entries: None, hasher, max, swept: Instant::ZERO }
    }

    /// The number of requests under way, and of those that were never answered.
    pub(crate) fn len(&self) -> usize {
        self.entries.as_ref().map_or(0, |entries| entries.len())
    }

    fn hash(&self, remote: PeerId, id: MessageId) -> u64 {
        self.hasher.hash_one((remote, id))
    }

    /// Whether a message is a copy of a request under way.
    #[inline]
    pub(crate) fn contains(&self, now: Instant, remote: PeerId, id: MessageId) -> bool {
        let Some(entries) = self.entries.as_ref().filter(|entries| !entries.is_empty()) else {
            return false;
        };
        let found = entries.find(self.hash(remote, id), |entry| entry.is(remote, id));
        found.is_some_and(|entry| now < entry.expires)
    }

    /// Adds a request. Returns false if there is no room.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        lifetime: Duration,
        remote: PeerId,
        id: MessageId,
    ) -> bool {
        self.remove(remote, id);
        if self.len() >= self.max && now.saturating_since(self.swept) >= lifetime {
            // At most once in a lifetime, so that the look at all of them costs little.
            self.swept = now;
            if let Some(entries) = &mut self.entries {
                entries.retain(|entry| now < entry.expires);
            }
        }
        if self.len() >= self.max {
            return false;
        }
        let hash = self.hash(remote, id);
        let hasher = &self.hasher;
        let entry = RequestUnderWay { remote, id, expires: now + lifetime };
        self.entries
            .get_or_insert_default()
            .insert_unique(hash, entry, |entry| hasher.hash_one((entry.remote, entry.id)));
        true
    }

    /// Removes a request: it was answered.
    pub(crate) fn remove(&mut self, remote: PeerId, id: MessageId) {
        let hash = self.hash(remote, id);
        let Some(entries) = &mut self.entries else { return };
        if let Ok(found) = entries.find_entry(hash, |entry| entry.is(remote, id)) {
            found.remove();
        }
    }
}

impl RequestUnderWay {
    fn is(&self, remote: PeerId, id: MessageId) -> bool {
        self.id == id && self.remote == remote
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::SocketAddr;

    const LIFETIME: Duration = Duration::from_secs(247);

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn requests_that_are_never_answered_make_room_after_their_lifetime() {
        let remote = PeerId::Address(SocketAddr::from(([10, 0, 0, 1], 5683)));
        let mut under_way = RequestsUnderWay::new(3, 7);
        let insert = |under_way: &mut RequestsUnderWay, second, id| {
            under_way.insert(at(second), LIFETIME, remote, MessageId(id))
        };
        assert!((1..=3).all(|id| insert(&mut under_way, 0, id)));
        assert!(!insert(&mut under_way, 246, 4));
        assert!(insert(&mut under_way, 246, 3), "it is there already");
        assert!(insert(&mut under_way, 247, 4), "the first two have expired");
        assert_eq!(under_way.len(), 2);
        let known = |id| under_way.contains(at(250), remote, MessageId(id));
        assert_eq!([1, 2, 3, 4].map(known), [false, false, true, true]);
        under_way.remove(remote, MessageId(4));
        assert!(!under_way.contains(at(250), remote, MessageId(4)));
    }
}
