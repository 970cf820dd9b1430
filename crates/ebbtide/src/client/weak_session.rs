//! A session without a hold on its socket or connection, whose owner decides how long they live.

use super::Requests;
use super::session::{Session, SessionOwner, SessionTransport};
use crate::error::{Cause, Error};
use crate::net::peer::PeerInfo;
use crate::net::shared::Shared;
use crate::oscore::ClientContext;
use crate::stream::Link;
use ebbtide_core::PeerId;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};

/// A socket or a connection without a hold on it.
#[derive(Clone, Debug)]
pub(crate) enum WeakTransport {
    Datagrams(Weak<Shared>),
    Connection(Weak<Link>),
}

/// A socket or a connection by which a peer can be reached again.
pub(crate) trait Reachable: Send + Sync {
    fn downgrade(&self) -> WeakTransport;
}

impl Reachable for Arc<Shared> {
    fn downgrade(&self) -> WeakTransport {
        WeakTransport::Datagrams(Self::downgrade(self))
    }
}

impl Reachable for Arc<Link> {
    fn downgrade(&self) -> WeakTransport {
        WeakTransport::Connection(Self::downgrade(self))
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct WeakSession {
    pub(crate) requests: Arc<Requests>,
    /// The peer as the endpoint knows it.
    pub(crate) id: PeerId,
    /// The peer's address as it was known last.
    pub(crate) address: SocketAddr,
    /// Our address to which the peer has sent, if that matters.
    pub(crate) local: Option<IpAddr>,
    pub(crate) over: WeakTransport,
    /// The context that protected the request of the peer, and protects those to it.
    pub(crate) security: Option<ClientContext>,
}

impl WeakSession {
    /// The session, as long as it lasts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Gone`](crate::ErrorKind::Gone) if it has ended,
    /// [`ErrorKind::Closed`](crate::ErrorKind::Closed) if its socket is closed.
    pub(super) fn upgrade(&self) -> Result<Session, Error> {
        let gone = Error::for_peer(self.address, Cause::Gone);
        let (over, address) = match &self.over {
            WeakTransport::Datagrams(shared) => {
                let shared = shared.upgrade().ok_or_else(|| Error::from(Cause::Closed))?;
                let address = {
                    let state = shared.lock();
                    if state.closed {
                        return Err(Cause::Closed.into());
                    }
                    match &state.dtls {
                        None => self.address,
                        Some(sessions) => sessions.address(self.id).ok_or(gone)?,
                    }
                };
                (SessionTransport::Datagrams(shared), address)
            }
            WeakTransport::Connection(link) => {
                let open = link.upgrade().filter(|link| link.is_open());
                (SessionTransport::Connection(open.ok_or(gone)?), self.address)
            }
        };
        let (id, local) = (self.id, self.local);
        let owner = SessionOwner::Peer(self.requests.clone());
        let security = self.security.clone();
        Ok(Session { owner, id, address, local, over, security })
    }

    /// Whether it is a connection.
    pub(super) const fn is_connection(&self) -> bool {
        matches!(self.over, WeakTransport::Connection(_))
    }

    /// Whether it is a DTLS session.
    pub(super) fn is_secured(&self) -> bool {
        matches!(self.id, PeerId::Session(_))
    }

    /// The peer's address and identity, as long as the session lasts.
    pub(super) fn info(&self) -> Option<PeerInfo> {
        let info = self.transport_info()?;
        Some(match &self.security {
            None => info,
            Some(security) => PeerInfo { identity: Some(security.identity().clone()), ..info },
        })
    }

    fn transport_info(&self) -> Option<PeerInfo> {
        let unproved = PeerInfo::at;
        match &self.over {
            WeakTransport::Datagrams(shared) => {
                let shared = shared.upgrade()?;
                let state = shared.lock();
                match &state.dtls {
                    _ if state.closed => None,
                    None => Some(unproved(self.address)),
                    Some(sessions) => sessions.peer(self.id),
                }
            }
            WeakTransport::Connection(link) => {
                let link = link.upgrade().filter(|link| link.is_open())?;
                Some(link.peer.clone().unwrap_or_else(|| unproved(link.remote)))
            }
        }
    }
}
