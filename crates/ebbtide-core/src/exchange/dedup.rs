//! Deduplication of what arrives (RFC 7252 section 4.5).
//!
//! What must not be processed twice is remembered for EXCHANGE_LIFETIME: requests that are not
//! idempotent, with the response that a duplicate gets again; requests that were acknowledged by an
//! empty ACK; and Confirmable responses, of which a duplicate is acknowledged again. Idempotent
//! requests are not remembered, as section 4.5 allows: a duplicate GET is simply answered afresh
//! and costs no memory.

use super::hashed::Hashed;
use crate::time::{Duration, Instant};
use crate::wire::{MessageId, OptionNumber};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::net::SocketAddr;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// What a duplicate gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Nothing yet: the application is at work, its answer will come.
    Pending,
    /// An empty ACK.
    Acknowledgement,
    /// The response again.
    Response(Stored),
}

/// A response as it was encoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The whole message with an empty token; of the header only the code counts.
    pub(crate) bytes: Vec<u8>,
    /// Where a last option would go.
    pub(crate) options_end: usize,
    pub(crate) last_option: OptionNumber,
}

#[derive(Debug)]
struct Entry {
    remote: SocketAddr,
    id: MessageId,
    expires: Instant,
    reply: Reply,
}

/// The messages that are remembered, oldest first. All live equally long, so the queue is in the
/// order of expiry.
#[derive(Debug)]
pub(crate) struct Dedup {
    entries: VecDeque<Entry>,
    /// Sequence number of the first entry: an entry keeps its number while earlier ones leave.
    first: u64,
    by_id: HashTable<u64>,
    hasher: FixedState,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
}

impl Dedup {
    pub(crate) fn new(max_entries: usize, max_bytes: usize, hash_seed: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            by_id: HashTable::new(),
            hasher: FixedState::with_seed(hash_seed),
            bytes: 0,
            max_entries,
            max_bytes,
        }
    }

    /// How many messages are remembered.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether half of the entries or of the bytes are taken.
    #[inline]
    pub(crate) fn is_half_full(&self) -> bool {
        self.entries.len() >= self.max_entries / 2 || self.bytes >= self.max_bytes / 2
    }

    /// What a duplicate of this message gets; `None` if it is not remembered.
    #[inline]
    pub(crate) fn lookup(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        id: MessageId,
    ) -> Option<&Reply> {
        if self.entries.is_empty() {
            return None;
        }
        self.expire(now);
        let at = self.find(remote, id)?;
        self.entries.get(at).map(|entry| &entry.reply)
    }

    /// Remembers a message. False if there is no room.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        lifetime: Duration,
        (remote, id): (SocketAddr, MessageId),
        reply: Reply,
    ) -> bool {
        self.expire(now);
        if self.entries.len() >= self.max_entries {
            return false;
        }
        let sequence = self.first + self.entries.len() as u64;
        self.entries.push_back(Entry { remote, id, expires: now + lifetime, reply });
        let (entries, first, hasher) = (&self.entries, self.first, &self.hasher);
        self.by_id.insert_unique(hasher.hash_one((Hashed(remote), id)), sequence, |&other| {
            key(entries, first, other)
                .map_or(0, |(remote, id)| hasher.hash_one((Hashed(remote), id)))
        });
        true
    }

    /// Changes what a duplicate of a remembered message gets. A response that there is no room for
    /// is not stored; its duplicates then get nothing, which is safe though not kind: the peer
    /// gives up. False in that case, and if the message is not remembered.
    pub(crate) fn set_reply(&mut self, remote: SocketAddr, id: MessageId, reply: Reply) -> bool {
        let size = reply.size();
        let Some(at) = self.find(remote, id) else { return false };
        let Some(entry) = self.entries.get_mut(at) else { return false };
        let bytes = self.bytes - entry.reply.size();
        if bytes + size > self.max_bytes {
            return false;
        }
        entry.reply = reply;
        self.bytes = bytes + size;
        true
    }

    fn find(&self, remote: SocketAddr, id: MessageId) -> Option<usize> {
        let hash = self.hasher.hash_one((Hashed(remote), id));
        let sequence = self
            .by_id
            .find(hash, |&other| key(&self.entries, self.first, other) == Some((remote, id)))?;
        usize::try_from(sequence - self.first).ok()
    }

    fn expire(&mut self, now: Instant) {
        while self.entries.front().is_some_and(|entry| entry.expires <= now) {
            let Some(entry) = self.entries.pop_front() else { return };
            let sequence = self.first;
            self.first += 1;
            self.bytes -= entry.reply.size();
            let hash = self.hasher.hash_one((Hashed(entry.remote), entry.id));
            if let Ok(found) = self.by_id.find_entry(hash, |&other| other == sequence) {
                found.remove();
            }
        }
    }
}

impl Reply {
    fn size(&self) -> usize {
        match self {
            Self::Response(stored) => stored.bytes.len(),
            Self::Pending | Self::Acknowledgement => 0,
        }
    }
}

fn key(entries: &VecDeque<Entry>, first: u64, sequence: u64) -> Option<(SocketAddr, MessageId)> {
    let at = usize::try_from(sequence.checked_sub(first)?).ok()?;
    entries.get(at).map(|entry| (entry.remote, entry.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(247);

    fn remote(n: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, n], 5683))
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_message_is_remembered_for_its_lifetime_and_no_longer() {
        let mut dedup = Dedup::new(10, 100, 7);
        assert!(dedup.insert(at(0), LIFETIME, (remote(1), MessageId(5)), Reply::Pending));
        assert_eq!(dedup.lookup(at(246), remote(1), MessageId(5)), Some(&Reply::Pending));
        assert_eq!(dedup.lookup(at(246), remote(2), MessageId(5)), None);
        assert_eq!(dedup.lookup(at(247), remote(1), MessageId(5)), None);
        assert_eq!(dedup.len(), 0);
    }

    #[test]
    fn entries_and_bytes_are_bounded_and_come_back_with_expiry() {
        let mut dedup = Dedup::new(2, 10, 7);
        assert!(dedup.insert(at(0), LIFETIME, (remote(1), MessageId(1)), Reply::Pending));
        assert!(dedup.insert(at(1), LIFETIME, (remote(1), MessageId(2)), Reply::Pending));
        assert!(!dedup.insert(at(2), LIFETIME, (remote(1), MessageId(3)), Reply::Pending));
        let eight = || {
            let (bytes, last_option) = (alloc::vec![0; 8], OptionNumber(0));
            Reply::Response(Stored { bytes, options_end: 8, last_option })
        };
        assert!(dedup.set_reply(remote(1), MessageId(1), eight()));
        assert!(!dedup.set_reply(remote(1), MessageId(2), eight()));
        assert!(dedup.insert(at(247), LIFETIME, (remote(1), MessageId(3)), Reply::Pending));
        assert!(dedup.set_reply(remote(1), MessageId(2), eight()));
    }
}
