//! A client's sessions: one with each server, opened when it is first needed and again when it is
//! lost, resumed where the server allows it.

use super::Sessions;
use super::address;
use ebbtide_core::endpoint::{Flight, Sent};
use ebbtide_dtls::{Credentials, Failure, SavedSession, SessionId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::task::{Context, Poll, Waker};

/// Messages that wait for a session, of each server. Congestion control lets few leave before the
/// first answer.
const MAX_WAITING: usize = 16;

/// All servers of a client's socket.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) credentials: Option<Credentials>,
    links: Vec<Link>,
    by_remote: BTreeMap<SocketAddr, usize>,
    by_session: BTreeMap<SessionId, usize>,
}

/// One server.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) remote: SocketAddr,
    pub(super) session: Option<SessionId>,
    /// Whether its session is wanted, but not begun.
    pub(super) wanted: bool,
    pub(super) established: bool,
    /// Why its last handshake failed.
    pub(super) failed: Option<Failure>,
    pub(super) saved: Option<SavedSession>,
    /// The flight of its handshake that waits for an answer.
    pub(super) flight: Option<Flight>,
    waiting: Vec<(Vec<u8>, Sent)>,
    pub(super) wakers: Vec<Waker>,
}

impl Links {
    pub(super) const fn new(credentials: Option<Credentials>) -> Self {
        Self {
            credentials,
            links: Vec::new(),
            by_remote: BTreeMap::new(),
            by_session: BTreeMap::new(),
        }
    }

    pub(super) fn number(&self, session: SessionId) -> Option<u64> {
        self.by_session.get(&session).map(|index| *index as u64)
    }

    pub(super) fn session(&self, number: u64) -> Option<SessionId> {
        self.links.get(usize::try_from(number).ok()?)?.session
    }

    /// The link of a session, with its stand-in's number.
    pub(super) fn of(&mut self, session: SessionId) -> Option<(u64, &mut Link)> {
        let index = *self.by_session.get(&session)?;
        Some((index as u64, self.links.get_mut(index)?))
    }

    fn at(&mut self, stand_in: SocketAddr) -> Option<&mut Link> {
        self.links.get_mut(usize::try_from(address::number(stand_in)?).ok()?)
    }

    /// A message waits for its session, which is begun if there is none.
    pub(super) fn keep(
        &mut self,
        to: SocketAddr,
        message: &[u8],
        what: Sent,
        unsent: &mut Vec<Sent>,
    ) {
        let Some(link) = self.at(to).filter(|link| link.waiting.len() < MAX_WAITING) else {
            unsent.push(what);
            return;
        };
        link.wanted |= link.session.is_none();
        // A repetition of what waits already would only repeat it.
        if link.waiting.iter().all(|(other, _)| other != message) {
            link.waiting.push((message.to_vec(), what));
        }
    }

    /// The links whose session is wanted.
    pub(super) fn next_wanted(&mut self) -> Option<(u64, &mut Link)> {
        let index = self.links.iter().position(|link| link.wanted)?;
        Some((index as u64, self.links.get_mut(index)?))
    }

    pub(super) fn begun(&mut self, number: u64, session: SessionId) {
        let index = number as usize;
        if let Some(link) = self.links.get_mut(index) {
            link.session = Some(session);
            self.by_session.insert(session, index);
        }
    }

    pub(super) fn ended(&mut self, session: SessionId) {
        if let Some(index) = self.by_session.remove(&session)
            && let Some(link) = self.links.get_mut(index)
        {
            link.session = None;
            link.established = false;
        }
    }
}

impl Link {
    fn new(remote: SocketAddr) -> Self {
        Self {
            remote,
            session: None,
            wanted: false,
            established: false,
            failed: None,
            saved: None,
            flight: None,
            waiting: Vec::new(),
            wakers: Vec::new(),
        }
    }

    pub(super) fn take_waiting(&mut self) -> Vec<(Vec<u8>, Sent)> {
        core::mem::take(&mut self.waiting)
    }
}

impl Sessions {
    /// The stand-in for a server, with which a session is begun if there is none.
    pub(crate) fn want(&mut self, remote: SocketAddr) -> Option<SocketAddr> {
        let links = self.links.as_mut()?;
        let index = *links.by_remote.entry(remote).or_insert_with(|| {
            links.links.push(Link::new(remote));
            links.links.len() - 1
        });
        let link = links.links.get_mut(index)?;
        link.wanted |= link.session.is_none();
        link.failed = None;
        Some(address::stand_in(self.is_ipv4, index as u64))
    }

    /// The secrets that resume the session with a server later.
    pub(crate) fn saved(&self, remote: SocketAddr) -> Option<SavedSession> {
        let links = self.links.as_ref()?;
        links.links.get(*links.by_remote.get(&remote)?)?.saved.clone()
    }

    /// Whether the session that [`Self::want`] began is there.
    pub(crate) fn poll_established(
        &mut self,
        stand_in: SocketAddr,
        cx: &Context<'_>,
    ) -> Poll<Result<(), Failure>> {
        let link = self.links.as_mut().and_then(|links| links.at(stand_in));
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

    /// A server does not answer: it may have lost its session, by a restart for example. The next
    /// message begins a new one.
    pub(crate) fn suspect(&mut self, stand_in: SocketAddr) {
        let now = self.clock.now();
        let Some(links) = &mut self.links else { return };
        let session =
            links.at(stand_in).filter(|link| link.established).and_then(|link| link.session);
        if let Some(session) = session {
            self.endpoint.close(now, session);
            links.ended(session);
        }
    }
}
