//! A client's sessions. There is one with each server, opened when it is first needed and again
//! when it is lost, and resumed if the server allows it.

use super::Sessions;
use super::config::Certificates;
use ebbtide_core::endpoint::{Flight, Sent};
use ebbtide_core::time::Instant;
use ebbtide_core::{PeerId, SessionKey};
use ebbtide_dtls::{
    CertificateCredentials, ClientCredentials, Credentials, Failure, SavedSession, SessionId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The maximum number of messages that wait for a server's session. Congestion control lets few
/// leave before the first answer.
const MAX_WAITING: usize = 16;
/// How often a client believes that its server has lost the session.
const DOUBTS: Duration = Duration::from_secs(10);
/// How often in a row a handshake begins again because its server says so.
const MAX_RESTARTS: u8 = 3;

/// All servers of a client's socket.
#[derive(Debug)]
pub(in crate::net) struct ServerLinks {
    credentials: Option<Credentials>,
    certificates: Option<Certificates>,
    links: Vec<ServerLink>,
    /// By address. With certificates there are several at an address that has several names: a certificate is valid
    /// for names.
    by_remote: BTreeMap<SocketAddr, Vec<usize>>,
    /// The links whose session is needed but was not begun yet.
    wanted: BTreeSet<usize>,
    by_session: BTreeMap<SessionId, usize>,
}

/// One server.
#[derive(Debug)]
pub(in crate::net) struct ServerLink {
    pub(in crate::net) remote: SocketAddr,
    /// The server's name or address.
    name: Arc<str>,
    pub(in crate::net) session: Option<SessionId>,
    pub(in crate::net) established: bool,
    /// Whether there was a session before.
    pub(in crate::net) was_established: bool,
    /// How often another session took the place of one that was established.
    pub(in crate::net) replaced: u64,
    /// When the server last said that it does not know the session.
    doubted: Option<Instant>,
    /// How often a handshake has begun again since the last one that was complete.
    pub(in crate::net) restarts: u8,
    /// The observations that want to know when the session is replaced.
    pub(in crate::net) watchers: Vec<Waker>,
    /// The reason why its last handshake failed.
    pub(in crate::net) failed: Option<Failure>,
    pub(in crate::net) saved: Option<SavedSession>,
    /// The handshake flight that waits for an answer.
    pub(in crate::net) flight: Option<Flight>,
    waiting: Vec<(Vec<u8>, Sent)>,
    pub(in crate::net) wakers: Vec<Waker>,
}

impl ServerLinks {
    pub(in crate::net) const fn new(
        credentials: Option<Credentials>,
        certificates: Option<Certificates>,
    ) -> Self {
        Self {
            credentials,
            certificates,
            links: Vec::new(),
            by_remote: BTreeMap::new(),
            wanted: BTreeSet::new(),
            by_session: BTreeMap::new(),
        }
    }

    pub(in crate::net) fn number(&self, session: SessionId) -> Option<u64> {
        self.by_session.get(&session).map(|index| *index as u64)
    }

    /// The server of the link with this number.
    pub(in crate::net) fn remote(&self, number: u64) -> Option<SocketAddr> {
        Some(self.links.get(usize::try_from(number).ok()?)?.remote)
    }

    pub(in crate::net) fn session(&self, number: u64) -> Option<SessionId> {
        self.links.get(usize::try_from(number).ok()?)?.session
    }

    /// The link of a session, with its number.
    pub(in crate::net) fn of(&mut self, session: SessionId) -> Option<(u64, &mut ServerLink)> {
        let index = *self.by_session.get(&session)?;
        Some((index as u64, self.links.get_mut(index)?))
    }

    fn index(key: SessionKey) -> Option<usize> {
        usize::try_from(key.number()).ok()
    }

    fn link_mut(&mut self, key: SessionKey) -> Option<&mut ServerLink> {
        self.links.get_mut(Self::index(key)?)
    }

    /// The links with an address, each with its index.
    fn with(&self, remote: SocketAddr) -> impl Iterator<Item = (usize, &ServerLink)> {
        let indices = self.by_remote.get(&remote).map(Vec::as_slice).unwrap_or_default();
        indices.iter().filter_map(|index| Some((*index, self.links.get(*index)?)))
    }

    /// The link with a server of this name, and its index. Keys do not depend on the name.
    fn find(&self, remote: SocketAddr, name: &str) -> Option<(usize, &ServerLink)> {
        let by_key = self.credentials.is_some();
        self.with(remote).find(|(_, link)| by_key || *link.name == *name)
    }

    /// Keeps a message until its session is established; begins a session if there is none.
    pub(in crate::net) fn keep(
        &mut self,
        to: SessionKey,
        message: &[u8],
        what: Sent,
        unsent: &mut Vec<Sent>,
    ) {
        let Some(link) = self.link_mut(to).filter(|link| link.waiting.len() < MAX_WAITING) else {
            unsent.push(what);
            return;
        };
        // A retransmission of a waiting message would only duplicate it.
        if link.waiting.iter().all(|(other, _)| other != message) {
            link.waiting.push((message.to_vec(), what));
        }
        if link.session.is_none() {
            self.wanted.extend(Self::index(to));
        }
    }

    /// Whether the server at this address is in a handshake for another of its names. Records name neither
    /// session nor server, so a second handshake would end the first one.
    fn is_busy(&self, remote: SocketAddr) -> bool {
        self.with(remote).any(|(_, link)| link.session.is_some() && !link.established)
    }

    /// The links whose session is needed, with the credentials for it.
    pub(in crate::net) fn next_wanted(
        &mut self,
    ) -> Option<(u64, &mut ServerLink, Option<ClientCredentials>)> {
        let is_next =
            |index: &&usize| self.links.get(**index).is_some_and(|link| !self.is_busy(link.remote));
        let index = *self.wanted.iter().find(is_next)?;
        self.wanted.remove(&index);
        let link = self.links.get_mut(index)?;
        let saved = link.saved.take();
        let credentials = match (&self.credentials, &self.certificates) {
            (Some(credentials), _) => {
                let saved = saved.or_else(|| credentials.saved.clone());
                Some(Credentials { saved, ..credentials.clone() }.into())
            }
            (None, Some(Certificates { verifier, own, saved: given, .. })) => {
                let saved = saved.or_else(|| given.clone());
                let (verifier, own) = (Arc::clone(verifier), own.clone());
                let server_name = Some(Arc::clone(&link.name));
                Some(CertificateCredentials { verifier, server_name, own, saved }.into())
            }
            (None, None) => None,
        };
        Some((index as u64, link, credentials))
    }

    pub(in crate::net) fn begun(&mut self, number: u64, session: SessionId) {
        let index = number as usize;
        if let Some(link) = self.links.get_mut(index) {
            link.session = Some(session);
            self.by_session.insert(session, index);
        }
    }

    pub(in crate::net) fn ended(&mut self, session: SessionId) {
        if let Some(index) = self.by_session.remove(&session)
            && let Some(link) = self.links.get_mut(index)
            // Another one may have taken its place.
            && link.session == Some(session)
        {
            link.session = None;
            link.established = false;
        }
    }

    /// A session that a fatal alert has ended must not be resumed (RFC 5246 section 7.2.2), and one
    /// whose resumption has failed is not offered again.
    pub(in crate::net) fn forbid_resumption(&mut self, session: SessionId) {
        if let Some((_, link)) = self.of(session)
            && link.session == Some(session)
        {
            link.saved = None;
        }
        if let Some(credentials) = &mut self.credentials {
            credentials.saved = None;
        }
        if let Some(certificates) = &mut self.certificates {
            certificates.saved = None;
        }
    }

    /// Begins another session if an observation needs it.
    pub(in crate::net) fn want_if_watched(&mut self, number: u64) {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        if self.links.get(index).is_some_and(|link| !link.watchers.is_empty()) {
            self.wanted.insert(index);
        }
    }
}

impl ServerLink {
    fn new(remote: SocketAddr, name: Arc<str>) -> Self {
        Self {
            remote,
            name,
            session: None,
            established: false,
            was_established: false,
            replaced: 0,
            doubted: None,
            restarts: 0,
            watchers: Vec::new(),
            failed: None,
            saved: None,
            flight: None,
            waiting: Vec::new(),
            wakers: Vec::new(),
        }
    }

    pub(in crate::net) fn take_waiting(&mut self) -> Vec<(Vec<u8>, Sent)> {
        core::mem::take(&mut self.waiting)
    }
}

/// The server of a client's link.
fn link_peer(socket: u32, index: usize) -> PeerId {
    PeerId::Session(SessionKey::new(socket, index as u64))
}

impl Sessions {
    /// A server, of which `name` is the name or the address in a URI. Begins a session if there is none.
    pub(crate) fn want(&mut self, remote: SocketAddr, name: &str) -> Option<PeerId> {
        let links = self.links.as_mut()?;
        let index = links.find(remote, name).map_or(links.links.len(), |(index, _)| index);
        if index == links.links.len() {
            links.links.push(ServerLink::new(remote, Arc::from(name)));
            links.by_remote.entry(remote).or_default().push(index);
        }
        let link = links.links.get_mut(index)?;
        link.failed = None;
        if link.session.is_none() {
            links.wanted.insert(index);
        }
        Some(link_peer(self.socket, index))
    }

    /// A server, if there is an established session with it.
    pub(crate) fn established(&self, remote: SocketAddr, name: &str) -> Option<PeerId> {
        let (index, link) = self.links.as_ref()?.find(remote, name)?;
        link.established.then(|| link_peer(self.socket, index))
    }

    /// The secrets with which the session with a server can be resumed later.
    pub(crate) fn saved(&self, remote: SocketAddr) -> Option<SavedSession> {
        let links = self.links.as_ref()?;
        links.with(remote).find_map(|(_, link)| link.saved.clone())
    }

    /// The servers at an address: several if it has several names.
    pub(crate) fn peers_at(&self, remote: SocketAddr) -> Vec<PeerId> {
        let Some(links) = &self.links else { return Vec::new() };
        links.with(remote).map(|(index, _)| link_peer(self.socket, index)).collect()
    }

    /// Whether the session that [`Self::want`] began is established.
    pub(crate) fn poll_established(
        &mut self,
        peer: PeerId,
        cx: &Context<'_>,
    ) -> Poll<Result<(), Failure>> {
        let PeerId::Session(key) = peer else { return Poll::Ready(Err(Failure::NoAnswer)) };
        let link = self.links.as_mut().and_then(|links| links.link_mut(key));
        let Some(link) = link else { return Poll::Ready(Err(Failure::NoAnswer)) };
        if link.established {
            return Poll::Ready(Ok(()));
        }
        if let Some(reason) = link.failed {
            return Poll::Ready(Err(reason));
        }
        if link.wakers.iter().all(|waker| !waker.will_wake(cx.waker())) {
            link.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The tasks that wait for handshakes, because the socket is closed.
    pub(crate) fn wake_all(&mut self) -> Vec<Waker> {
        let links = self.links.iter_mut().flat_map(|links| &mut links.links);
        links.flat_map(|link| core::mem::take(&mut link.wakers)).collect()
    }

    /// The server of a session, or of a handshake, says that it does not know it. A stranger who forges its address can
    /// say so as well: what the server sends over that session is still received until another one
    /// is established, and that is tried once in a while.
    pub(crate) fn doubt(&mut self, session: SessionId) {
        let now = self.now;
        let Some((number, link)) = self.links.as_mut().and_then(|links| links.of(session)) else {
            return;
        };
        let is_recent = |at: Instant| now.saturating_since(at) < DOUBTS;
        if link.session != Some(session) || link.doubted.is_some_and(is_recent) {
            return;
        }
        link.doubted = Some(now);
        if !link.established {
            // After some, the timers of the handshake end it: an alert that anyone can send must not keep it for ever.
            if link.restarts == MAX_RESTARTS {
                return;
            }
            link.restarts += 1;
        }
        // A server that has forgotten its sessions cannot resume them.
        link.saved = None;
        (link.session, link.established) = (None, false);
        if let (Some(links), Ok(index)) = (&mut self.links, usize::try_from(number)) {
            links.wanted.insert(index);
        }
    }

    /// How often the session with this peer was replaced by another one. The waker is woken when that changes.
    pub(crate) fn replaced(&mut self, peer: PeerId, waker: &Waker) -> u64 {
        let PeerId::Session(key) = peer else { return 0 };
        let Some(link) = self.links.as_mut().and_then(|links| links.link_mut(key)) else {
            return 0;
        };
        if link.watchers.iter().all(|known| !known.will_wake(waker)) {
            link.watchers.push(waker.clone());
        }
        link.replaced
    }

    /// Records that a server does not answer. It may have lost its session, for example by a
    /// restart, so the next message begins a new one.
    pub(crate) fn suspect(&mut self, peer: PeerId) {
        let now = self.now;
        let (Some(links), PeerId::Session(key)) = (&mut self.links, peer) else { return };
        let session =
            links.link_mut(key).filter(|link| link.established).and_then(|link| link.session);
        if let Some(session) = session {
            self.endpoint.close(now, session);
            links.ended(session);
        }
    }
}
