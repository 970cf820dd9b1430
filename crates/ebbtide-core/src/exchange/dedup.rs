//! Deduplication of received messages (RFC 7252 section 4.5).
//!
//! Messages that must not be processed twice are remembered for EXCHANGE_LIFETIME: non-idempotent
//! requests, with the response that a duplicate receives again; requests that were acknowledged by
//! an empty ACK; and Confirmable responses, whose duplicates are acknowledged again. Idempotent
//! requests are not remembered, as section 4.5 allows; a duplicate GET is processed again and
//! costs no memory.
//!
//! Requests that are verified by a key are remembered as well, so that a copy of one gets its
//! answer again, but the oldest of them make room for new ones: their protocol refuses what it has
//! accepted before (RFC 8613 section 7.4), whatever is remembered here.

use crate::peer::{PeerId, Source};
use crate::time::{Duration, Instant};
use crate::wire::{Code, MessageId};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::hash::BuildHasher;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// The reply to a duplicate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// No reply: the client made the request again as another message, which is remembered as well.
    Superseded,
    /// No reply yet: the application is still processing the request and will answer.
    Pending,
    /// An empty ACK.
    Acknowledgement,
    /// The stored response.
    Response(Stored),
}

/// The outcome for a message that makes a request again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum RepeatedRequest {
    /// It is remembered, and to be processed.
    New,
    /// It is remembered as the copy of one that has been processed.
    Known,
    /// There is no room to remember it.
    NoRoom,
}

/// A stored response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) code: Code,
    /// Options and payload, encoded.
    pub(crate) rest: Box<[u8]>,
}

/// The place of a remembered message, until the memory changes.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Place {
    Plain(usize),
    Verified(usize),
}

/// The identity of a message: a copy has the same source and the same ID (RFC 7252 section 4.5).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageKey {
    pub(crate) remote: PeerId,
    pub(crate) id: MessageId,
}

#[derive(Debug)]
struct RememberedMessage {
    key: MessageKey,
    expires: Instant,
    reply: Reply,
}

/// The memory taken by the messages of one source.
#[derive(Debug)]
struct Share {
    source: Source,
    entries: usize,
    bytes: usize,
}

/// The remembered messages, oldest first. All have the same lifetime, so the queue is in the order
/// of expiry.
///
/// No source holds more of the places, or of the bytes, than are free. A single source that
/// remembers as much as it can takes half, and two such sources take a third each, so there is
/// always room for a new source, and the source that fills the table is refused first.
#[derive(Debug)]
pub(crate) struct Dedup {
    /// The remembered messages; `None` until there is one, because a client may never have any.
    memory: Option<Box<Memory>>,
    /// The verified requests.
    verified: Option<Box<Memory>>,
    max_entries: usize,
    max_bytes: usize,
    hash_seed: u64,
}

#[derive(Debug)]
struct Memory {
    entries: VecDeque<RememberedMessage>,
    /// The sequence number of the first entry, wrapped. An entry keeps its number while earlier ones leave.
    first: u32,
    by_id: HashTable<EntryName>,
    /// The share of each source.
    shares: HashTable<Share>,
    hasher: FixedState,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
}

/// An entry in the table: part of its key's hash, so that the table grows without a look at the
/// entries, and its sequence number, which tells all entries apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct EntryName {
    hash: u32,
    sequence: u32,
}

impl EntryName {
    /// The hash as the table uses it: the low bits for the place, the high ones to compare.
    fn spread(hash: u32) -> u64 {
        u64::from(hash) << 32 | u64::from(hash)
    }
}

/// One of so many verified requests is forgotten when there is no room.
const FORGOTTEN_PART: usize = 512;

impl Dedup {
    pub(crate) const fn new(max_entries: usize, max_bytes: usize, hash_seed: u64) -> Self {
        Self { memory: None, verified: None, max_entries, max_bytes, hash_seed }
    }

    fn memory(&mut self) -> &mut Memory {
        let (entries, bytes, seed) = (self.max_entries, self.max_bytes, self.hash_seed);
        self.memory.get_or_insert_with(|| Box::new(Memory::new(entries, bytes, seed)))
    }

    /// The number of remembered messages.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let kinds = [&self.memory, &self.verified];
        kinds.into_iter().flatten().map(|memory| memory.entries.len()).sum()
    }

    /// Whether half of the entries or of the bytes are taken, which verified requests do not take.
    #[inline]
    pub(crate) fn is_half_full(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| {
            memory.entries.len() >= self.max_entries / 2 || memory.bytes >= self.max_bytes / 2
        })
    }

    /// The reply to a duplicate of this message; `None` if the message is not remembered.
    #[inline]
    pub(crate) fn lookup(&mut self, now: Instant, remote: PeerId, id: MessageId) -> Option<&Reply> {
        if let Some(memory) = &mut self.verified
            && let Some(at) = memory.current(now, remote, id)
        {
            return memory.entries.get(at).map(|entry| &entry.reply);
        }
        let memory = self.memory.as_mut()?;
        let at = memory.current(now, remote, id)?;
        memory.entries.get(at).map(|entry| &entry.reply)
    }

    /// Remembers a message. Returns false if there is no room.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        lifetime: Duration,
        key: MessageKey,
        reply: Reply,
    ) -> bool {
        self.memory().insert(now, lifetime, key, reply)
    }

    /// Remembers a request that is verified by a key. If there is no room, the oldest such requests are forgotten.
    pub(crate) fn insert_verified(&mut self, now: Instant, lifetime: Duration, key: MessageKey) {
        let (entries, bytes, seed) = (self.max_entries, self.max_bytes, self.hash_seed);
        let memory =
            self.verified.get_or_insert_with(|| Box::new(Memory::new(entries, bytes, seed)));
        while !memory.insert(now, lifetime, key, Reply::Pending) && memory.forget_some() {}
    }

    /// Remembers a message that makes a request again which was challenged, as the message with the ID
    /// `first`, and not remembered. Late copies of that are duplicates from now on.
    pub(crate) fn insert_after(
        &mut self,
        now: Instant,
        lifetime: Duration,
        key: MessageKey,
        first: MessageId,
    ) -> RepeatedRequest {
        self.memory().insert_after(now, lifetime, key, first)
    }

    /// Sets the reply to duplicates of a remembered message. A response is not stored if there is
    /// no room for it; its duplicates are then dropped, which is safe, although the peer will time
    /// out. Returns false in that case, and if the message is not remembered.
    pub(crate) fn set_reply(
        &mut self,
        now: Instant,
        remote: PeerId,
        id: MessageId,
        reply: Reply,
    ) -> bool {
        self.place(now, remote, id).is_some_and(|place| self.set_reply_at(place, reply))
    }

    /// The place of a message, if it is remembered.
    pub(crate) fn place(&mut self, now: Instant, remote: PeerId, id: MessageId) -> Option<Place> {
        let find = |memory: &mut Option<Box<Memory>>| memory.as_mut()?.current(now, remote, id);
        let verified = find(&mut self.verified).map(Place::Verified);
        verified.or_else(|| find(&mut self.memory).map(Place::Plain))
    }

    /// As [`Self::set_reply`], for the message at this place.
    pub(crate) fn set_reply_at(&mut self, place: Place, mut reply: Reply) -> bool {
        let (memory, mut at, mut older) = match place {
            Place::Plain(at) => (&mut self.memory, at, 0),
            // The oldest verified requests make room.
            Place::Verified(at) => (&mut self.verified, at, at),
        };
        let Some(memory) = memory else { return false };
        while let Err(no_room) = memory.set_reply_at(at, reply) {
            if older == 0 || !memory.forget_oldest() {
                return false;
            }
            (at, older, reply) = (at - 1, older - 1, no_room);
        }
        true
    }
}

impl Memory {
    fn new(max_entries: usize, max_bytes: usize, hash_seed: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            by_id: HashTable::new(),
            shares: HashTable::new(),
            hasher: FixedState::with_seed(hash_seed),
            bytes: 0,
            max_entries,
            max_bytes,
        }
    }

    /// The position of a message that has not expired.
    #[inline]
    fn current(&mut self, now: Instant, remote: PeerId, id: MessageId) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        self.expire(now);
        self.find(remote, id)
    }

    fn insert(&mut self, now: Instant, lifetime: Duration, key: MessageKey, reply: Reply) -> bool {
        self.expire(now);
        let free = self.max_entries.saturating_sub(self.entries.len());
        if free == 0 {
            // Nothing is kept of a source that finds no room.
            return false;
        }
        let share = self.share(key.remote);
        if share.entries >= free {
            return false;
        }
        share.entries += 1;
        let name = EntryName {
            hash: self.hash(key),
            sequence: self.first.wrapping_add(self.entries.len() as u32),
        };
        self.entries.push_back(RememberedMessage { key, expires: now + lifetime, reply });
        self.by_id.insert_unique(EntryName::spread(name.hash), name, |other| {
            EntryName::spread(other.hash)
        });
        true
    }

    fn insert_after(
        &mut self,
        now: Instant,
        lifetime: Duration,
        key: MessageKey,
        first: MessageId,
    ) -> RepeatedRequest {
        self.expire(now);
        let MessageKey { remote, .. } = key;
        let mut reply = Reply::Pending;
        let mut known = false;
        let before = self.find(remote, first);
        if let Some(entry) = before.and_then(|at| self.entries.get_mut(at)) {
            // If it was superseded before, the client makes another request.
            known = entry.reply != Reply::Superseded;
            if known {
                reply = core::mem::replace(&mut entry.reply, Reply::Superseded);
                let size = reply.size();
                self.bytes -= size;
                self.share(remote).bytes -= size;
            }
        } else if !self.insert(now, lifetime, MessageKey { remote, id: first }, Reply::Superseded) {
            return RepeatedRequest::NoRoom;
        }
        if !self.insert(now, lifetime, key, Reply::Pending) {
            return RepeatedRequest::NoRoom;
        }
        if known {
            // That of the last message.
            let at = self.entries.len() - 1;
            // There was room for it before.
            let _ = self.set_reply_at(at, reply);
            return RepeatedRequest::Known;
        }
        RepeatedRequest::New
    }

    /// Sets the reply to duplicates of the message at this position. Returns it if there is no room.
    fn set_reply_at(&mut self, at: usize, reply: Reply) -> Result<(), Reply> {
        let size = reply.size();
        let Some(entry) = self.entries.get_mut(at) else { return Err(reply) };
        if entry.reply == Reply::Superseded {
            // The answer of a copy that came in between.
            return Ok(());
        }
        let before = entry.reply.size();
        let free = self.max_bytes.saturating_sub(self.bytes - before);
        let share = share(&mut self.shares, &self.hasher, entry.key.remote);
        let own = share.bytes - before + size;
        if own > free {
            return Err(reply);
        }
        share.bytes = own;
        entry.reply = reply;
        self.bytes = self.bytes - before + size;
        Ok(())
    }

    /// The share of the source of `remote`.
    fn share(&mut self, remote: PeerId) -> &mut Share {
        share(&mut self.shares, &self.hasher, remote)
    }

    /// A message of `remote` has expired. A source without messages is forgotten.
    fn give_back(&mut self, remote: PeerId, bytes: usize) {
        let source = remote.source().sharing();
        let hash = self.hasher.hash_one(source);
        if let Ok(mut found) = self.shares.find_entry(hash, |share| share.source == source) {
            let share = found.get_mut();
            share.entries -= 1;
            share.bytes -= bytes;
            if share.entries == 0 {
                found.remove();
            }
        }
    }

    fn hash(&self, key: MessageKey) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn find(&self, remote: PeerId, id: MessageId) -> Option<usize> {
        let key = MessageKey { remote, id };
        let hash = self.hash(key);
        let at = |name: &EntryName| name.sequence.wrapping_sub(self.first) as usize;
        let is_it = |name: &EntryName| {
            name.hash == hash && self.entries.get(at(name)).is_some_and(|entry| entry.key == key)
        };
        self.by_id.find(EntryName::spread(hash), is_it).map(at)
    }

    fn expire(&mut self, now: Instant) {
        while self.entries.front().is_some_and(|entry| entry.expires <= now) {
            self.forget_oldest();
        }
    }

    /// Forgets some of the oldest messages. Returns false if there is none.
    ///
    /// Their memory was not read for long. That of several is fetched at the same time.
    fn forget_some(&mut self) -> bool {
        let some = 1 + self.entries.len() / FORGOTTEN_PART;
        (0..some).all(|_| self.forget_oldest())
    }

    /// Forgets the oldest message. Returns false if there is none.
    fn forget_oldest(&mut self) -> bool {
        let Some(entry) = self.entries.pop_front() else { return false };
        let name = EntryName { hash: self.hash(entry.key), sequence: self.first };
        self.first = self.first.wrapping_add(1);
        let size = entry.reply.size();
        self.bytes -= size;
        self.give_back(entry.key.remote, size);
        let hash = EntryName::spread(name.hash);
        if let Ok(found) = self.by_id.find_entry(hash, |other| *other == name) {
            found.remove();
        }
        true
    }
}

impl Reply {
    fn size(&self) -> usize {
        match self {
            Self::Response(stored) => stored.rest.len(),
            Self::Superseded | Self::Pending | Self::Acknowledgement => 0,
        }
    }
}

fn share<'s>(
    shares: &'s mut HashTable<Share>,
    hasher: &FixedState,
    remote: PeerId,
) -> &'s mut Share {
    let source = remote.source().sharing();
    let found = shares.entry(
        hasher.hash_one(source),
        |share| share.source == source,
        |share| hasher.hash_one(share.source),
    );
    found.or_insert(Share { source, entries: 0, bytes: 0 }).into_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv6Addr, SocketAddr};

    const LIFETIME: Duration = Duration::from_secs(247);

    fn remote(n: u8) -> PeerId {
        PeerId::Address(SocketAddr::from(([10, 0, 0, n], 5683)))
    }

    fn key(n: u8, id: u16) -> MessageKey {
        MessageKey { remote: remote(n), id: MessageId(id) }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_message_is_remembered_for_its_lifetime_and_no_longer() {
        let mut dedup = Dedup::new(10, 100, 7);
        assert!(dedup.insert(at(0), LIFETIME, key(1, 5), Reply::Pending));
        assert_eq!(dedup.lookup(at(246), remote(1), MessageId(5)), Some(&Reply::Pending));
        assert_eq!(dedup.lookup(at(246), remote(2), MessageId(5)), None);
        assert!(dedup.set_reply(at(246), remote(1), MessageId(5), response(8)));
        assert!(dedup.place(at(247), remote(1), MessageId(5)).is_none());
        assert_eq!(dedup.len(), 0);
        assert_eq!(dedup.lookup(at(247), remote(1), MessageId(5)), None);
    }

    fn pending(dedup: &mut Dedup, second: u64, from: PeerId, id: u16) -> bool {
        dedup.insert(
            at(second),
            LIFETIME,
            MessageKey { remote: from, id: MessageId(id) },
            Reply::Pending,
        )
    }

    fn response(len: usize) -> Reply {
        Reply::Response(Stored { code: Code::CONTENT, rest: alloc::vec![0; len].into() })
    }

    #[test]
    fn entries_and_bytes_are_bounded_and_come_back_with_expiry() {
        let mut dedup = Dedup::new(2, 15, 7);
        assert!(pending(&mut dedup, 0, remote(1), 1));
        assert!(pending(&mut dedup, 1, remote(2), 2));
        assert!(!pending(&mut dedup, 2, remote(3), 3), "full");
        assert!(dedup.set_reply(at(0), remote(1), MessageId(1), response(8)));
        assert!(!dedup.set_reply(at(0), remote(2), MessageId(2), response(8)));
        assert!(pending(&mut dedup, 247, remote(1), 3));
        assert!(dedup.set_reply(at(0), remote(2), MessageId(2), response(8)));
    }

    #[test]
    fn a_source_that_fills_the_table_is_refused_and_a_newcomer_is_not() {
        let mut dedup = Dedup::new(1000, 1000, 7);
        let flood =
            |dedup: &mut Dedup, from| (0..2000).filter(|&id| pending(dedup, 0, from, id)).count();
        assert_eq!(flood(&mut dedup, remote(1)), 500, "one holds as much as it leaves free");
        assert_eq!(flood(&mut dedup, remote(2)), 250);
        assert!(!pending(&mut dedup, 1, remote(1), 3000));
        for n in 3..53 {
            assert!(pending(&mut dedup, 1, remote(n), 1), "newcomer {n}");
        }
        // After the lifetime everything is free again, and no shares remain.
        assert!(pending(&mut dedup, 500, remote(1), 3000));
        assert_eq!(dedup.len(), 1);
        let shares = dedup.memory.map(|memory| memory.shares.len());
        assert_eq!(shares, Some(1));
    }

    #[test]
    fn nothing_is_kept_of_sources_that_find_no_room() {
        let mut dedup = Dedup::new(4, 1000, 7);
        let taken = (1..=100).filter(|&n| pending(&mut dedup, 0, remote(n), 1)).count();
        assert_eq!(taken, 4);
        assert_eq!(dedup.memory.map(|memory| memory.shares.len()), Some(4));
    }

    #[test]
    fn the_oldest_verified_requests_make_room_and_take_none_from_others() {
        let mut dedup = Dedup::new(10, 20, 7);
        for id in 0..100 {
            dedup.insert_verified(at(0), LIFETIME, key(1, id));
            assert!(dedup.set_reply(at(0), remote(1), MessageId(id), response(4)));
        }
        let known = |dedup: &mut Dedup, id| dedup.lookup(at(1), remote(1), MessageId(id)).is_some();
        assert!(known(&mut dedup, 99) && known(&mut dedup, 98));
        assert!(!known(&mut dedup, 90), "one source holds at most half");
        assert!(!dedup.is_half_full() && pending(&mut dedup, 1, remote(1), 200));
        assert!(
            !dedup.set_reply(at(0), remote(1), MessageId(99), response(30)),
            "longer than all room"
        );
        dedup.insert_verified(at(247), LIFETIME, key(1, 300));
        assert_eq!(dedup.len(), 2);
    }

    #[test]
    fn an_ipv6_prefix_of_64_bits_is_one_source_and_so_are_the_ports_of_an_address() {
        let host = |n: u128| {
            let prefix = 0x2001_0db8_0000_0001_u128 << 64;
            PeerId::Address(SocketAddr::from((Ipv6Addr::from_bits(prefix | n), 5683)))
        };
        let mut dedup = Dedup::new(1000, 1000, 7);
        let taken = (0..2000).filter(|&n| pending(&mut dedup, 0, host(n), 1)).count();
        assert_eq!(taken, 500);
        let other = PeerId::Address(SocketAddr::from((
            Ipv6Addr::from_bits(0x2001_0db8_0000_0002 << 64),
            5683,
        )));
        assert!(pending(&mut dedup, 0, other, 1));
        let mut dedup = Dedup::new(1000, 1000, 7);
        let port = |port| PeerId::Address(SocketAddr::from(([10, 0, 0, 1], port)));
        assert_eq!((0..2000).filter(|&n| pending(&mut dedup, 0, port(n), 1)).count(), 500);
        let mapped = PeerId::Address(SocketAddr::from((
            "::ffff:10.0.0.1".parse::<IpAddr>().unwrap_or(IpAddr::from([0; 16])),
            9,
        )));
        assert!(!pending(&mut dedup, 0, mapped, 1), "the same address in another form");
    }

    #[test]
    fn the_bytes_of_stored_responses_are_shared_as_the_places_are() {
        let mut dedup = Dedup::new(1000, 1000, 7);
        for id in 0..100 {
            assert!(pending(&mut dedup, 0, remote(1), id));
        }
        let kept =
            (0..100).filter(|&id| dedup.set_reply(at(0), remote(1), MessageId(id), response(10)));
        assert_eq!(kept.count(), 50);
        assert!(pending(&mut dedup, 0, remote(2), 1));
        assert!(dedup.set_reply(at(0), remote(2), MessageId(1), response(200)));
        // The earlier reply is replaced.
        assert!(dedup.set_reply(at(0), remote(2), MessageId(1), response(220)));
        assert!(!dedup.set_reply(at(0), remote(2), MessageId(1), response(501)));
    }
}
