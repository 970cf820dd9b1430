//! Address and identity of a peer.

use crate::proved_identity::ProvedIdentity;
use ebbtide_core::PeerId;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct PeerInfo {
    pub(crate) address: SocketAddr,
    /// The identity that it has proved.
    pub(crate) identity: Option<ProvedIdentity>,
    /// The X.509 certificate that it has shown, DER.
    pub(crate) certificate: Option<Arc<[u8]>>,
    /// The raw public key that it has shown instead, as SubjectPublicKeyInfo in DER.
    pub(crate) raw_key: Option<Arc<[u8]>>,
}

impl PeerInfo {
    /// See [`Self::at`]. The address of a session that has just ended is unknown.
    pub(crate) fn unproved(peer: PeerId) -> Self {
        Self::at(peer.address().unwrap_or(UNKNOWN))
    }

    /// A peer that has proved no identity.
    pub(crate) const fn at(address: SocketAddr) -> Self {
        Self { address, identity: None, certificate: None, raw_key: None }
    }
}
