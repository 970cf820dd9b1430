//! Sessions for `coaps`.

use super::Client;
use crate::error::{BindError, Error};
use crate::net::driver::Driver;
use crate::net::dtls::Side;
use crate::net::shared::Shared;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// The stand-in for a server, once there is a session with it. Dropping the future does not end the
/// handshake.
pub(super) async fn session(client: &Client, remote: SocketAddr) -> Result<SocketAddr, Error> {
    if client.inner.config.dtls.credentials.is_none() {
        return Err(Error::NoCredentials { remote });
    }
    let shared = socket(client, remote)?;
    let wanted = shared.with(|state, _| state.dtls.as_mut().and_then(|dtls| dtls.want(remote)));
    let stand_in = wanted.ok_or(Error::Closed)?;
    let established = poll_fn(|cx| {
        let mut state = shared.lock();
        match &mut state.dtls {
            Some(sessions) => sessions.poll_established(stand_in, cx),
            None => core::task::Poll::Pending,
        }
    });
    established.await.map_err(|reason| Error::Dtls { remote, reason })?;
    Ok(stand_in)
}

/// The socket for a server's address, opened if need be.
fn socket(client: &Client, remote: SocketAddr) -> Result<&Arc<Shared>, BindError> {
    let (place, any): (_, IpAddr) = match remote {
        SocketAddr::V4(_) => (&client.inner.dtls_v4, Ipv4Addr::UNSPECIFIED.into()),
        SocketAddr::V6(_) => (&client.inner.dtls_v6, Ipv6Addr::UNSPECIFIED.into()),
    };
    if let Some(shared) = place.get() {
        return Ok(shared);
    }
    let address = SocketAddr::new(any, 0);
    let config = &client.inner.config;
    let opened = Shared::new(address, config, None)?;
    let secured = opened.secure(Side::Client, config);
    secured.map_err(|source| BindError { address, source })?;
    Ok(place.get_or_init(|| {
        Driver::spawn(opened.clone());
        opened
    }))
}
