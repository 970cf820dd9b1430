//! In place of `tls` where that feature is not enabled. A URI that needs it is refused before.

use crate::net::peer::PeerInfo;
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// It has no settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientTls {}

/// There is none.
pub(crate) const fn has_protocol(_: &TcpStream) -> bool {
    true
}

/// There is none.
pub(crate) const fn server(_: &ClientTls, remote: SocketAddr, _: &TcpStream) -> PeerInfo {
    PeerInfo { address: remote, identity: None, certificate: None }
}

pub(crate) async fn connect(_: &ClientTls, _: &str, _: TcpStream) -> io::Result<TcpStream> {
    Err(io::ErrorKind::Unsupported.into())
}
