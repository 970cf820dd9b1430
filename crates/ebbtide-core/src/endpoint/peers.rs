//! Peers: the scopes for which congestion control state is kept.

use super::measurement::Waves;
use crate::cc::{ControlConfig, Load, Shell};
use crate::exchange::message_id::MessageIds;
use crate::exchange::table::NONE;
use crate::peer::PeerId;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// The remotes that share one congestion control.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Each remote transport address has a control of its own (draft-ietf-core-cocoa-03 section
    /// 3).
    #[default]
    TransportAddress,
    /// All ports of an IP address share one control: several devices behind one address
    /// translator, or several programs of one device.
    Address,
    /// All addresses of a prefix share one control: devices behind one gateway. Prefix lengths are
    /// in bits.
    Prefix {
        /// For IPv4, at most 32; 24 is usual.
        v4: u8,
        /// For IPv6, at most 128; 64 is usual.
        v6: u8,
    },
}

impl Scope {
    /// The peer that stands for the scope of `remote`. A session is a scope of its own.
    #[inline]
    pub(crate) fn key(self, remote: PeerId) -> PeerId {
        let PeerId::Address(address) = remote else { return remote };
        match self {
            Self::TransportAddress => remote,
            Self::Address => SocketAddr::new(address.ip(), 0).into(),
            Self::Prefix { v4, v6 } => {
                let ip = match address.ip() {
                    IpAddr::V4(ip) => {
                        let mask = u32::MAX.checked_shl(32 - u32::from(v4.min(32))).unwrap_or(0);
                        IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
                    }
                    IpAddr::V6(ip) => {
                        let mask = u128::MAX.checked_shl(128 - u32::from(v6.min(128))).unwrap_or(0);
                        IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
                    }
                };
                SocketAddr::new(ip, 0).into()
            }
        }
    }
}

/// Whether a peer's marks can be trusted, as observed from its answers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The peer has answered two copies of one message with the mark of each, so it does not repeat
    /// the first copy's mark in answers to duplicates; or the user vouches for it.
    pub(crate) faithful: bool,
    /// Whether the peer knows the option Rexmit-Cnt.
    pub(crate) option: OptionSupport,
}

/// The initial state of a peer.
#[derive(Copy, Clone, Debug)]
pub(crate) struct NewPeer<'c> {
    /// The number of its congestion control among those of the endpoint.
    pub(crate) control: u8,
    /// The configuration of that control.
    pub(crate) config: &'c ControlConfig,
    /// Its first message ID.
    pub(crate) first_id: u16,
    pub(crate) marks: Marks,
}

/// Whether a peer knows the option Rexmit-Cnt (draft-ietf-core-fasor-02).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum OptionSupport {
    /// Nothing was sent to it yet. The first request carries the value 255 to find out.
    Unknown,
    /// It has echoed the option.
    Confirmed,
    /// It has answered without the option.
    Absent,
}

/// The state of one scope.
#[derive(Debug)]
pub(crate) struct Peer {
    key: PeerId,
    pub(crate) shell: Shell,
    /// The number of its control in the endpoint's list.
    pub(crate) control: u8,
    pub(crate) marks: Marks,
    pub(crate) ids: MessageIds,
    /// The queue of exchanges that wait for permission to leave.
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) queued: u16,
    /// Exchanges of this peer, including queued and waiting ones.
    exchanges: u32,
    pub(crate) last_non: LastTime,
    pub(crate) nons_since_con: u8,
    pub(crate) unanswered_bytes: u32,
    pub(crate) unanswered_since: Instant,
    /// When it last responded to a message of ours.
    pub(crate) heard: LastTime,
    last_used: Instant,
    /// The option PM; `None` as long as neither end has sent it.
    pub(super) waves: Option<Box<Waves>>,
    /// Neighbours in the order of use, while the peer has no exchange.
    newer: u32,
    older: u32,
}

/// When something happened last, if it has. An option of an instant takes twice the bytes, for each peer.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LastTime(Instant);

impl LastTime {
    pub(crate) const NEVER: Self = Self(Instant::MAX);

    #[inline]
    pub(crate) fn get(self) -> Option<Instant> {
        (self.0 < Instant::MAX).then_some(self.0)
    }
}

impl From<Instant> for LastTime {
    #[inline]
    fn from(at: Instant) -> Self {
        Self(at)
    }
}

impl Peer {
    pub(crate) fn load(&self) -> Load {
        Load {
            open: 0,
            last_non: self.last_non.get(),
            nons_since_con: self.nons_since_con,
            unanswered_bytes: self.unanswered_bytes,
            unanswered_since: self.unanswered_since,
            probes: 0,
        }
    }

    /// The index of its congestion control in the endpoint's list.
    #[inline]
    pub(crate) fn control(&self) -> usize {
        self.control.into()
    }

    /// Whether the peer has no exchange.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.exchanges == 0
    }

    /// Records that the peer has responded, so that earlier messages are no longer unanswered.
    #[inline]
    pub(crate) fn hear(&mut self, now: Instant) {
        self.unanswered_bytes = 0;
        self.heard = now.into();
    }
}

/// Places that are looked at one by one: a device has one peer or two, and hashes nothing.
const FEW: usize = 4;

/// All peers, found by scope; those without an exchange are ordered by use.
#[derive(Debug)]
pub(crate) struct Peers {
    places: Vec<Peer>,
    free: Vec<u32>,
    /// Finds peers where there are many; `None` while there are few, which are looked at one by one.
    by_key: Option<Box<HashTable<u32>>>,
    hasher: FixedState,
    newest: u32,
    oldest: u32,
    max: usize,
    /// Peers that were evicted before their retention was over.
    pub(crate) evicted_early: u64,
}

impl Peers {
    pub(crate) fn new(max: usize, hash_seed: u64) -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            by_key: None,
            hasher: FixedState::with_seed(hash_seed),
            newest: NONE,
            oldest: NONE,
            max: max.min(NONE as usize),
            evicted_early: 0,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Peer {
        &self.places[index as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Peer {
        &mut self.places[index as usize]
    }

    /// The peer of this scope, if there is one.
    #[inline]
    pub(crate) fn find(&self, key: PeerId) -> Option<u32> {
        let Some(by_key) = &self.by_key else {
            let mut all = (0..).zip(&self.places);
            let found = all.find(|(index, peer)| peer.key == key && !self.free.contains(index));
            return found.map(|(index, _)| index);
        };
        let hash = self.hasher.hash_one(key);
        by_key.find(hash, |&index| self.places[index as usize].key == key).copied()
    }

    /// Finds or creates the peer of this scope and marks it as used now; `None` if peers with open
    /// exchanges take all places. Peers are kept for `retention` if there is room.
    pub(crate) fn find_or_insert(
        &mut self,
        now: Instant,
        retention: Duration,
        key: PeerId,
        new: NewPeer<'_>,
    ) -> Option<u32> {
        if let Some(index) = self.find(key) {
            self.touch(now, index);
            return Some(index);
        }
        // ExchangeState is kept at least 255 s after its last use (cocoa-03 section 4.3), and longer if
        // there is room. Two evictions per insertion keep up with any rate of arrivals.
        for _ in 0..2 {
            self.evict_oldest(now, retention, retention);
        }
        if self.len() >= self.max && !self.evict_oldest(now, retention, Duration::ZERO) {
            return None;
        }
        let peer = Peer {
            key,
            shell: Shell::new(new.config.build()),
            control: new.control,
            marks: new.marks,
            ids: MessageIds::new(new.first_id),
            head: NONE,
            tail: NONE,
            queued: 0,
            exchanges: 0,
            last_non: LastTime::NEVER,
            nons_since_con: 0,
            unanswered_bytes: 0,
            unanswered_since: now,
            heard: LastTime::NEVER,
            last_used: now,
            waves: None,
            newer: NONE,
            older: NONE,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.places[index as usize] = peer;
                index
            }
            None => {
                let index = u32::try_from(self.places.len()).ok()?;
                if self.places.len() == self.places.capacity() {
                    // The table grows by an eighth; doubling it would leave up to half of this
                    // memory unused. At first it grows one by one: a device has one or two peers.
                    self.places.reserve_exact(self.places.len() / 8 + 1);
                }
                self.places.push(peer);
                index
            }
        };
        let (places, hasher) = (&self.places, &self.hasher);
        let hash = |&index: &u32| hasher.hash_one(places[index as usize].key);
        if let Some(by_key) = &mut self.by_key {
            by_key.insert_unique(hash(&index), index, hash);
        } else if places.len() > FEW {
            let mut by_key = Box::new(HashTable::new());
            // All places are taken, or none would have been added.
            (0..places.len() as u32).for_each(|index| {
                by_key.insert_unique(hash(&index), index, hash);
            });
            self.by_key = Some(by_key);
        }
        self.link_newest(index);
        Some(index)
    }

    /// Reads the first peer: see [`read_ahead`](crate::testbed::read_ahead).
    pub(crate) fn read_ahead(&self) -> u64 {
        let Some(peer) = self.places.first() else { return 0 };
        let words =
            u64::from(peer.head ^ peer.unanswered_bytes) ^ u64::from(peer.key.is_multicast());
        let times = peer.last_used.as_nanos() ^ peer.unanswered_since.as_nanos();
        let control = u64::from(peer.shell.open()) ^ peer.shell.marking() as u64;
        words ^ times ^ control ^ u64::from(peer.nons_since_con) ^ u64::from(self.newest)
    }

    /// Marks a peer as used now.
    #[inline]
    pub(crate) fn touch(&mut self, now: Instant, index: u32) {
        let peer = &mut self.places[index as usize];
        peer.last_used = now;
        if peer.exchanges == 0 && self.newest != index {
            self.unlink(index);
            self.link_newest(index);
        }
    }

    /// Counts one more exchange of a peer, which then cannot be evicted.
    #[inline]
    pub(crate) fn begin_exchange(&mut self, index: u32) {
        if self.places[index as usize].exchanges == 0 {
            self.unlink(index);
        }
        self.places[index as usize].exchanges += 1;
    }

    /// Counts one exchange less.
    #[inline]
    pub(crate) fn end_exchange(&mut self, now: Instant, index: u32) {
        let peer = &mut self.places[index as usize];
        peer.exchanges -= 1;
        if peer.exchanges == 0 {
            peer.last_used = now;
            self.link_newest(index);
        }
    }

    /// Evicts the peer that has been without an exchange for longest, if that is at least `age`. A
    /// peer with a control of its own is not evicted for its age, only for lack of room.
    fn evict_oldest(&mut self, now: Instant, retention: Duration, age: Duration) -> bool {
        let index = self.oldest;
        if index == NONE {
            return false;
        }
        let peer = &self.places[index as usize];
        if peer.control != 0 && age > Duration::ZERO {
            self.unlink(index);
            self.link_newest(index);
            return false;
        }
        let idle = now.saturating_since(peer.last_used);
        if idle < age {
            return false;
        }
        if idle < retention {
            self.evicted_early += 1;
        }
        if let Some(by_key) = &mut self.by_key {
            let hash = self.hasher.hash_one(peer.key);
            if let Ok(entry) = by_key.find_entry(hash, |&other| other == index) {
                entry.remove();
            }
        }
        self.unlink(index);
        self.free.push(index);
        true
    }

    fn unlink(&mut self, index: u32) {
        let (newer, older) = {
            let peer = &self.places[index as usize];
            (peer.newer, peer.older)
        };
        match newer {
            NONE => self.newest = older,
            _ => self.places[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.places[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, index: u32) {
        let before = self.newest;
        let peer = &mut self.places[index as usize];
        peer.newer = NONE;
        peer.older = before;
        match before {
            NONE => self.oldest = index,
            _ => self.places[before as usize].newer = index,
        }
        self.newest = index;
    }
}
