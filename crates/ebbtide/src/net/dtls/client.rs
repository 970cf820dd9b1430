//! A client's sessions. There is one with each server, opened when it is first needed and again
//! when it is lost, and resumed if the server allows it.

use super::Sessions;
use super::address;
use super::config::Certificates;
use ebbtide_core::endpoint::{Flight, Sent};
use ebbtide_dtls::{
    CertificateCredentials, ClientCredentials, Credentials, Failure, SavedSession, SessionId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The maximum number of messages that wait for a server's session. Congestion control lets few
/// leave before the first answer.
const MAX_WAITING: usize = 16;

/// All servers of a client's socket.
#[derive(Debug)]
pub(super) struct Links {
    credentials: Option<Credentials>,
    certificates: Option<Certificates>,
    links: Vec<Link>,
    /// By address. With certificates there are several at an address that has several names: a certificate is valid
    /// for names.
    by_remote: BTreeMap<SocketAddr, Vec<usize>>,
    /// The links whose session is needed but was not begun yet.
    wanted: BTreeSet<usize>,
    by_session: BTreeMap<SessionId, usize>,
}

/// One server.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) remote: SocketAddr,
    /// The server's name or address.
    name: Arc<str>,
    pub(super) session: Option<SessionId>,
    pub(super) established: bool,
    /// The reason why its last handshake failed.
    pub(super) failed: Option<Failure>,
    pub(super) saved: Option<SavedSession>,
    /// The handshake flight that waits for an answer.
    pub(super) flight: Option<Flight>,
    waiting: Vec<(Vec<u8>, Sent)>,
    pub(super) wakers: Vec<Waker>,
}

impl Links {
    pub(super) const fn new(
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

    pub(super) fn number(&self, session: SessionId) -> Option<u64> {
        self.by_session.get(&session).map(|index| *index as u64)
    }

    /// The server behind a stand-in's number.
    pub(super) fn remote(&self, number: u64) -> Option<SocketAddr> {
        Some(self.links.get(usize::try_from(number).ok()?)?.remote)
    }

    pub(super) fn session(&self, number: u64) -> Option<SessionId> {
        self.links.get(usize::try_from(number).ok()?)?.session
    }

    /// The link of a session, with its stand-in's number.
    pub(super) fn of(&mut self, session: SessionId) -> Option<(u64, &mut Link)> {
        let index = *self.by_session.get(&session)?;
        Some((index as u64, self.links.get_mut(index)?))
    }

    fn index(stand_in: SocketAddr) -> Option<usize> {
        usize::try_from(address::number(stand_in)?).ok()
    }

    fn at(&mut self, stand_in: SocketAddr) -> Option<&mut Link> {
        self.links.get_mut(Self::index(stand_in)?)
    }

    /// The links with an address, each with its index.
    fn with(&self, remote: SocketAddr) -> impl Iterator<Item = (usize, &Link)> {
        let indices = self.by_remote.get(&remote).map(Vec::as_slice).unwrap_or_default();
        indices.iter().filter_map(|index| Some((*index, self.links.get(*index)?)))
    }

    /// The link with a server of this name, and its index. Keys do not depend on the name.
    fn find(&self, remote: SocketAddr, name: &str) -> Option<(usize, &Link)> {
        let by_key = self.credentials.is_some();
        self.with(remote).find(|(_, link)| by_key || *link.name == *name)
    }

    /// Keeps a message until its session is established; begins a session if there is none.
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
    pub(super) fn next_wanted(&mut self) -> Option<(u64, &mut Link, Option<ClientCredentials>)> {
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
    fn new(remote: SocketAddr, name: Arc<str>) -> Self {
        Self {
            remote,
            name,
            session: None,
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
    /// The stand-in for a server, of which `name` is the name or the address in a URI. Begins a session
    /// if there is none.
    pub(crate) fn want(&mut self, remote: SocketAddr, name: &str) -> Option<SocketAddr> {
        let links = self.links.as_mut()?;
        let index = links.find(remote, name).map_or(links.links.len(), |(index, _)| index);
        if index == links.links.len() {
            links.links.push(Link::new(remote, Arc::from(name)));
            links.by_remote.entry(remote).or_default().push(index);
        }
        let link = links.links.get_mut(index)?;
        link.failed = None;
        if link.session.is_none() {
            links.wanted.insert(index);
        }
        Some(self.place.stand_in(index as u64))
    }

    /// The stand-in for a server, if there is an established session with it.
    pub(crate) fn established(&self, remote: SocketAddr, name: &str) -> Option<SocketAddr> {
        let (index, link) = self.links.as_ref()?.find(remote, name)?;
        link.established.then(|| self.place.stand_in(index as u64))
    }

    /// The secrets with which the session with a server can be resumed later.
    pub(crate) fn saved(&self, remote: SocketAddr) -> Option<SavedSession> {
        let links = self.links.as_ref()?;
        links.with(remote).find_map(|(_, link)| link.saved.clone())
    }

    /// The stand-ins for the sessions with a server.
    pub(crate) fn stand_ins(&self, remote: SocketAddr) -> Vec<SocketAddr> {
        let Some(links) = &self.links else { return Vec::new() };
        let found = links.with(remote);
        found.map(|(index, _)| self.place.stand_in(index as u64)).collect()
    }

    /// Whether the session that [`Self::want`] began is established.
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

    /// The tasks that wait for handshakes, because the socket is closed.
    pub(crate) fn wake_all(&mut self) -> Vec<Waker> {
        let links = self.links.iter_mut().flat_map(|links| &mut links.links);
        links.flat_map(|link| core::mem::take(&mut link.wakers)).collect()
    }

    /// Records that a server does not answer. It may have lost its session, for example by a
    /// restart, so the next message begins a new one.
    pub(crate) fn suspect(&mut self, stand_in: SocketAddr) {
        let now = self.now;
        let Some(links) = &mut self.links else { return };
        let session =
            links.at(stand_in).filter(|link| link.established).and_then(|link| link.session);
        if let Some(session) = session {
            self.endpoint.close(now, session);
            links.ended(session);
        }
    }
}
