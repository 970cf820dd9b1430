//! The state of a server that survives a restart: observers, verified addresses, and the position
//! of message IDs.

mod journal;

use super::inner::Service;
use super::observe::Observed as _;
use crate::net::clock::{distinct, unix_millis};
use crate::net::shared::Shared;
use crate::state_store::StateStore;
use bytes::{Buf, BufMut};
use ebbtide_core::endpoint::MessageIdStart;
use ebbtide_core::session::SavedObserver;
use ebbtide_core::session::server::SharedState;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Message, Token};
use journal::{Damage, Entries, Journal};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often the state is checked for changes.
const EVERY: Duration = Duration::from_millis(100);
/// How long to wait after a state could not be stored.
const RETRY: Duration = Duration::from_secs(1);
/// Observers over DTLS that are notified at once of the loss of their sessions, and the pause after them.
const TOLD_AT_ONCE: usize = 32;
const TOLD_EVERY: Duration = Duration::from_millis(20);
/// The first byte of a key: the start of the server, a verified address, an observer.
const START: u8 = 0;
const VERIFIED: u8 = 1;
const OBSERVER: u8 = 2;
/// The address of an observer over DTLS.
const OVER_DTLS: u8 = 3;

/// A state as it is stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SavedState {
    /// The secret of the message IDs.
    pub(super) key: u64,
    /// The number of earlier starts of the server.
    pub(super) restarts: u32,
    /// The verified addresses, with the time of verification in milliseconds of the system's clock.
    verified: Vec<(IpAddr, u64)>,
    /// By the number of their socket.
    observers: Vec<(u32, SavedObserver)>,
    /// The addresses of observers over DTLS, by the number of their socket. Their sessions are lost.
    pub(super) over_dtls: BTreeSet<(u32, SocketAddr)>,
}

impl SavedState {
    /// Loads the stored state, or creates that of a first start; one that is not valid is set aside. Before it
    /// returns, it stores what lets the next start use neither message IDs nor sequence numbers of this one, however
    /// soon this one ends.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read or written.
    pub(super) fn load(store: &dyn StateStore) -> io::Result<Self> {
        let state = match store.load()? {
            Some(stored) => Self::from_stored(store, &stored)?,
            None => None,
        };
        let state = match state {
            Some(mut state) => {
                state.restarts = state.restarts.wrapping_add(1);
                state.observers.iter_mut().for_each(|(_, observer)| observer.advance());
                state
            }
            None => {
                let key = u64::from(distinct()) << 32 | u64::from(distinct());
                Self { key, ..Self::default() }
            }
        };
        store.save(&journal::encode(&state.entries_at_start()))?;
        Ok(state)
    }

    /// Without observers whose addresses may be forged: if the bytes sent to them could not be stored later, each start would send
    /// as many again.
    fn entries_at_start(&self) -> Entries {
        let mut kept = self.clone();
        kept.observers.retain(|(_, observer)| observer.proven || !observer.unverified);
        kept.entries()
    }

    fn from_stored(store: &dyn StateStore, stored: &[u8]) -> io::Result<Option<Self>> {
        let decoded = journal::decode(stored).and_then(|(entries, is_cut)| {
            Ok((Self::from_entries(&entries).ok_or(Damage::Broken)?, is_cut))
        });
        match decoded {
            Ok((state, is_cut)) => {
                if is_cut {
                    tracing::warn!(target: "ebbtide::state", "the last change of the stored state is cut, and is left out");
                }
                Ok(Some(state))
            }
            Err(damage) => {
                let kept = store.set_aside()?;
                let reason = damage.text();
                tracing::warn!(
                    target: "ebbtide::state",
                    reason, kept, "the stored state is not valid: the server starts without it, and clients have to register again"
                );
                Ok(None)
            }
        }
    }

    fn entries(&self) -> Entries {
        let mut start = Vec::new();
        start.put_u64(self.key);
        start.put_u32(self.restarts);
        let mut entries = Entries::from([([START].into(), start.into())]);
        for (ip, at) in &self.verified {
            let mut key = vec![VERIFIED];
            put_ip(&mut key, Some(*ip));
            // Whole minutes: the two clocks drift, which is no reason to store all addresses again.
            entries.insert(key.into(), (at - at % 60_000).to_be_bytes().into());
        }
        for (socket, observer) in &self.observers {
            let mut key = vec![OBSERVER];
            key.put_u32(*socket);
            put_address(&mut key, observer.remote);
            key.put_slice(observer.token.as_slice());
            let mut value = Vec::new();
            put_ip(&mut value, observer.local);
            value.put_u32(observer.sequence);
            value.put_u8(u8::from(observer.proven) | u8::from(observer.unverified) << 1);
            value.put_u16(observer.sent);
            value.put_slice(&observer.request);
            entries.insert(key.into(), value.into());
        }
        for (socket, address) in &self.over_dtls {
            let mut key = vec![OVER_DTLS];
            key.put_u32(*socket);
            put_address(&mut key, *address);
            entries.insert(key.into(), Box::default());
        }
        entries
    }

    fn from_entries(entries: &Entries) -> Option<Self> {
        let mut start = &**entries.get(&[START][..])?;
        let (key, restarts) = (start.try_get_u64().ok()?, start.try_get_u32().ok()?);
        let mut saved = Self { key, restarts, ..Self::default() };
        for (key, value) in entries {
            let (mut key, mut value) = (&**key, &**value);
            match key.try_get_u8().ok()? {
                VERIFIED => saved.verified.push((get_ip(&mut key)??, value.try_get_u64().ok()?)),
                OBSERVER => {
                    let socket = key.try_get_u32().ok()?;
                    saved.observers.push((socket, get_observer(key, value)?));
                }
                OVER_DTLS => {
                    let socket = key.try_get_u32().ok()?;
                    saved.over_dtls.insert((socket, get_address(&mut key)?));
                }
                _ => {}
            }
        }
        Some(saved)
    }
}

fn get_observer(mut key: &[u8], mut value: &[u8]) -> Option<SavedObserver> {
    let remote = get_address(&mut key)?;
    let token = Token::new(key)?;
    let local = get_ip(&mut value)?;
    let sequence = value.try_get_u32().ok()?;
    let flags = value.try_get_u8().ok()?;
    let (proven, unverified) = (flags & 1 != 0, flags & 2 != 0);
    let sent = value.try_get_u16().ok()?;
    Message::parse(value).ok()?;
    let request = value.into();
    Some(SavedObserver { remote, token, local, sequence, proven, unverified, sent, request })
}

fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    put_ip(out, Some(address.ip()));
    out.put_u16(address.port());
    out.put_u32(match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(address) => address.scope_id(),
    });
}

fn get_address(input: &mut &[u8]) -> Option<SocketAddr> {
    let mut address = SocketAddr::new(get_ip(input)??, input.try_get_u16().ok()?);
    let scope = input.try_get_u32().ok()?;
    if let SocketAddr::V6(address) = &mut address {
        address.set_scope_id(scope);
    }
    Some(address)
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
            tracing::warn!(target: "ebbtide::state", peer = %observer.remote, "what it observes is not there any more");
            continue;
        };
        subject.attach(shared);
        let name = subject.name();
        shared.change_observers(&mut |observers| observers.restore(now, observer, name, max));
    }
}

/// Tells the observers over DTLS that their sessions are lost, a few at a time, since each then begins another one. One
/// that does not hear it notices when its last state is no longer fresh.
pub(super) async fn tell_lost_sessions(
    sockets: Vec<Weak<Shared>>,
    over_dtls: BTreeSet<(u32, SocketAddr)>,
) {
    for (told, (socket, address)) in over_dtls.into_iter().enumerate() {
        if told % TOLD_AT_ONCE == TOLD_AT_ONCE - 1 {
            tokio::time::sleep(TOLD_EVERY).await;
        }
        let Some(shared) = sockets.get(socket as usize).and_then(Weak::upgrade) else { continue };
        shared.with(|state, _| {
            if let Some(sessions) = &mut state.dtls {
                sessions.tell_unknown(address);
            }
        });
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
        SavedState { key: start.key, restarts: start.restarts, verified, ..SavedState::default() };
    for (number, shared) in live.iter().enumerate() {
        let Some(shared) = shared.as_ref() else { continue };
        let state = shared.lock();
        match &state.dtls {
            None => {
                let observers = state.observers.saved();
                saved.observers.extend(observers.map(|observer| (number as u32, observer)));
            }
            Some(sessions) => {
                let remotes = state.observers.sessions();
                let addresses = remotes.filter_map(|remote| sessions.address(remote));
                saved.over_dtls.extend(addresses.map(|address| (number as u32, address)));
            }
        }
    }
    Some((version, saved))
}

/// Stores changes until the last socket is closed.
pub(super) async fn store_changes(
    service: Service,
    sockets: Vec<Weak<Shared>>,
    store: Arc<dyn StateStore>,
    saved: SavedState,
) {
    let start = MessageIdStart { key: saved.key, restarts: saved.restarts };
    let mut journal = Some(Journal::new(store, &saved.entries_at_start()));
    drop(saved);
    let (mut before, mut failures) = (None, 0u32);
    while sockets.iter().any(|shared| shared.strong_count() > 0) {
        let changed = collect(&service, &sockets, start, before);
        // It is taken for a change alone.
        if let Some((version, saved)) = changed
            && let Some(mut writer) = journal.take()
        {
            let writing = tokio::task::spawn_blocking(move || {
                let written = writer.write(&saved.entries());
                (writer, written)
            });
            // The thread has panicked, or the runtime ends.
            let Ok((writer, written)) = writing.await else { return };
            journal = Some(writer);
            match written {
                Ok(()) => {
                    before = Some(version);
                    if failures > 0 {
                        tracing::warn!(target: "ebbtide::state", failures, "the state is stored again");
                    }
                    failures = 0;
                }
                Err(error) => {
                    service.inner.state_errors.fetch_add(1, Ordering::Relaxed);
                    if failures.is_multiple_of(60) {
                        tracing::error!(target: "ebbtide::state", %error, "the state cannot be stored; it is tried again every second");
                    }
                    failures = failures.saturating_add(1);
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_store::StateFile;

    fn observer() -> SavedObserver {
        let request: &[u8] = &[0x41, 1, 0, 7, 9, 0x60];
        SavedObserver {
            remote: "[fe80::1%3]:5683".parse().unwrap(),
            token: Token::new(&[9]).unwrap(),
            local: Some("192.0.2.1".parse().unwrap()),
            sequence: 77,
            proven: true,
            unverified: false,
            sent: 60,
            request: request.into(),
        }
    }

    #[test]
    fn an_observer_whose_address_may_be_forged_outlives_no_second_start_unless_it_is_stored_again()
    {
        let folder = tempfile::tempdir().unwrap();
        let store = StateFile::new(folder.path().join("state"));
        let remote = "192.0.2.1:5683".parse().unwrap();
        let forged = SavedObserver { remote, proven: false, unverified: true, ..observer() };
        let observers = vec![(0, observer()), (0, forged)];
        let stored = SavedState { observers, ..SavedState::default() };
        store.save(&journal::encode(&stored.entries())).unwrap();
        let proven = |state: &SavedState| -> Vec<_> {
            state.observers.iter().map(|(_, observer)| observer.proven).collect()
        };
        let mut first = proven(&SavedState::load(&store).unwrap());
        first.sort_unstable();
        assert_eq!(first, [false, true]);
        assert_eq!(proven(&SavedState::load(&store).unwrap()), [true]);
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let observer = observer();
        let saved = SavedState {
            key: 5,
            restarts: 3,
            verified: vec![("2001:db8::1".parse().unwrap(), 1_700_000_040_000)],
            observers: vec![(1, observer)],
            over_dtls: BTreeSet::from([(2, "192.0.2.2:5684".parse().unwrap())]),
        };
        let entries = saved.entries();
        assert_eq!(SavedState::from_entries(&entries), Some(saved));
        for (key, value) in &entries {
            for end in 0..value.len().min(8) {
                let mut cut = entries.clone();
                cut.insert(key.clone(), value[..end].into());
                assert_eq!(SavedState::from_entries(&cut), None, "{key:?} {end}");
            }
        }
    }

    #[test]
    fn a_program_that_dies_while_it_writes_leaves_the_state_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let store = StateFile::new(&path);
        let bytes = |state: &SavedState| journal::encode(&state.entries());
        let before = bytes(&SavedState { key: 1, restarts: 2, ..SavedState::default() });
        store.save(&before).unwrap();
        let verified = (0..100).map(|n| ([192, 0, 2, n].into(), 7)).collect();
        let after = bytes(&SavedState { key: 1, restarts: 3, verified, ..SavedState::default() });
        for written in 0..=after.len() {
            // As much as had reached the disk when the power went.
            std::fs::write(folder.path().join("state.new"), &after[..written]).unwrap();
            assert_eq!(store.load().unwrap(), Some(before.clone()), "{written}");
        }
        // The rest of it does not disturb the next state, which may be shorter.
        store.save(&before).unwrap();
        assert_eq!(store.load().unwrap(), Some(before));
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
