//! Observers (RFC 7641): which clients are notified of a change.

mod due;
mod in_flight;
mod list;
mod locals;
mod parked;
mod saved;
mod table;

pub use due::Due;
pub use list::Subject;
pub use parked::Room;
pub use saved::SavedObserver;
pub use table::ObserverId;

use super::message::{ContentFormat, Response};
use crate::endpoint::Reliability;
use crate::peer::{PeerId, Source};
use crate::peer_token::PeerToken;
use crate::session::shares::FairShares;
use crate::shared::Shared;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::net::IpAddr;
use foldhash::quality::FixedState;
use hashbrown::HashTable;
use in_flight::Tier;
use list::Links;
use table::Places;

/// The maximum number of events that wait for one observer. Beyond it the oldest is dropped and
/// counted.
const MAX_EVENTS: usize = 16;
/// The maximum time between Confirmable notifications in seconds (RFC 7641 section 4.5).
const CONFIRM_EVERY: u32 = 24 * 3600;
/// Subtracted from it, so that the time is not exceeded by a moment.
const SLACK: u32 = 3600;
/// Bytes of a request for which an observer takes one place; a longer one takes more, so that the number of places
/// bounds the memory as well. Most requests are shorter.
const PLACE: usize = 128;

/// About the bytes of an observer's entries in tables.
const ENTRY: usize = 16;

/// The places that an observer with this request takes.
const fn places_of(request: &[u8]) -> usize {
    request.len() / PLACE + 1
}

/// A registration, which makes a client an observer (RFC 7641 section 4.1).
#[derive(Clone, Debug)]
pub struct Registration<'r> {
    /// The observer's address.
    pub remote: PeerId,
    /// The token of its request, which all notifications carry.
    pub token: PeerToken,
    /// The local address from which notifications leave, if that matters.
    pub local: Option<IpAddr>,
    /// Whether its address may be forged. Then its first notification is Confirmable, and no other
    /// follows before it is acknowledged (RFC 7641 section 7).
    pub unverified: bool,
    /// The subject that it observes.
    pub subject: Subject,
    /// The request, which is answered again with each notification.
    pub request: &'r [u8],
    /// The length of the response to the request in bytes, as a datagram with UDP and IP headers.
    pub sent: usize,
    /// The Content-Format of that response, if it names one. Notifications keep it (RFC 7641 section
    /// 4.2).
    pub format: Option<ContentFormat>,
}

/// One observer: an endpoint and a token (RFC 7641 section 4.1).
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of one observer, a byte each")]
struct Observer {
    remote: PeerId,
    token: PeerToken,
    local: locals::Local,
    subject: u32,
    confirmable: bool,
    links: Links,
    request: Shared<[u8]>,
    sent: u16,
    format: Option<ContentFormat>,
    /// The sequence number of the last notification; 24 bits are sent.
    sequence: u32,
    unverified: bool,
    /// Whether it has acknowledged a notification, which proves its address and its interest.
    proven: bool,
    /// The notification in flight.
    under_way: InFlightNotification,
    /// The reliability of the next notification, if it differs from the subject's.
    next: Option<Reliability>,
    /// Whether the state has changed since the last notification.
    dirty: bool,
    awaits: Awaited,
    /// When the last Confirmable notification was sent, in seconds.
    confirmed: u32,
    #[expect(clippy::box_collection, reason = "most observers have none: 8 bytes instead of 32")]
    events: Option<Box<VecDeque<Response>>>,
}

/// A notification in flight to an observer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum InFlightNotification {
    Nothing,
    NonConfirmable,
    /// It counts against the limit of this tier.
    Confirmable(Tier),
}

/// The reason why an observer is not notified yet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Awaited {
    Nothing,
    /// Its turn, in a queue of due observers.
    Turn,
    /// Its turn, and others wait behind it in the line of this tier.
    TurnFromLine(Tier),
    /// Its turn, for which room became free that another may want as well.
    TurnWithRoom,
    /// Room for its message.
    Room,
    /// A place in the share of its source.
    Share,
}

impl Awaited {
    const fn is_turn(self) -> bool {
        matches!(self, Self::Turn | Self::TurnFromLine(_) | Self::TurnWithRoom)
    }
}

/// Whole seconds, which suffice for 136 years.
fn seconds(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000_000) as u32
}

impl Observer {
    fn has_news(&self) -> bool {
        self.dirty || self.events.as_ref().is_some_and(|events| !events.is_empty())
    }

    const fn tier(&self) -> Tier {
        match (self.proven, self.unverified) {
            (true, _) => Tier::Proven,
            (false, false) => Tier::Verified,
            (false, true) => Tier::Unverified,
        }
    }
}

/// The observers of one socket, or of one connection.
#[derive(Debug)]
pub struct Observers {
    places: Places,
    by_key: HashTable<u32>,
    hasher: FixedState,
    /// The first, the last and the number of a subject's observers, by the number of the subject.
    by_subject: BTreeMap<u32, list::ListEnds>,
    due: due::Queue,
    locals: locals::Locals,
    shares: FairShares,
    /// The places that all observers take.
    taken: usize,
    /// Counts changes of the state to be stored.
    version: u64,
    dropped_events: u64,
    refused: u64,
    vanished: u64,
}

impl Observers {
    /// Creates an empty table. `seed` is the key of the table's hashes, so it must be unpredictable
    /// on the open Internet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            places: Places::default(),
            by_key: HashTable::new(),
            hasher: FixedState::with_seed(seed),
            by_subject: BTreeMap::new(),
            due: due::Queue::default(),
            locals: locals::Locals::default(),
            shares: FairShares::new(seed),
            taken: 0,
            version: 0,
            dropped_events: 0,
            refused: 0,
            vanished: 0,
        }
    }

    /// The number of observers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are no observers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The places that they take: one each, and more with long requests.
    #[must_use]
    pub const fn taken(&self) -> usize {
        self.taken
    }

    /// About the bytes that they hold.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.taken * PLACE + self.len() * (size_of::<Observer>() + ENTRY)
    }

    /// The number of observers of a subject.
    #[must_use]
    pub fn of(&self, subject: u32) -> usize {
        self.by_subject.get(&subject).map_or(0, |ends| ends.count)
    }

    /// The number of registrations that found no room.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The number of observers that were removed because they did not acknowledge a notification.
    #[must_use]
    pub fn vanished(&self) -> u64 {
        self.vanished
    }

    /// The number of events that were dropped because their observer was too slow.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.dropped_events
    }

    fn hash(&self, remote: PeerId, token: &PeerToken) -> u64 {
        self.hasher.hash_one((remote, token))
    }

    fn find(&self, remote: PeerId, token: &PeerToken) -> Option<u32> {
        let is = |index: &u32| {
            self.places.at(*index).is_some_and(|o| o.remote == remote && o.token == *token)
        };
        self.by_key.find(self.hash(remote, token), is).copied()
    }

    /// Registers an observer, or renews its registration, and returns its sequence number. Returns
    /// `None` if there are `max` observers already, or if its IPv4 address or IPv6 /64 has as many
    /// as there are free slots: the request is then answered without being registered.
    ///
    /// Renewing a registration for the same subject replaces the request. For another subject, the
    /// former registration ends and a new one begins.
    pub fn register(&mut self, now: Instant, new: &Registration<'_>, max: usize) -> Option<u32> {
        let (places, from) = (places_of(new.request), new.remote.source());
        let mut sequence = 2;
        let mut proven = false;
        if let Some(index) = self.find(new.remote, &new.token) {
            let observer = self.places.at(index)?;
            let before = places_of(&observer.request);
            let is_same = observer.subject == new.subject.id;
            // A client takes the larger number for the newer state (RFC 7641 section 3.4).
            sequence = observer.sequence.wrapping_add(1) & 0xff_ffff;
            proven = observer.proven;
            // A longer request may find no room. The answer is then without Observe, which tells the client that it
            // is notified no more (RFC 7641 section 4.1).
            if is_same && (places <= before || self.admits(from, places, before, max)) {
                self.renew(index, new, sequence);
                return Some(sequence);
            }
            self.remove_at(index);
        }
        if !self.admits(from, places, 0, max) {
            self.refused += 1;
            return None;
        }
        let index = self.places.add(Observer {
            remote: new.remote,
            token: new.token.clone(),
            local: self.locals.intern(new.local),
            subject: new.subject.id,
            confirmable: new.subject.confirmable,
            links: Links::default(),
            request: new.request.into(),
            sent: u16::try_from(new.sent).unwrap_or(u16::MAX),
            format: new.format,
            sequence,
            unverified: new.unverified,
            proven,
            under_way: InFlightNotification::Nothing,
            next: None,
            dirty: false,
            awaits: Awaited::Nothing,
            confirmed: seconds(now),
            events: None,
        });
        self.version += 1;
        self.link(index);
        self.taken += places;
        self.add_to_share(from, places);
        let (places, hasher) = (&self.places, &self.hasher);
        self.by_key.insert_unique(self.hash(new.remote, &new.token), index, |&other| {
            places.at(other).map_or(0, |other| hasher.hash_one((other.remote, &other.token)))
        });
        Some(sequence)
    }

    /// Whether a source may have so many places, instead of some that it has.
    fn admits(&mut self, from: Source, places: usize, instead_of: usize, max: usize) -> bool {
        let taken = self.taken - instead_of;
        if 2 * (taken + places) > max && !self.shares.is_counted() {
            // Most sockets and all connections do without.
            self.places.all().for_each(|observer| {
                let places = places_of(&observer.request);
                self.shares.add_places(observer.remote.source(), places);
            });
        }
        self.shares.remove_places(from, instead_of);
        let admits = self.shares.admit_places(from, places, taken, max);
        self.add_to_share(from, instead_of);
        admits
    }

    fn add_to_share(&mut self, from: Source, places: usize) {
        if self.shares.is_counted() {
            self.shares.add_places(from, places);
        }
    }

    /// The observer has registered again for the same subject.
    fn renew(&mut self, index: u32, new: &Registration<'_>, sequence: u32) {
        let Some(observer) = self.places.at_mut(index) else { return };
        let (before, places) = (places_of(&observer.request), places_of(new.request));
        let sent = u16::try_from(new.sent).unwrap_or(u16::MAX);
        let is_as_stored = *observer.request == *new.request && observer.sent == sent;
        if !is_as_stored || saved::is_to_be_stored(sequence) {
            self.version += 1;
        }
        observer.request = new.request.into();
        observer.sent = sent;
        observer.format = new.format;
        observer.sequence = sequence;
        if observer.proven || !new.unverified {
            self.due.supersede(observer, index);
        }
        self.taken = self.taken - before + places;
        self.shares.remove_places(new.remote.source(), before);
        self.add_to_share(new.remote.source(), places);
    }

    /// The client wants no further notifications (RFC 7641 section 3.6).
    pub fn deregister(&mut self, remote: PeerId, token: &PeerToken) {
        if let Some(index) = self.find(remote, token) {
            self.remove_at(index);
        }
    }

    /// The state changed: every observer of the subject is due.
    pub fn changed(&mut self, subject: u32) {
        self.each(subject, |_, observer| observer.dirty = true);
    }

    /// The state changed: every observer of the subject is due, and receives a message of this
    /// kind. If one notification covers several changes, Confirmable prevails.
    pub fn changed_as(&mut self, subject: u32, reliability: Reliability) {
        self.each(subject, |_, observer| {
            observer.dirty = true;
            if observer.next != Some(Reliability::Confirmable) {
                observer.next = Some(reliability);
            }
        });
    }

    /// The state changed for some observers: every one of the subject whose request `concerns` is
    /// due.
    pub fn changed_where(&mut self, subject: u32, mut concerns: impl FnMut(&[u8]) -> bool) {
        self.each_where(
            subject,
            |observer| concerns(&observer.request),
            |_, observer| {
                observer.dirty = true;
            },
        );
    }

    /// Ends all observations: every observer receives a notification with this error (RFC 7641
    /// section 4.2).
    pub fn end_all(&mut self, error: &Response) {
        let subjects: Vec<u32> = self.by_subject.keys().copied().collect();
        subjects.into_iter().for_each(|subject| self.event(subject, error));
    }

    /// One observer missed a change while it registered.
    pub fn changed_for(&mut self, remote: PeerId, token: &PeerToken) {
        let Some(index) = self.find(remote, token) else { return };
        let id = self.places.name(index);
        if let Some(observer) = self.places.at_mut(index) {
            observer.dirty = true;
            self.due.push(observer, id);
        }
    }

    /// An event: every observer of the subject receives each one, in order.
    pub fn event(&mut self, subject: u32, notification: &Response) {
        self.each(subject, |dropped, observer| {
            let events = observer.events.get_or_insert_default();
            if events.len() >= MAX_EVENTS {
                events.pop_front();
                *dropped += 1;
            }
            events.push_back(notification.clone());
        });
    }

    /// As [`Self::event`], for the observers beyond the first `spared` in the order of registration.
    pub fn event_beyond(&mut self, subject: u32, spared: usize, notification: &Response) {
        let excess = self.of(subject).saturating_sub(spared);
        if excess == 0 {
            return;
        }
        let mut seen = 0;
        self.each_where(
            subject,
            |_| {
                seen += 1;
                seen > spared
            },
            |_, observer| {
                observer.events.get_or_insert_default().push_back(notification.clone());
            },
        );
    }

    /// Visits the observers of a subject, and no others.
    fn each(&mut self, subject: u32, change: impl FnMut(&mut u64, &mut Observer)) {
        self.each_where(subject, |_| true, change);
    }

    fn each_where(
        &mut self,
        subject: u32,
        mut concerns: impl FnMut(&Observer) -> bool,
        mut change: impl FnMut(&mut u64, &mut Observer),
    ) {
        let mut next = self.by_subject.get(&subject).map(|ends| ends.first);
        while let Some(index) = next {
            let id = self.places.name(index);
            let Some(observer) = self.places.at_mut(index) else { return };
            next = observer.links.next();
            if concerns(observer) {
                change(&mut self.dropped_events, observer);
                self.due.push(observer, id);
            }
        }
    }

    /// Removes an observer that cancelled or is gone.
    pub fn remove(&mut self, observer: ObserverId) {
        if let Some(index) = self.places.find(observer) {
            self.remove_at(index);
        }
    }

    /// The observer did not acknowledge a notification and is removed (RFC 7641 section 4.5).
    pub fn lost(&mut self, observer: ObserverId) {
        if self.places.find(observer).is_some() {
            self.vanished += 1;
            self.remove(observer);
        }
    }

    fn remove_at(&mut self, index: u32) {
        self.version += 1;
        let Some(observer) = self.places.at_mut(index) else { return };
        let room = self.due.forget(observer, index);
        let hash = self.hasher.hash_one((observer.remote, &observer.token));
        if let Ok(entry) = self.by_key.find_entry(hash, |&other| other == index) {
            entry.remove();
        }
        let places = places_of(&observer.request);
        self.taken -= places;
        self.shares.remove_places(observer.remote.source(), places);
        self.unlink(index);
        self.places.remove(index);
        self.due.sweep(|id| self.places.find(id).is_some());
        // Another may use it.
        room.into_iter().for_each(|room| self.unpark(room));
    }
}
