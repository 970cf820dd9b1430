//! Address and identity of the peer behind an address that the endpoint knows.

use std::net::SocketAddr;
use std::sync::Arc;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct PeerInfo {
    pub(crate) address: SocketAddr,
    /// The identity that it has proved.
    pub(crate) identity: Option<Arc<[u8]>>,
    /// The X.509 certificate that it has shown, DER.
    pub(crate) certificate: Option<Arc<[u8]>>,
}
