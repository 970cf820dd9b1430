//! The state of a server that survives a restart: observers, verified addresses, and the position
//! of message IDs.

use super::observe::Observed as _;
use super::service::Service;
use crate::net::clock::distinct;
use crate::net::shared::Shared;
use crate::state_store::StateStore;
use bytes::{Buf, BufMut};
use ebbtide_core::endpoint::MessageIdStart;
use ebbtide_core::session::SavedObserver;
use ebbtide_core::session::server::SharedState;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Message, Token};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often the state is checked for changes.
const EVERY: Duration = Duration::from_millis(100);
/// The first bytes of a stored state; the number is the version of the format.
const MAGIC: &[u8] = b"ebbtide state 1\n";

/// A state as it is stored.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SavedState {
    /// The secret of the message IDs.
    pub(super) key: u64,
    /// The number of earlier starts of the server.
    pub(super) restarts: u32,
    /// The verified addresses, with the time of verification in milliseconds of the system's clock.
    verified: Vec<(IpAddr, u64)>,
    /// By the number of their socket.
    observers: Vec<(u32, SavedObserver)>,
}

/// Milliseconds of the system's clock, which continues over a restart.
#[expect(clippy::disallowed_methods, reason = "the only clock that goes on after a restart")]
pub(super) fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl SavedState {
    /// Loads the stored state, or creates that of a first start. Before it returns, it stores what lets the next
    /// start use neither message IDs nor sequence numbers of this one, however soon this one ends.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read or written, or is not a valid state.
    pub(super) fn load(store: &dyn StateStore) -> io::Result<Self> {
        let state = match store.load()? {
            Some(state) => {
                let mut state = Self::decode_or_error(&state)?;
                state.restarts = state.restarts.wrapping_add(1);
                state.observers.iter_mut().for_each(|(_, observer)| observer.advance());
                state
            }
            None => {
                let key = u64::from(distinct()) << 32 | u64::from(distinct());
                Self { key, ..Self::default() }
            }
        };
        store.save(&state.encode())?;
        Ok(state)
    }

    fn decode_or_error(state: &[u8]) -> io::Result<Self> {
        let broken = "the stored state is not valid: remove it to start without one";
        let broken = || io::Error::new(io::ErrorKind::InvalidData, broken);
        Self::decode(state).ok_or_else(broken)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.put_u64(self.key);
        out.put_u32(self.restarts);
        out.put_u32(self.verified.len() as u32);
        for (ip, at) in &self.verified {
            put_ip(&mut out, Some(*ip));
            out.put_u64(*at);
        }
        out.put_u32(self.observers.len() as u32);
        for (socket, observer) in &self.observers {
            out.put_u32(*socket);
            put_ip(&mut out, Some(observer.remote.ip()));
            out.put_u16(observer.remote.port());
            out.put_u32(match observer.remote {
                SocketAddr::V4(_) => 0,
                SocketAddr::V6(address) => address.scope_id(),
            });
            put_ip(&mut out, observer.local);
            put_bytes(&mut out, observer.token.as_slice());
            out.put_u32(observer.sequence);
            out.put_u8(u8::from(observer.proven) | u8::from(observer.unverified) << 1);
            out.put_u16(observer.sent);
            put_bytes(&mut out, &observer.request);
        }
        out
    }

    fn decode(state: &[u8]) -> Option<Self> {
        let mut input = state.strip_prefix(MAGIC)?;
        let (key, restarts) = (input.try_get_u64().ok()?, input.try_get_u32().ok()?);
        let mut saved = Self { key, restarts, ..Self::default() };
        for _ in 0..input.try_get_u32().ok()? {
            saved.verified.push((get_ip(&mut input)??, input.try_get_u64().ok()?));
        }
        for _ in 0..input.try_get_u32().ok()? {
            let socket = input.try_get_u32().ok()?;
            let mut remote = SocketAddr::new(get_ip(&mut input)??, input.try_get_u16().ok()?);
            let scope = input.try_get_u32().ok()?;
            if let SocketAddr::V6(address) = &mut remote {
                address.set_scope_id(scope);
            }
            let local = get_ip(&mut input)?;
            let token = Token::new(get_bytes(&mut input)?)?;
            let sequence = input.try_get_u32().ok()?;
            let flags = input.try_get_u8().ok()?;
            let (proven, unverified) = (flags & 1 != 0, flags & 2 != 0);
            let sent = input.try_get_u16().ok()?;
            let request = get_bytes(&mut input)?;
            Message::parse(request).ok()?;
            let request = request.into();
            saved.observers.push((
                socket,
                SavedObserver { remote, token, local, sequence, proven, unverified, sent, request },
            ));
        }
        input.is_empty().then_some(saved)
    }
}

fn put_ip(out: &mut Vec<u8>, ip: Option<IpAddr>) {
    match ip {
        None => out.put_u8(0),
        Some(IpAddr::V4(ip)) => {
            out.put_u8(4);
            out.put_slice(&ip.octets());
        }
        Some(IpAddr::V6(ip)) => {
            out.put_u8(6);
            out.put_slice(&ip.octets());
        }
    }
}

fn get_ip(input: &mut &[u8]) -> Option<Option<IpAddr>> {
    Some(match input.try_get_u8().ok()? {
        0 => None,
        4 => Some(IpAddr::V4(input.try_get_u32().ok()?.into())),
        6 => Some(IpAddr::V6(input.try_get_u128().ok()?.into())),
        _ => return None,
    })
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u16(u16::try_from(bytes.len()).unwrap_or(u16::MAX));
    out.put_slice(bytes);
}

fn get_bytes<'i>(input: &mut &'i [u8]) -> Option<&'i [u8]> {
    let length = usize::from(input.try_get_u16().ok()?);
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}

/// Restores a state, before the sockets are driven.
pub(super) fn restore(service: &Service, sockets: &[Arc<Shared>], saved: &SavedState) {
    let (now, unix) = (service.clock().now(), unix_millis());
    service.session().tables().with(|tables| {
        for (ip, at) in &saved.verified {
            tables.restore_verified(now, *ip, Duration::from_millis(unix.saturating_sub(*at)));
        }
    });
    let max = service.config().max_observers;
    for (socket, observer) in &saved.observers {
        let Some(shared) = sockets.get(*socket as usize) else { continue };
        let Some(subject) = service.subject_of(&observer.request) else {
            tracing::warn!(peer = %observer.remote, "what it observes is not there any more");
            continue;
        };
        subject.attach(shared);
        let name = subject.name();
        shared.change_observers(&mut |observers| observers.restore(now, observer, name, max));
    }
}

/// The state to store, with a number that differs after a change.
fn collect(
    service: &Service,
    sockets: &[Weak<Shared>],
    start: MessageIdStart,
    before: Option<(u64, usize)>,
) -> Option<((u64, usize), SavedState)> {
    let live: Vec<_> = sockets.iter().map(Weak::upgrade).collect();
    let versions = live.iter().flatten().map(|shared| shared.lock().observers.version());
    let version = versions.sum();
    let (now, unix) = (service.clock().now(), unix_millis());
    let at = |at: Instant| unix.saturating_sub(now.saturating_since(at).as_millis() as u64);
    let verified: Vec<_> = service
        .session()
        .tables()
        .with(|tables| tables.verified().map(|(ip, since)| (ip, at(since))).collect());
    let version = (version, verified.len());
    if before == Some(version) {
        return None;
    }
    let mut saved =
        SavedState { key: start.key, restarts: start.restarts, verified, observers: Vec::new() };
    for (number, shared) in live.iter().enumerate() {
        let Some(shared) = shared.as_ref() else { continue };
        let state = shared.lock();
        if state.dtls.is_none() {
            let observers = state.observers.saved();
            saved.observers.extend(observers.map(|observer| (number as u32, observer)));
        }
    }
    Some((version, saved))
}

/// Stores changes until the last socket is closed.
pub(super) async fn store_changes(
    service: Service,
    sockets: Vec<Weak<Shared>>,
    store: Arc<dyn StateStore>,
    start: MessageIdStart,
) {
    let mut before = None;
    while sockets.iter().any(|shared| shared.strong_count() > 0) {
        if let Some((version, saved)) = collect(&service, &sockets, start, before) {
            let store = store.clone();
            let saving = tokio::task::spawn_blocking(move || store.save(&saved.encode()));
            match saving.await {
                Ok(Ok(())) => before = Some(version),
                Ok(Err(error)) => tracing::error!(%error, "the state cannot be stored"),
                Err(error) => tracing::error!(%error, "the state cannot be stored"),
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_store::StateFile;

    #[test]
    fn a_state_is_read_as_it_was_written_and_no_part_of_it_is_one() {
        let request: &[u8] = &[0x41, 1, 0, 7, 9, 0x60];
        let observer = SavedObserver {
            remote: "[fe80::1%3]:5683".parse().unwrap(),
            token: Token::new(&[9]).unwrap(),
            local: Some("192.0.2.1".parse().unwrap()),
            sequence: 77,
            proven: true,
            unverified: false,
            sent: 60,
            request: request.into(),
        };
        let saved = SavedState {
            key: 5,
            restarts: 3,
            verified: vec![("2001:db8::1".parse().unwrap(), 1_700_000_000_000)],
            observers: vec![(1, observer)],
        };
        let encoded = saved.encode();
        assert_eq!(SavedState::decode(&encoded), Some(saved));
        for end in 0..encoded.len() {
            assert_eq!(SavedState::decode(&encoded[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_program_that_dies_while_it_writes_leaves_the_state_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = StateFile::new(&path);
        let before = SavedState { key: 1, restarts: 2, ..SavedState::default() };
        store.save(&before.encode()).unwrap();
        let verified = vec![("192.0.2.1".parse().unwrap(), 7); 100];
        let after = SavedState { key: 1, restarts: 3, verified, observers: Vec::new() };
        let bytes = after.encode();
        for written in 0..=bytes.len() {
            // As much as had reached the disk when the power went.
            std::fs::write(folder.path().join("state.new"), &bytes[..written]).unwrap();
            let loaded = store.load().unwrap().unwrap();
            assert_eq!(SavedState::decode(&loaded).as_ref(), Some(&before), "{written}");
        }
        // The rest of it does not disturb the next state, which may be shorter.
        store.save(&before.encode()).unwrap();
        assert_eq!(store.load().unwrap(), Some(before.encode()));
        assert!(!folder.path().join("state.new").exists());
    }

    #[test]
    fn a_state_that_cannot_be_written_leaves_the_state_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = StateFile::new(&path);
        store.save(b"before").unwrap();
        // Nothing can be created under the name of what is written first.
        std::fs::create_dir(folder.path().join("state.new")).unwrap();
        store.save(b"after").unwrap_err();
        assert_eq!(store.load().unwrap().as_deref(), Some(&b"before"[..]));
    }
}
