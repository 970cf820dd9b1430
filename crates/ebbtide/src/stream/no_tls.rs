//! In place of `tls` where that feature is not enabled. A URI that needs it is refused before.

use super::socket::StreamSocket;
use crate::net::peer::PeerInfo;
use std::io;
use std::net::SocketAddr;

/// It has no settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientTls {}

/// There is none.
pub(crate) const fn has_protocol(_: &StreamSocket) -> bool {
    true
}

/// There is none.
pub(crate) const fn server(_: &ClientTls, remote: SocketAddr, _: &StreamSocket) -> PeerInfo {
    PeerInfo::at(remote)
}

pub(crate) async fn connect(_: &ClientTls, _: &str, _: StreamSocket) -> io::Result<StreamSocket> {
    Err(io::ErrorKind::Unsupported.into())
}
