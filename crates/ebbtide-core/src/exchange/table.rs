//! The table of exchanges: every message that this endpoint sent or queued and that awaits an
//! answer.

use crate::cc::{Answered, Attempts, Marking, ProbeReply, Sample, Slot};
use crate::peer::PeerId;
use crate::time::{Instant, Micros};
use crate::wire::{MessageId, OptionNumber, Token};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Identifies an exchange. An identifier is not reused for another exchange within 2^32 uses of
/// its place.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl ExchangeId {
    /// The place of the exchange in the endpoint's table. It is small, and unique among the
    /// exchanges that are open at the same time, so drivers may index tables of their own with it.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// The identifier as a number, for interfaces that have numbers only.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The identifier with this number. One that no endpoint has returned belongs to no exchange.
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        Self { index: number as u32, generation: (number >> 32) as u32 }
    }
}

/// The purpose of an exchange.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A request of ours, which ends with its response.
    Request,
    /// A separate Confirmable response of ours, which ends with its acknowledgement.
    Response,
    /// A response to an observer. The observer goes with it if it is given up.
    Notification,
    /// An empty Confirmable message, which ends with its Reset.
    Ping,
}

/// The state of an exchange.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeState {
    /// The place is unused.
    Free,
    /// Waits in its peer's queue for permission to leave.
    Queued,
    /// Confirmable, sent and not acknowledged; holds one of the NSTART places.
    Open,
    /// Acknowledged or Non-confirmable; waits for its response and holds no NSTART place.
    Waiting,
    /// Registered as an observer. Waits for notifications without a timer, and is no longer found
    /// by its message ID.
    Observing,
}

/// The number of responses that a request may have.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    One,
    /// It asks to be registered as an observer (RFC 7641 section 2): one response, followed by
    /// notifications if it is registered.
    Observed,
    /// It carries or requests blocks (RFC 9177): any number.
    Many,
}

/// The reason for the timer of an open exchange.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimerReason {
    /// The timeout expires, and congestion control decides what follows.
    Expiry,
    /// The message is repeated, as congestion control decided when a probe was answered.
    Repeat,
}

/// A probe that congestion control sent for an exchange.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) id: MessageId,
    pub(crate) sent: Instant,
    pub(crate) answered: bool,
}

/// One exchange.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Exchange {
    pub(crate) generation: u32,
    pub(crate) state: ExchangeState,
    pub(crate) purpose: Purpose,
    pub(crate) confirmable: bool,
    /// Whether it is harmless if a peer takes a copy for a new message.
    pub(crate) idempotent: bool,
    pub(crate) answers: Answers,
    /// How its transmissions are distinguished; fixed when the first one leaves.
    pub(crate) marking: Marking,
    /// Whether the original carried the option Rexmit-Cnt as a question.
    pub(crate) probed: bool,
    pub(crate) transmissions: u8,
    /// See [`Endpoint::limit_transmissions`](crate::endpoint::Endpoint::limit_transmissions).
    pub(crate) max_transmissions: u8,
    pub(crate) peer: u32,
    pub(crate) remote: PeerId,
    /// Meaningless while queued.
    pub(crate) id: MessageId,
    /// The token of the original transmission.
    pub(crate) token: Token,
    /// Whether it is findable by its message ID, and by its token.
    has_id: bool,
    has_token: bool,
    /// When it first left; while it is queued, when it was accepted.
    pub(crate) first: Instant,
    pub(crate) last: Instant,
    pub(crate) slot: Slot,
    /// The encoded message. Its message ID is filled in when it first leaves. The buffer is kept
    /// when the place is reused.
    pub(crate) datagram: Vec<u8>,
    /// Where a last option would go.
    pub(crate) options_end: u16,
    pub(crate) last_option: OptionNumber,
    /// When each transmission left, relative to `first`; recorded only for marked transmissions.
    pub(crate) sent: Vec<Micros>,
    /// The probes that were sent for it; while it waits for admission, only the unanswered ones.
    /// [`Shell`](crate::cc::Shell) bounds their number.
    pub(crate) probes: Vec<Probe>,
    /// The action that is due at the timer of an open exchange.
    pub(crate) due: TimerReason,
    /// The next exchange in the peer's queue, or the next free place.
    pub(crate) next: u32,
}

/// The end of a list of exchanges.
pub(crate) const NONE: u32 = u32::MAX;

impl Exchange {
    /// Whether the message, or one of its probes, was sent with this ID.
    fn sent_as(&self, id: MessageId) -> bool {
        self.has_id && self.id == id || self.probes.iter().any(|probe| probe.id == id)
    }

    /// The measurements of an answer that arrives at `now`. `answered` is the ordinal of a mark,
    /// if it can be trusted.
    pub(crate) fn sample(&self, now: Instant, answered: Option<u8>) -> Sample {
        let since_first = now.micros_since(self.first);
        let answered = answered.and_then(|ordinal| {
            let sent = self.sent.get(usize::from(ordinal))?;
            Some(Answered { ordinal, since: since_first.saturating_sub(*sent) })
        });
        Sample {
            since_first,
            since_last: now.micros_since(self.last),
            transmissions: self.transmissions,
            answered,
        }
    }

    /// Records the first transmission, under this message ID.
    pub(crate) fn depart_as(&mut self, now: Instant, id: MessageId) {
        self.id = id;
        [self.datagram[2], self.datagram[3]] = id.0.to_be_bytes();
        self.first = now;
    }

    /// Whether the remote's address may be forged, so that only so many transmissions may leave.
    pub(crate) fn is_limited(&self) -> bool {
        self.max_transmissions < u8::MAX
    }

    /// Whether probes may leave for it. A ping serves as its own, and the bytes of a probe would add to those
    /// that an address which may be forged receives.
    pub(crate) fn may_be_probed(&self) -> bool {
        self.purpose != Purpose::Ping && !self.is_limited()
    }

    /// The number of transmissions and probes so far.
    pub(crate) fn effort(&self) -> Attempts {
        let answered = self.probes.iter().filter(|probe| probe.answered).count();
        Attempts {
            transmissions: self.transmissions,
            // An open exchange has at most MAX_RETRANSMIT probes.
            probes: self.probes.len() as u8,
            answered_probes: answered as u8,
        }
    }

    /// The measurements of the first answer to the probe with this ID; `None` if there is no such
    /// probe, or it was answered before.
    fn probe_reply(&mut self, now: Instant, id: MessageId) -> Option<ProbeReply> {
        let probe = self.probes.iter_mut().find(|probe| probe.id == id && !probe.answered)?;
        probe.answered = true;
        let since_last = match self.transmissions {
            0 => Micros::ZERO,
            _ => now.micros_since(self.last),
        };
        let since = now.micros_since(probe.sent);
        Some(ProbeReply { since, since_last, transmissions: self.transmissions })
    }
}

/// Places that are looked at one by one. A device with NSTART 1 has one, and hashes nothing.
const FEW: usize = 4;

/// Finds exchanges by what identifies them.
#[derive(Debug)]
struct Index {
    by_id: HashTable<(u32, MessageId)>,
    by_token: HashTable<u32>,
    hasher: FixedState,
}

impl Index {
    fn insert_id(&mut self, places: &[Exchange], index: u32, id: MessageId) {
        let hasher = &self.hasher;
        let hash =
            |&(index, id): &(u32, MessageId)| hasher.hash_one((places[index as usize].remote, id));
        self.by_id.insert_unique(hash(&(index, id)), (index, id), hash);
    }

    fn insert_token(&mut self, places: &[Exchange], index: u32) {
        let hasher = &self.hasher;
        let hash = |&index: &u32| {
            let exchange = &places[index as usize];
            hasher.hash_one((exchange.remote, exchange.token))
        };
        self.by_token.insert_unique(hash(&index), index, hash);
    }
}

/// All exchanges, found by place, by message ID and by token.
#[derive(Debug)]
pub(crate) struct Table {
    places: Vec<Exchange>,
    free: u32,
    used: usize,
    /// Finds exchanges where there are many; `None` while there are few, which are searched one by
    /// one.
    index: Option<Box<Index>>,
    hash_seed: u64,
    /// Requests that were sent to groups, which any remote may answer.
    groups: Vec<u32>,
    max: usize,
}

impl Table {
    pub(crate) const fn new(max: usize, hash_seed: u64) -> Self {
        let max = if max < NONE as usize { max } else { NONE as usize };
        Self {
            places: Vec::new(),
            free: NONE,
            used: 0,
            index: None,
            hash_seed,
            groups: Vec::new(),
            max,
        }
    }

    /// The number of exchanges, including queued ones.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// The states of all places, including unused ones.
    pub(crate) fn states(&self) -> impl Iterator<Item = ExchangeState> + '_ {
        self.places.iter().map(|exchange| exchange.state)
    }

    /// Reads the first exchange: see [`read_ahead`](crate::testbed::read_ahead).
    pub(crate) fn read_ahead(&self) -> u64 {
        let Some(exchange) = self.places.first() else { return 0 };
        let words = u64::from(exchange.generation ^ exchange.peer ^ exchange.next);
        let times = exchange.first.as_nanos() ^ exchange.last.as_nanos();
        let bytes = exchange.datagram.first().copied().unwrap_or_default() ^ exchange.transmissions;
        let bytes = bytes ^ u8::from(exchange.has_id) ^ exchange.token.len() as u8;
        let lengths = exchange.probes.len() as u64 ^ u64::from(exchange.id.0);
        let sent = exchange.sent.first().map_or(0, |sent| sent.as_micros());
        let of_slot = exchange.slot.armed.as_micros() ^ u64::from(exchange.remote.is_multicast());
        times ^ lengths ^ words ^ sent ^ of_slot ^ u64::from(bytes)
    }

    /// Takes a free place; `None` if the table is full.
    pub(crate) fn take(&mut self, remote: PeerId, peer: u32, purpose: Purpose) -> Option<u32> {
        if self.used >= self.max {
            return None;
        }
        let index = if self.free == NONE {
            let index = u32::try_from(self.places.len()).ok()?;
            if self.places.len() == self.places.capacity() {
                // One by one at first: a device with NSTART 1 needs one place, not four.
                self.places.reserve_exact(self.places.len() / 2 + 1);
            }
            self.places.push(Exchange {
                generation: 0,
                state: ExchangeState::Free,
                purpose,
                confirmable: true,
                idempotent: false,
                answers: Answers::One,
                marking: Marking::None,
                probed: false,
                transmissions: 0,
                max_transmissions: u8::MAX,
                peer,
                remote,
                id: MessageId(0),
                token: Token::EMPTY,
                has_id: false,
                has_token: false,
                first: Instant::ZERO,
                last: Instant::ZERO,
                slot: Slot::default(),
                datagram: Vec::new(),
                options_end: 0,
                last_option: OptionNumber(0),
                sent: Vec::new(),
                probes: Vec::new(),
                due: TimerReason::Expiry,
                next: NONE,
            });
            if self.places.len() == FEW + 1 {
                self.build_index();
            }
            index
        } else {
            let index = self.free;
            self.free = self.places[index as usize].next;
            index
        };
        self.used += 1;
        let exchange = &mut self.places[index as usize];
        exchange.state = ExchangeState::Queued;
        exchange.purpose = purpose;
        exchange.confirmable = true;
        exchange.answers = Answers::One;
        exchange.marking = Marking::None;
        exchange.probed = false;
        exchange.transmissions = 0;
        exchange.max_transmissions = u8::MAX;
        exchange.peer = peer;
        exchange.remote = remote;
        exchange.token = Token::EMPTY;
        exchange.slot = Slot::default();
        exchange.datagram.clear();
        exchange.sent.clear();
        exchange.probes.clear();
        exchange.due = TimerReason::Expiry;
        exchange.next = NONE;
        Some(index)
    }

    /// Builds the index of all exchanges that can be found by ID or by token.
    fn build_index(&mut self) {
        let hasher = FixedState::with_seed(self.hash_seed);
        let (by_id, by_token) = (HashTable::new(), HashTable::new());
        let mut index = Index { by_id, by_token, hasher };
        for (place, exchange) in (0..).zip(&self.places) {
            let id = exchange.has_id.then_some(exchange.id);
            for id in id.into_iter().chain(exchange.probes.iter().map(|probe| probe.id)) {
                index.insert_id(&self.places, place, id);
            }
            if exchange.has_token {
                index.insert_token(&self.places, place);
            }
        }
        self.index = Some(Box::new(index));
    }

    /// Frees a place. The exchange must have been forgotten by ID and by token before.
    pub(crate) fn release(&mut self, index: u32) {
        let exchange = &mut self.places[index as usize];
        debug_assert_ne!(exchange.state, ExchangeState::Free, "released twice");
        exchange.state = ExchangeState::Free;
        exchange.generation = exchange.generation.wrapping_add(1);
        exchange.next = self.free;
        self.free = index;
        self.used -= 1;
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Exchange {
        &self.places[index as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Exchange {
        &mut self.places[index as usize]
    }

    /// The identifier of the exchange at a place in use.
    #[inline]
    pub(crate) fn name(&self, index: u32) -> ExchangeId {
        ExchangeId { index, generation: self.places[index as usize].generation }
    }

    /// The place of an exchange, if it has not ended.
    pub(crate) fn find(&self, id: ExchangeId) -> Option<u32> {
        let exchange = self.places.get(id.index as usize)?;
        (exchange.generation == id.generation && exchange.state != ExchangeState::Free)
            .then_some(id.index)
    }

    /// Makes the exchange findable by its message ID.
    pub(crate) fn remember_id(&mut self, index: u32) {
        let exchange = &mut self.places[index as usize];
        exchange.has_id = true;
        let id = exchange.id;
        self.insert_id(index, id);
    }

    pub(crate) fn forget_id(&mut self, index: u32) {
        let exchange = &mut self.places[index as usize];
        exchange.has_id = false;
        let id = exchange.id;
        self.remove_id(index, id);
    }

    /// Adds a probe to an exchange and makes the exchange findable by the probe's ID.
    pub(crate) fn remember_probe(&mut self, index: u32, probe: Probe) {
        self.insert_id(index, probe.id);
        self.places[index as usize].probes.push(probe);
    }

    /// The measurements of the first answer to a probe; `None` if there is no such probe, or it
    /// was answered before. Answered probes of a waiting message are not kept, because there may
    /// be any number of them.
    pub(crate) fn probe_reply(
        &mut self,
        now: Instant,
        index: u32,
        id: MessageId,
    ) -> Option<ProbeReply> {
        let exchange = &mut self.places[index as usize];
        let probe_reply = exchange.probe_reply(now, id)?;
        if exchange.state == ExchangeState::Queued {
            exchange.probes.retain(|probe| !probe.answered);
            self.remove_id(index, id);
        }
        Some(probe_reply)
    }

    /// Forgets the probes of an exchange; later answers to them are ignored.
    pub(crate) fn forget_probes(&mut self, index: u32) {
        while let Some(probe) = self.places[index as usize].probes.pop() {
            self.remove_id(index, probe.id);
        }
    }

    fn insert_id(&mut self, index: u32, id: MessageId) {
        if let Some(found) = &mut self.index {
            found.insert_id(&self.places, index, id);
        }
    }

    fn remove_id(&mut self, index: u32, id: MessageId) {
        let Some(found) = &mut self.index else { return };
        let remote = self.places[index as usize].remote;
        let hash = found.hasher.hash_one((remote, id));
        if let Ok(entry) = found.by_id.find_entry(hash, |other| *other == (index, id)) {
            entry.remove();
        }
    }

    /// Whether a message or a probe of any exchange has this ID. It looks at all exchanges.
    pub(crate) fn is_id_in_use(&self, id: MessageId) -> bool {
        self.places.iter().any(|exchange| exchange.sent_as(id))
    }

    /// The exchange that sent a message, or a probe, with this ID.
    #[inline]
    pub(crate) fn by_id(&self, remote: PeerId, id: MessageId) -> Option<u32> {
        let Some(index) = &self.index else {
            let is_it = |exchange: &Exchange| exchange.remote == remote && exchange.sent_as(id);
            return self.places.iter().position(is_it).map(|place| place as u32);
        };
        let hash = index.hasher.hash_one((remote, id));
        let found = index.by_id.find(hash, |&(index, other)| {
            other == id && self.places[index as usize].remote == remote
        });
        found.map(|&(index, _)| index)
    }

    /// Makes the exchange findable by its token.
    pub(crate) fn remember_token(&mut self, index: u32) {
        let exchange = &mut self.places[index as usize];
        exchange.has_token = true;
        if exchange.remote.is_multicast() {
            self.groups.push(index);
        }
        if let Some(found) = &mut self.index {
            found.insert_token(&self.places, index);
        }
    }

    pub(crate) fn forget_token(&mut self, index: u32) {
        let exchange = &mut self.places[index as usize];
        exchange.has_token = false;
        if exchange.remote.is_multicast() {
            self.groups.retain(|&group| group != index);
        }
        let Some(found) = &mut self.index else { return };
        let hash = found.hasher.hash_one((exchange.remote, exchange.token));
        if let Ok(entry) = found.by_token.find_entry(hash, |&other| other == index) {
            entry.remove();
        }
    }

    /// The request to a group to which this token belongs. Members respond from addresses of their
    /// own, so only the token of the response must match (RFC 7252 section 8.2).
    pub(crate) fn group_by_token(&self, token: Token) -> Option<u32> {
        let mut groups = self.groups.iter().copied();
        groups.find(|&index| self.places[index as usize].token == token)
    }

    #[inline]
    pub(crate) fn by_token(&self, remote: PeerId, token: Token) -> Option<u32> {
        let Some(index) = &self.index else {
            let is_it = |exchange: &Exchange| {
                exchange.has_token && exchange.remote == remote && exchange.token == token
            };
            return self.places.iter().position(is_it).map(|place| place as u32);
        };
        let hash = index.hasher.hash_one((remote, token));
        let found = index.by_token.find(hash, |&index| {
            let exchange = &self.places[index as usize];
            exchange.remote == remote && exchange.token == token
        });
        found.copied()
    }
}
