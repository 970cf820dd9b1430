//! Sessions for `coaps`.

use super::ClientInner;
use super::sockets::SocketKind;
use crate::error::{Cause, Error};
use crate::net::shared::Shared;
use ebbtide_core::PeerId;
use ebbtide_core::cc::{ControlConfig, Metrics};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

/// Addresses whose control is remembered for a session that begins later; the lowest goes for another.
const MAX_CONTROLS: usize = 1024;

/// The socket and the session with the server that a URI calls `name`, if it is established.
pub(super) fn established(
    inner: &ClientInner,
    remote: SocketAddr,
    name: &str,
) -> Option<(Arc<Shared>, PeerId)> {
    let shared = inner.opened(SocketKind::dtls(remote))?;
    let state = shared.lock();
    let peer = state.dtls.as_ref().filter(|_| !state.closed)?.established(remote, name)?;
    drop(state);
    Some((shared, peer))
}

/// The socket and the session with the server that a URI calls `name`, once it is established. Dropping the future does
/// not end the handshake.
pub(super) async fn session(
    inner: &ClientInner,
    remote: SocketAddr,
    name: &str,
) -> Result<(Arc<Shared>, PeerId), Error> {
    let dtls = &inner.requests.config.dtls;
    if dtls.credentials.is_none() && dtls.certificates.is_none() {
        return Err(Error::for_peer(remote, Cause::NoCredentials));
    }
    let shared = inner.socket(SocketKind::dtls(remote))?;
    let wanted =
        shared.with(|state, _| state.dtls.as_mut().and_then(|dtls| dtls.want(remote, name)));
    let peer = wanted.ok_or_else(|| Error::from(Cause::Closed))?;
    let chosen = inner.controls.lock().unwrap_or_else(PoisonError::into_inner).remove(&remote);
    if let Some(control) = chosen {
        shared
            .with(|state, now| state.endpoint.set_control(now, peer, control))
            .map_err(Cause::Send)?;
    }
    let established = poll_fn(|cx| {
        let mut state = shared.lock();
        if state.closed {
            return Poll::Ready(Err(Cause::Closed.into()));
        }
        match &mut state.dtls {
            Some(sessions) => {
                let polled = sessions.poll_established(peer, cx);
                polled.map_err(|reason| Error::for_peer(remote, Cause::Dtls(reason)))
            }
            None => Poll::Pending,
        }
    });
    established.await?;
    Ok((shared, peer))
}

/// Sets the control of the sessions with this server, or of the first one that begins later.
pub(super) fn set_control(
    inner: &ClientInner,
    remote: SocketAddr,
    control: ControlConfig,
) -> Result<(), Error> {
    // Held from the look on, so that a session that begins meanwhile either is seen or finds the control.
    let mut controls = inner.controls.lock().unwrap_or_else(PoisonError::into_inner);
    let sessions = sessions_with(inner, remote);
    if sessions.is_empty() {
        controls.insert(remote, control);
        if controls.len() > MAX_CONTROLS {
            controls.pop_first();
        }
        return Ok(());
    }
    drop(controls);
    let Some(shared) = inner.opened(SocketKind::dtls(remote)) else { return Ok(()) };
    for peer in sessions {
        shared
            .with(|state, now| state.endpoint.set_control(now, peer, control.clone()))
            .map_err(Cause::Send)?;
    }
    Ok(())
}

/// The metrics of the first session with this server that has any.
pub(super) fn metrics(inner: &ClientInner, remote: SocketAddr) -> Option<Metrics> {
    let shared = inner.opened(SocketKind::dtls(remote))?;
    let sessions = sessions_with(inner, remote);
    let state = shared.lock();
    sessions.into_iter().find_map(|peer| state.endpoint.metrics(peer))
}

/// The sessions with a server: several if it has several names.
fn sessions_with(inner: &ClientInner, remote: SocketAddr) -> Vec<PeerId> {
    let Some(shared) = inner.opened(SocketKind::dtls(remote)) else { return Vec::new() };
    let state = shared.lock();
    state.dtls.as_ref().map(|sessions| sessions.peers_at(remote)).unwrap_or_default()
}
