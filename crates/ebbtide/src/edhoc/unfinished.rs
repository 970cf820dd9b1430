//! A server's handshakes that wait for message 3.

use super::handshake::WaitingResponder;
use ebbtide_core::time::Instant;
use ebbtide_core::{PeerId, Shares};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Handshakes that wait at most. As many as those of DTLS: if a thousand devices wake up at once, those that were begun
/// last must not end those whose message 3 is still under way.
const MAX_UNFINISHED: usize = 4096;
/// How long one waits: EXCHANGE_LIFETIME (RFC 7252 section 4.8.2), within which message 3 arrives, if it does.
const PATIENCE: Duration = Duration::from_secs(247);

/// The client of a handshake.
#[derive(Copy, Clone, Debug)]
pub(crate) struct HandshakePeer {
    pub(crate) id: PeerId,
    /// Its address, or that of its session, which has a share: a client may have many sessions.
    pub(crate) ip: IpAddr,
}

/// See the [module](self). A source that has as many as are free to others loses its own oldest one.
pub(super) struct Unfinished<T> {
    /// The oldest first.
    waiting: BTreeMap<u64, Box<UnfinishedHandshake<T>>>,
    /// By our identifier.
    by_id: BTreeMap<Vec<u8>, u64>,
    shares: Shares<u64>,
    begun: u64,
}

struct UnfinishedHandshake<T> {
    began: Instant,
    client: HandshakePeer,
    id: Vec<u8>,
    /// `None` until message 2 is made.
    answered: Option<T>,
}

const _: () = assert!(size_of::<UnfinishedHandshake<WaitingResponder>>() <= 1024);

impl<T> core::fmt::Debug for Unfinished<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Unfinished").field(&self.waiting.len()).finish()
    }
}

impl<T> Unfinished<T> {
    pub(super) const fn new() -> Self {
        Self { waiting: BTreeMap::new(), by_id: BTreeMap::new(), shares: Shares::new(), begun: 0 }
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

    /// Begins a handshake with our identifier `id`, which no other one [`has`](Self::has). Returns its number: another one
    /// may have the identifier later.
    pub(super) fn begin(&mut self, now: Instant, client: HandshakePeer, id: Vec<u8>) -> u64 {
        // Those that have waited too long need no room.
        self.len(now);
        while let Some(surplus) = self.shares.surplus(client.ip, MAX_UNFINISHED) {
            self.remove(surplus);
        }
        let number = self.begun;
        self.begun += 1;
        self.by_id.insert(id.clone(), number);
        self.shares.add(client.ip, number);
        let handshake = UnfinishedHandshake { began: now, client, id, answered: None };
        self.waiting.insert(number, Box::new(handshake));
        number
    }

    /// Notes what message 3 is verified with, unless the handshake has ended since.
    pub(super) fn answered(&mut self, number: u64, answered: T) {
        if let Some(handshake) = self.waiting.get_mut(&number) {
            handshake.answered = Some(answered);
        }
    }

    /// Ends a handshake that cannot be answered.
    pub(super) fn end(&mut self, number: u64) {
        self.remove(number);
    }

    /// Whether a client has a handshake with our identifier.
    pub(super) fn is_of(&self, client: PeerId, id: &[u8]) -> bool {
        let handshake = self.by_id.get(id).and_then(|number| self.waiting.get(number));
        handshake.is_some_and(|handshake| handshake.client.id == client)
    }

    /// Takes out the handshake of a client with our identifier.
    pub(super) fn take(&mut self, client: PeerId, id: &[u8]) -> Option<T> {
        let number = *self.by_id.get(id).filter(|_| self.is_of(client, id))?;
        self.remove(number)?.answered
    }

    fn remove(&mut self, number: u64) -> Option<Box<UnfinishedHandshake<T>>> {
        let handshake = self.waiting.remove(&number)?;
        self.by_id.remove(&handshake.id);
        self.shares.remove(handshake.client.ip, number);
        Some(handshake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_core::SessionKey;

    fn peer(host: u8, port: u16) -> HandshakePeer {
        let ip = [192, 0, 2, host].into();
        HandshakePeer { id: PeerId::Address((ip, port).into()), ip }
    }

    /// One of the sessions of a host.
    fn session(host: u8, number: u32) -> HandshakePeer {
        let id = SessionKey::new(0, number.into()).into();
        HandshakePeer { id, ip: [192, 0, 2, host].into() }
    }

    #[test]
    fn a_source_that_begins_very_many_handshakes_ends_its_own_and_each_ends_after_a_while() {
        let mut unfinished = Unfinished::new();
        let begin = |unfinished: &mut Unfinished<()>, at, client, id: u32| {
            let number = unfinished.begin(at, client, id.to_be_bytes().to_vec());
            unfinished.answered(number, ());
        };
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        begin(&mut unfinished, at(0), peer(1, 5683), 0);
        let flood = MAX_UNFINISHED as u32 / 2 + 100;
        for id in 1..=flood {
            // However many sessions it has.
            let client = if id % 2 == 0 { peer(2, id as u16) } else { session(2, id) };
            begin(&mut unfinished, at(1), client, id);
        }
        // Half of what is free, and no more.
        assert_eq!(unfinished.len(at(1)), 1 + MAX_UNFINISHED / 2);
        let id = |id: u32| id.to_be_bytes();
        assert!(!unfinished.has(&id(100)) && unfinished.has(&id(flood)));
        assert!(unfinished.take(peer(2, 1).id, &id(0)).is_none(), "it is another client's");
        assert!(unfinished.take(peer(1, 5683).id, &id(0)).is_some());
        assert!(unfinished.take(peer(1, 5683).id, &id(0)).is_none(), "it ends once");
        unfinished.begin(at(2), peer(1, 5683), id(0).to_vec());
        assert!(unfinished.has(&id(0)), "its identifier is taken while it is answered");
        assert_eq!(unfinished.len(at(247)), 1 + MAX_UNFINISHED / 2);
        assert_eq!(unfinished.len(at(248)), 1);
        assert_eq!(unfinished.len(at(249)), 0);
        assert!(unfinished.by_id.is_empty() && unfinished.shares.is_empty());
    }

    #[test]
    fn a_handshake_that_was_displaced_does_not_answer_for_the_next_one_with_its_identifier() {
        let (mut unfinished, at, id) = (Unfinished::new(), Instant::ZERO, b"\x07");
        let displaced = unfinished.begin(at, peer(1, 1), id.to_vec());
        for n in 0..=MAX_UNFINISHED as u32 / 2 {
            unfinished.begin(at, peer(1, 2), n.to_be_bytes().to_vec());
        }
        assert!(!unfinished.has(id));
        let next = unfinished.begin(at, peer(2, 1), id.to_vec());
        unfinished.answered(next, "of the next one");
        unfinished.answered(displaced, "of the displaced one");
        unfinished.end(displaced);
        assert_eq!(unfinished.take(peer(2, 1).id, id), Some("of the next one"));
    }
}
