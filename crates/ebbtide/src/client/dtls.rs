//! Sessions for `coaps`.

use super::Inner;
use crate::error::{Cause, Error};
use crate::net::dtls::address;
use crate::net::shared::Shared;
use ebbtide_core::cc::{ControlConfig, Metrics};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

/// Addresses whose control is remembered for a session that begins later; the lowest goes for another.
const MAX_CONTROLS: usize = 1024;

/// The socket and the stand-in for the server that a URI calls `name`, if there is an established session with it.
pub(super) fn established(
    inner: &Inner,
    remote: SocketAddr,
    name: &str,
) -> Option<(Arc<Shared>, SocketAddr)> {
    let shared = inner.opened(address::any(remote.is_ipv4()))?;
    let state = shared.lock();
    let stand_in = state.dtls.as_ref().filter(|_| !state.closed)?.established(remote, name)?;
    drop(state);
    Some((shared, stand_in))
}

/// The socket and the stand-in for the server that a URI calls `name`, once there is a session with it. Dropping the future does
/// not end the handshake.
pub(super) async fn session(
    inner: &Inner,
    remote: SocketAddr,
    name: &str,
) -> Result<(Arc<Shared>, SocketAddr), Error> {
    let dtls = &inner.requests.config.dtls;
    if dtls.credentials.is_none() && dtls.certificates.is_none() {
        return Err(Error::for_peer(remote, Cause::NoCredentials));
    }
    let shared = inner.socket(address::any(remote.is_ipv4()))?;
    let wanted =
        shared.with(|state, _| state.dtls.as_mut().and_then(|dtls| dtls.want(remote, name)));
    let stand_in = wanted.ok_or_else(|| Error::from(Cause::Closed))?;
    let chosen = inner.controls.lock().unwrap_or_else(PoisonError::into_inner).remove(&remote);
    if let Some(control) = chosen {
        shared
            .with(|state, now| state.endpoint.set_control(now, stand_in, control))
            .map_err(Cause::Send)?;
    }
    let established = poll_fn(|cx| {
        let mut state = shared.lock();
        if state.closed {
            return Poll::Ready(Err(Cause::Closed.into()));
        }
        match &mut state.dtls {
            Some(sessions) => {
                let polled = sessions.poll_established(stand_in, cx);
                polled.map_err(|reason| Error::for_peer(remote, Cause::Dtls(reason)))
            }
            None => Poll::Pending,
        }
    });
    established.await?;
    Ok((shared, stand_in))
}

/// Sets the control of the sessions with this server, or of the first one that begins later.
pub(super) fn set_control(
    inner: &Inner,
    remote: SocketAddr,
    control: ControlConfig,
) -> Result<(), Error> {
    // Held from the look on, so that a session that begins meanwhile either is seen or finds the control.
    let mut controls = inner.controls.lock().unwrap_or_else(PoisonError::into_inner);
    let sessions = stand_ins(inner, remote);
    if sessions.is_empty() {
        controls.insert(remote, control);
        if controls.len() > MAX_CONTROLS {
            controls.pop_first();
        }
        return Ok(());
    }
    drop(controls);
    let Some(shared) = inner.opened(address::any(remote.is_ipv4())) else { return Ok(()) };
    for stand_in in sessions {
        shared
            .with(|state, now| state.endpoint.set_control(now, stand_in, control.clone()))
            .map_err(Cause::Send)?;
    }
    Ok(())
}

/// The metrics of the first session with this server that has any.
pub(super) fn metrics(inner: &Inner, remote: SocketAddr) -> Option<Metrics> {
    let shared = inner.opened(address::any(remote.is_ipv4()))?;
    let sessions = stand_ins(inner, remote);
    let state = shared.lock();
    sessions.into_iter().find_map(|stand_in| state.endpoint.metrics(stand_in))
}

/// The stand-ins of the sessions with a server: several if it has several names.
fn stand_ins(inner: &Inner, remote: SocketAddr) -> Vec<SocketAddr> {
    let Some(shared) = inner.opened(address::any(remote.is_ipv4())) else { return Vec::new() };
    let state = shared.lock();
    state.dtls.as_ref().map(|sessions| sessions.stand_ins(remote)).unwrap_or_default()
}
