//! In place of `tls` where that feature is not enabled. A URI that needs it is refused before.

use super::config::StreamConfig;
use std::io;
use tokio::net::TcpStream;

pub(crate) async fn connect(_: &StreamConfig, _: &str, _: TcpStream) -> io::Result<TcpStream> {
    Err(io::ErrorKind::Unsupported.into())
}
