//! The sessions of an endpoint, by number, by connection ID and by address, in the order of their
//! use.

use super::path::NewPath;
use super::types::SessionId;
use crate::certificate::Identity;
use crate::cid::OwnCid;
use crate::handshake::Handshake;
use crate::keys::Role;
use crate::protect::Protection;
use crate::session::{SavedSession, ServerSessionId};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::SocketAddr;
use ebbtide_core::time::Instant;
use ebbtide_core::{Shares, sharing_prefix};

const NONE: u32 = u32::MAX;

/// A session, or a handshake that becomes one.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) role: Role,
    /// The destination of records.
    pub(crate) remote: SocketAddr,
    pub(crate) protection: Option<Protection>,
    /// Present until the handshake is complete, and a little longer at the side that sent the last
    /// flight.
    pub(crate) handshake: Option<Box<Handshake>>,
    pub(crate) established: bool,
    /// Whether both sides support RFC 9853.
    pub(crate) return_routability: bool,
    pub(crate) identity: Identity,
    pub(crate) resumption: Option<ServerSessionId>,
    /// At a client: the secrets for resumption.
    pub(crate) saved: Option<Box<SavedSession>>,
    /// Present while the peer uses an address that is not confirmed.
    pub(crate) path: Option<Box<NewPath>>,
    /// The message ID of the ping that the peer of a restored session has not answered yet.
    pub(crate) ping: Option<[u8; 2]>,
    pub(crate) began: Instant,
    /// Where the peer was then; that source has the place.
    pub(crate) began_at: SocketAddr,
    armed: Option<Instant>,
    older: u32,
    newer: u32,
}

impl Session {
    pub(crate) fn new(remote: SocketAddr, began: Instant, handshake: Box<Handshake>) -> Self {
        Self {
            role: handshake.role(),
            remote,
            protection: None,
            identity: handshake.identity().clone(),
            handshake: Some(handshake),
            established: false,
            return_routability: false,
            resumption: None,
            saved: None,
            path: None,
            ping: None,
            began,
            began_at: remote,
            armed: None,
            older: NONE,
            newer: NONE,
        }
    }

    /// A session that a server has had before it started again.
    pub(crate) fn restored(
        remote: SocketAddr,
        now: Instant,
        protection: Protection,
        identity: Identity,
    ) -> Self {
        Self {
            role: Role::Server,
            remote,
            protection: Some(protection),
            handshake: None,
            established: true,
            return_routability: false,
            identity,
            resumption: None,
            saved: None,
            path: None,
            ping: None,
            began: now,
            began_at: remote,
            armed: None,
            older: NONE,
            newer: NONE,
        }
    }

    /// The address at which the peer was confirmed last.
    pub(crate) fn confirmed_remote(&self) -> SocketAddr {
        let open = self.path.as_ref().filter(|path| path.is_open());
        open.map_or(self.remote, |path| path.previous())
    }

    pub(crate) fn own_cid(&self) -> OwnCid {
        match (&self.protection, &self.handshake) {
            (Some(protection), _) => protection.own_cid(),
            (None, Some(handshake)) => handshake.own_cid(),
            (None, None) => OwnCid::EMPTY,
        }
    }

    fn due(&self) -> Option<Instant> {
        let handshake = self.handshake.as_ref().and_then(|handshake| handshake.due());
        let path = self.path.as_ref().and_then(|path| path.due());
        [handshake, path].into_iter().flatten().min()
    }
}

#[derive(Debug, Default)]
struct SessionSlot {
    generation: u32,
    session: Option<Box<Session>>,
}

/// The sessions that a source has beyond an equal share. They are counted rarely, since that takes a pass over
/// all sessions, and not before the table is full.
#[derive(Debug)]
struct Surplus {
    sessions: VecDeque<SessionId>,
    /// Evictions until they are counted again, if no source had more than its share.
    recount_in: usize,
}

impl Surplus {
    /// The evictions after which to count again, as a share of all sessions.
    const RECOUNT: usize = 256;
    /// Sessions that are noted at most.
    const NOTED: usize = 1024;
}

#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<SessionSlot>,
    free: Vec<u32>,
    count: usize,
    pub(crate) by_cid: BTreeMap<OwnCid, u32>,
    /// Established sessions without a connection ID of ours.
    pub(crate) by_address: BTreeMap<SocketAddr, u32>,
    /// Handshakes that are not complete.
    pub(crate) handshakes: BTreeMap<SocketAddr, u32>,
    /// The same by source, with the instants at which they began.
    pub(crate) handshake_shares: Shares<(Instant, u32)>,
    surplus: Surplus,
    timers: BTreeSet<(Instant, u32)>,
    least_recent: u32,
    most_recent: u32,
}

impl Table {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            count: 0,
            by_cid: BTreeMap::new(),
            by_address: BTreeMap::new(),
            handshakes: BTreeMap::new(),
            handshake_shares: Shares::new(),
            surplus: Surplus { sessions: VecDeque::new(), recount_in: 0 },
            timers: BTreeSet::new(),
            least_recent: NONE,
            most_recent: NONE,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// The places of all sessions.
    pub(crate) fn indices(&self) -> Vec<u32> {
        let slots = (0..).zip(&self.slots);
        slots.filter(|(_, slot)| slot.session.is_some()).map(|(index, _)| index).collect()
    }

    pub(crate) fn insert(&mut self, session: Session) -> u32 {
        let is_free = |index: &u32| {
            self.slots.get(*index as usize).is_some_and(|slot| slot.session.is_none())
        };
        // A restored session does not leave this list.
        let free = core::iter::from_fn(|| self.free.pop()).find(is_free);
        let index = free.unwrap_or_else(|| {
            self.slots.push(SessionSlot::default());
            (self.slots.len() - 1) as u32
        });
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.session = Some(Box::new(session));
        }
        self.count += 1;
        self.link(index);
        self.rearm(index);
        index
    }

    /// Inserts a session under a name that it had before, in one of the first `max` places. Returns
    /// false if that place is not free.
    pub(crate) fn insert_at(&mut self, id: SessionId, session: Session, max: usize) -> bool {
        let place = id.index as usize;
        if place >= max {
            return false;
        }
        while self.slots.len() <= place {
            self.free.push(self.slots.len() as u32);
            self.slots.push(SessionSlot::default());
        }
        let Some(slot) = self.slots.get_mut(place).filter(|slot| slot.session.is_none()) else {
            return false;
        };
        *slot = SessionSlot { generation: id.generation, session: Some(Box::new(session)) };
        self.count += 1;
        self.link(id.index);
        true
    }

    /// Removes a session from everything except the maps by connection ID and address.
    pub(crate) fn remove(&mut self, index: u32) -> Option<Box<Session>> {
        self.unlink(index);
        let slot = self.slots.get_mut(index as usize)?;
        let session = slot.session.take()?;
        if let Some(at) = session.armed {
            self.timers.remove(&(at, index));
        }
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        self.count -= 1;
        Some(session)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Session> {
        self.slots.get(index as usize)?.session.as_deref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Session> {
        self.slots.get_mut(index as usize)?.session.as_deref_mut()
    }

    pub(crate) fn name(&self, index: u32) -> SessionId {
        let generation = self.slots.get(index as usize).map_or(0, |slot| slot.generation);
        SessionId { index, generation }
    }

    pub(crate) fn find(&self, id: SessionId) -> Option<u32> {
        let slot = self.slots.get(id.index as usize)?;
        (slot.generation == id.generation && slot.session.is_some()).then_some(id.index)
    }

    /// The least recently used session.
    pub(crate) fn least_recent(&self) -> Option<u32> {
        (self.least_recent != NONE).then_some(self.least_recent)
    }

    /// Of the source that has most sessions, if that is more than an equal share of `max`: the least recently
    /// used one.
    pub(crate) fn surplus(&mut self, max: usize) -> Option<u32> {
        while let Some(id) = self.surplus.sessions.pop_front() {
            if let Some(index) = self.find(id) {
                return Some(index);
            }
        }
        if self.surplus.recount_in > 0 {
            self.surplus.recount_in -= 1;
            return None;
        }
        let of = |session: &Session| sharing_prefix(session.began_at.ip());
        let mut counts = BTreeMap::<_, usize>::new();
        for session in self.slots.iter().filter_map(|slot| slot.session.as_ref()) {
            *counts.entry(of(session)).or_default() += 1;
        }
        let share = max.div_ceil(counts.len().max(1));
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let (largest, count) = most.filter(|(_, count)| *count > share).unzip();
        let surplus = count.map_or(0, |count| (count - share).min(Surplus::NOTED));
        let mut next = self.least_recent;
        while self.surplus.sessions.len() < surplus
            && let Some(session) = self.get(next)
        {
            let (index, newer) = (next, session.newer);
            if Some(of(session)) == largest {
                let id = self.name(index);
                self.surplus.sessions.push_back(id);
            }
            next = newer;
        }
        self.surplus.recount_in = if surplus == 0 { max / Surplus::RECOUNT } else { 0 };
        let id = self.surplus.sessions.pop_front()?;
        self.find(id)
    }

    /// Marks a session as used.
    pub(crate) fn touch(&mut self, index: u32) {
        if self.most_recent != index {
            self.unlink(index);
            self.link(index);
        }
    }

    /// Updates the timer after a change of the session's deadlines.
    pub(crate) fn rearm(&mut self, index: u32) {
        let Some(session) = self.slots.get_mut(index as usize).and_then(|s| s.session.as_mut())
        else {
            return;
        };
        let due = session.due();
        if due != session.armed {
            if let Some(at) = session.armed {
                self.timers.remove(&(at, index));
            }
            if let Some(at) = due {
                self.timers.insert((at, index));
            }
            session.armed = due;
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// A session whose deadline has passed. Its timer is disarmed until [`Self::rearm`].
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let (at, index) = *self.timers.first()?;
        if at > now {
            return None;
        }
        self.timers.pop_first();
        if let Some(session) = self.get_mut(index) {
            session.armed = None;
        }
        Some(index)
    }

    fn link(&mut self, index: u32) {
        let newest = self.most_recent;
        if let Some(session) = self.get_mut(index) {
            (session.older, session.newer) = (newest, NONE);
        }
        match self.get_mut(newest) {
            Some(session) => session.newer = index,
            None => self.least_recent = index,
        }
        self.most_recent = index;
    }

    fn unlink(&mut self, index: u32) {
        let Some(session) = self.get_mut(index) else { return };
        let (older, newer) = (session.older, session.newer);
        match self.get_mut(older) {
            Some(session) => session.newer = newer,
            None => self.least_recent = newer,
        }
        match self.get_mut(newer) {
            Some(session) => session.older = older,
            None => self.most_recent = older,
        }
    }
}
