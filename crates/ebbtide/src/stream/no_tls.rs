//! In place of `tls` where that feature is not enabled. A URI that needs it is refused before.

use super::config::StreamConfig;
use std::io;
use tokio::net::TcpStream;

/// There is none.
pub(crate) const fn has_protocol(_: &TcpStream) -> bool {
    true
}

pub(crate) async fn connect(_: &StreamConfig, _: &str, _: TcpStream) -> io::Result<TcpStream> {
    Err(io::ErrorKind::Unsupported.into())
}
