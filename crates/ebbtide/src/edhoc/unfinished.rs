//! A server's handshakes that wait for message 3.

use super::handshake::WaitingResponder;
use ebbtide_core::time::Instant;
use ebbtide_core::{PeerId, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Handshakes that wait at most. As many as those of DTLS: if a thousand devices wake up at once, those that were begun
/// last must not end those whose message 3 is still under way.
const MAX_UNFINISHED: usize = 4096;
/// How long one waits: EXCHANGE_LIFETIME (RFC 7252 section 4.8.2), within which message 3 arrives, if it does.
const PATIENCE: Duration = Duration::from_secs(247);

/// See the [module](self). A source that has as many as are free to others loses its own oldest one.
pub(super) struct Unfinished<T> {
    /// The oldest first.
    waiting: BTreeMap<u64, Box<UnfinishedHandshake<T>>>,
    /// By our identifier.
    by_id: BTreeMap<Vec<u8>, u64>,
    by_source: BTreeMap<Source, BTreeSet<u64>>,
    begun: u64,
}

struct UnfinishedHandshake<T> {
    began: Instant,
    client: PeerId,
    id: Vec<u8>,
    answered: T,
}

const _: () = assert!(size_of::<UnfinishedHandshake<WaitingResponder>>() <= 1024);

impl<T> core::fmt::Debug for Unfinished<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Unfinished").field(&self.waiting.len()).finish()
    }
}

impl<T> Unfinished<T> {
    pub(super) const fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            by_id: BTreeMap::new(),
            by_source: BTreeMap::new(),
            begun: 0,
        }
    }

    pub(super) fn len(&mut self, now: Instant) -> usize {
        while let Some((&oldest, handshake)) = self.waiting.first_key_value()
            && now.saturating_since(handshake.began) >= PATIENCE
        {
            self.remove(oldest);
        }
        self.waiting.len()
    }

    pub(super) fn has(&self, id: &[u8]) -> bool {
        self.by_id.contains_key(id)
    }

    /// Adds a handshake with this identifier. Returns false, and adds nothing, if another one has taken it.
    #[must_use]
    pub(super) fn add(&mut self, now: Instant, client: PeerId, id: Vec<u8>, answered: T) -> bool {
        if self.has(&id) {
            return false;
        }
        self.make_room(now, client.source().sharing());
        let number = self.begun;
        self.begun += 1;
        self.by_id.insert(id.clone(), number);
        self.by_source.entry(client.source().sharing()).or_default().insert(number);
        let handshake = UnfinishedHandshake { began: now, client, id, answered };
        self.waiting.insert(number, Box::new(handshake));
        true
    }

    /// Takes out the handshake of a client with our identifier.
    pub(super) fn take(&mut self, client: PeerId, id: &[u8]) -> Option<T> {
        let number = *self.by_id.get(id)?;
        self.waiting.get(&number).filter(|handshake| handshake.client == client)?;
        self.remove(number).map(|handshake| handshake.answered)
    }

    fn make_room(&mut self, now: Instant, source: Source) {
        let free = MAX_UNFINISHED.saturating_sub(self.len(now));
        let own = self.by_source.get(&source).filter(|own| own.len() >= free);
        let most = || self.by_source.values().max_by_key(|numbers| numbers.len());
        let loser = own.or_else(|| most().filter(|_| free == 0));
        if let Some(oldest) = loser.and_then(BTreeSet::first).copied() {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, number: u64) -> Option<Box<UnfinishedHandshake<T>>> {
        let handshake = self.waiting.remove(&number)?;
        self.by_id.remove(&handshake.id);
        let source = handshake.client.source().sharing();
        if let Some(own) = self.by_source.get_mut(&source) {
            own.remove(&number);
            if own.is_empty() {
                self.by_source.remove(&source);
            }
        }
        Some(handshake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(host: u8, port: u16) -> PeerId {
        PeerId::Address(([192, 0, 2, host], port).into())
    }

    #[test]
    fn a_source_that_begins_very_many_handshakes_ends_its_own_and_each_ends_after_a_while() {
        let mut unfinished = Unfinished::new();
        let begin = |unfinished: &mut Unfinished<()>, at, client, id: u32| {
            assert!(unfinished.add(at, client, id.to_be_bytes().to_vec(), ()));
        };
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        begin(&mut unfinished, at(0), peer(1, 5683), 0);
        let flood = MAX_UNFINISHED as u32 / 2 + 100;
        for id in 1..=flood {
            begin(&mut unfinished, at(1), peer(2, id as u16), id);
        }
        assert!(
            !unfinished.add(at(1), peer(3, 1), 0_u32.to_be_bytes().to_vec(), ()),
            "it is taken"
        );
        // Half of what is free, and no more.
        assert_eq!(unfinished.len(at(1)), 1 + MAX_UNFINISHED / 2);
        let id = |id: u32| id.to_be_bytes();
        assert!(!unfinished.has(&id(100)) && unfinished.has(&id(flood)));
        assert!(unfinished.take(peer(2, 1), &id(0)).is_none(), "it is another client's");
        assert!(unfinished.take(peer(1, 5683), &id(0)).is_some());
        assert!(unfinished.take(peer(1, 5683), &id(0)).is_none(), "it ends once");
        begin(&mut unfinished, at(2), peer(1, 5683), 0);
        assert_eq!(unfinished.len(at(247)), 1 + MAX_UNFINISHED / 2);
        assert_eq!(unfinished.len(at(248)), 1);
        assert_eq!(unfinished.len(at(249)), 0);
        assert!(unfinished.by_id.is_empty() && unfinished.by_source.is_empty());
    }
}
