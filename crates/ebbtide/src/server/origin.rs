//! The sender of a request, and the way back to it.

use crate::client::{Peer, Reachable, Requests, WeakSession, WeakTransport};
use crate::config::AllSettings;
use crate::net::peer::PeerInfo;
use crate::oscore::ClientContext;
use ebbtide_core::PeerId;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};

/// See the [module](self).
#[derive(Copy, Clone)]
pub(crate) struct Origin<'a> {
    /// The sender as the endpoint knows it.
    pub(crate) id: PeerId,
    pub(crate) info: Option<&'a PeerInfo>,
    /// Our address to which the request was sent, if that matters.
    pub(crate) local: Option<IpAddr>,
    /// Absent where there is no network.
    pub(crate) back: Option<WayBack<'a>>,
    pub(crate) occasion: Occasion,
}

/// Why a request is handled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// It has arrived.
    Arrival,
    /// Its sender observes what has changed.
    Notification {
        /// Whether the observer has acknowledged an earlier notification.
        is_proven: bool,
    },
}

/// The addresses of its clients that a server has verified.
pub(crate) trait AddressTrust: Send + Sync {
    /// Whether the address of a client is verified, or need not be.
    fn trusts(&self, client: PeerId) -> bool;
}

/// By what the sender can be asked.
#[derive(Copy, Clone)]
pub(crate) struct WayBack<'a> {
    pub(crate) requests: &'a Arc<Requests>,
    pub(crate) over: &'a dyn Reachable,
    /// The context that protected the request.
    pub(crate) security: Option<&'a ClientContext>,
    pub(crate) trust: &'a dyn AddressTrust,
}

impl Origin<'_> {
    /// A sender without a network.
    pub(crate) const fn unreachable(remote: SocketAddr) -> Self {
        let (id, occasion) = (PeerId::Address(remote), Occasion::Arrival);
        Self { id, info: None, local: None, back: None, occasion }
    }

    /// The sender's address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.info.map_or_else(|| PeerInfo::unproved(self.id).address, |info| info.address)
    }

    /// Whether that address is verified, or need not be.
    pub(crate) fn is_verified(&self) -> bool {
        self.occasion == Occasion::Notification { is_proven: true }
            || self.back.is_none_or(|back| back.trust.trusts(self.id))
    }

    /// Whether the answer is a notification.
    pub(crate) fn is_notified(&self) -> bool {
        matches!(self.occasion, Occasion::Notification { .. })
    }

    /// The sender's address and identity, with storage of their own.
    pub(crate) fn to_info(self) -> PeerInfo {
        self.info.cloned().unwrap_or_else(|| PeerInfo::unproved(self.id))
    }

    /// The sender as one that can be asked.
    pub(crate) fn peer(&self) -> Peer {
        let (requests, over) = match &self.back {
            Some(back) => (back.requests.clone(), back.over.downgrade()),
            None => (Requests::new(AllSettings::default()), WeakTransport::Datagrams(Weak::new())),
        };
        let &Self { id, local, .. } = self;
        let security = self.back.and_then(|back| back.security.cloned());
        Peer::new(WeakSession { requests, id, address: self.address(), local, over, security })
    }
}
