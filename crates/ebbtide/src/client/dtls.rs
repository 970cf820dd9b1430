//! Sessions for `coaps`.

use super::Inner;
use crate::error::Error;
use crate::net::dtls::address;
use crate::net::shared::Shared;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

/// The socket and the stand-in for the server that a URI calls `name`, once there is a session with it. Dropping the future does
/// not end the handshake.
pub(super) async fn session(
    inner: &Inner,
    remote: SocketAddr,
    name: &str,
) -> Result<(Arc<Shared>, SocketAddr), Error> {
    let dtls = &inner.config.dtls;
    if dtls.credentials.is_none() && dtls.certificates.is_none() {
        return Err(Error::NoCredentials { remote });
    }
    let shared = inner.socket(address::any(remote.is_ipv4()))?;
    let wanted =
        shared.with(|state, _| state.dtls.as_mut().and_then(|dtls| dtls.want(remote, name)));
    let stand_in = wanted.ok_or(Error::Closed)?;
    let established = poll_fn(|cx| match &mut shared.lock().dtls {
        Some(sessions) => sessions.poll_established(stand_in, cx),
        None => Poll::Pending,
    });
    established.await.map_err(|reason| Error::Dtls { remote, reason })?;
    Ok((shared, stand_in))
}
