//! Session resumption (RFC 5246 section 7.3): with the master secret of an earlier handshake, a
//! new one saves a round trip and the look-up of the identity.

use crate::certificate::Identity;
use crate::keys::MasterSecret;
use crate::suite::CipherSuite;
use crate::wire::{Reader, put_u16, put_vector8, put_vector16};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;
use ebbtide_core::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The session IDs that this server issues.
pub(crate) type ServerSessionId = [u8; 16];

/// The secrets with which a client resumes a session. They are as confidential as the key.
#[derive(Clone)]
pub struct SavedSession {
    pub(crate) id: Vec<u8>,
    pub(crate) suite: CipherSuite,
    pub(crate) master: MasterSecret,
}

impl SavedSession {
    const FORMAT: u8 = 1;

    /// The session as bytes, for storage.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(96));
        bytes.push(Self::FORMAT);
        put_u16(&mut bytes, self.suite.number());
        put_vector8(&mut bytes, &self.id);
        put_vector16(&mut bytes, self.master.as_bytes());
        bytes
    }

    /// The inverse of [`Self::to_bytes`]; `None` for invalid bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let format = reader.u8()?;
        let suite = CipherSuite::from_number(reader.u16()?)?;
        let id = reader.vector8()?.to_vec();
        let master = MasterSecret::from_bytes(reader.vector16()?.try_into().ok()?);
        let valid = format == Self::FORMAT && (1..=32).contains(&id.len()) && reader.is_empty();
        valid.then_some(Self { id, suite, master })
    }
}

impl fmt::Debug for SavedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedSession").field("suite", &self.suite).finish_non_exhaustive()
    }
}

/// A session that can be resumed at a server.
#[derive(Clone, Debug)]
pub(crate) struct Resumable {
    pub(crate) suite: CipherSuite,
    pub(crate) master: MasterSecret,
    pub(crate) identity: Identity,
    pub(crate) made: Instant,
}

/// A server's resumable sessions, by their ID. Only those with an extended master secret are kept,
/// because others must not be resumed (RFC 7627 section 5.3).
#[derive(Debug)]
pub(crate) struct SessionCache {
    by_id: BTreeMap<ServerSessionId, Resumable>,
    /// The IDs in the order of creation. Removed sessions stay here until their turn comes.
    order: VecDeque<ServerSessionId>,
    max: usize,
    lifetime: Duration,
}

impl SessionCache {
    pub(crate) const fn new(max: usize, lifetime: Duration) -> Self {
        Self { by_id: BTreeMap::new(), order: VecDeque::new(), max, lifetime }
    }

    /// Whether sessions can be resumed at all.
    pub(crate) const fn is_enabled(&self) -> bool {
        self.max > 0
    }

    pub(crate) fn get(&self, now: Instant, id: &[u8]) -> Option<&Resumable> {
        let found = self.by_id.get(<&ServerSessionId>::try_from(id).ok()?)?;
        (now - found.made <= self.lifetime).then_some(found)
    }

    pub(crate) fn insert(&mut self, id: ServerSessionId, session: Resumable) {
        while self.order.len() >= self.max.max(1) {
            if let Some(oldest) = self.order.pop_front() {
                self.by_id.remove(&oldest);
            }
        }
        self.order.push_back(id);
        self.by_id.insert(id, session);
    }

    pub(crate) fn remove(&mut self, id: &ServerSessionId) {
        self.by_id.remove(id);
    }

    /// Removes the sessions with peers that are not kept.
    pub(crate) fn retain(&mut self, keeps: &mut dyn FnMut(&Identity) -> bool) {
        self.by_id.retain(|_, session| keeps(&session.identity));
    }
}
