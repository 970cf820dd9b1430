//! A state as it is stored, and its entries.

use super::journal::{self, Damage, Entries};
use crate::net::clock::distinct;
use crate::net::dtls::{StoredSession, reserve};
use crate::state_store::StateStore;
use bytes::{Buf, BufMut};
use ebbtide_core::session::SavedObserver;
use ebbtide_core::wire::Message;
use ebbtide_core::{PeerId, PeerToken, SessionKey};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The first byte of a key: the start of the server, a verified address, an observer, a session over DTLS.
const START: u8 = 0;
const VERIFIED: u8 = 1;
const OBSERVER: u8 = 2;
const SESSION: u8 = 4;
/// In an observer's key: it is the peer of a session.
const OF_SESSION: u8 = 1;

/// Sessions over DTLS by the number of their socket and their own.
pub(super) type SavedSessions = BTreeMap<(u32, u64), StoredSession>;

/// A state as it is stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SavedState {
    /// The secret of the message IDs.
    pub(crate) key: u64,
    /// The number of earlier starts of the server.
    pub(crate) restarts: u32,
    /// The verified addresses, with the time of verification in milliseconds of the system's clock.
    pub(super) verified: Vec<(IpAddr, u64)>,
    /// By the number of their socket.
    pub(super) observers: Vec<(u32, SavedObserver)>,
    pub(super) sessions: SavedSessions,
}

impl SavedState {
    /// Loads the stored state, or creates that of a first start; one that is not valid is set aside. Before it
    /// returns, it stores what lets the next start use neither message IDs nor sequence numbers of this one, however
    /// soon this one ends.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read or written.
    pub(crate) fn load(store: &dyn StateStore) -> io::Result<Self> {
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

    /// Without observers whose addresses may be forged: if the bytes sent to them could not be
    /// stored later, each start would send as many again. Sequence numbers of sessions are
    /// reserved.
    pub(super) fn entries_at_start(&self) -> Entries {
        let mut kept = self.clone();
        kept.observers.retain(|(_, observer)| observer.proven || !observer.unverified);
        kept.sessions = self.reserved_sessions();
        kept.entries()
    }

    /// The sessions in the form that is stored while they go on.
    pub(super) fn reserved_sessions(&self) -> SavedSessions {
        let reserved = |(name, stored): (&_, &StoredSession)| Some((*name, reserve(stored)?));
        self.sessions.iter().filter_map(reserved).collect()
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

    pub(super) fn entries(&self) -> Entries {
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
            put_peer(&mut key, observer.remote);
            key.put_slice(observer.token.as_slice());
            let mut value = Vec::new();
            put_ip(&mut value, observer.local);
            value.put_u32(observer.sequence);
            value.put_u8(u8::from(observer.proven) | u8::from(observer.unverified) << 1);
            value.put_u16(observer.sent);
            value.put_slice(&observer.request);
            entries.insert(key.into(), value.into());
        }
        for ((socket, number), stored) in &self.sessions {
            let mut key = vec![SESSION];
            key.put_u32(*socket);
            key.put_u64(*number);
            entries.insert(key.into(), stored[..].into());
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
                    saved.observers.push((socket, get_observer(socket, key, value)?));
                }
                SESSION => {
                    let name = (key.try_get_u32().ok()?, key.try_get_u64().ok()?);
                    saved.sessions.insert(name, value.to_vec().into());
                }
                _ => {}
            }
        }
        Some(saved)
    }
}

fn get_observer(socket: u32, mut key: &[u8], mut value: &[u8]) -> Option<SavedObserver> {
    let remote = get_peer(socket, &mut key)?;
    let token = PeerToken::new(key);
    let local = get_ip(&mut value)?;
    let sequence = value.try_get_u32().ok()?;
    let flags = value.try_get_u8().ok()?;
    let (proven, unverified) = (flags & 1 != 0, flags & 2 != 0);
    let sent = value.try_get_u16().ok()?;
    Message::parse(value).ok()?;
    let request = value.into();
    Some(SavedObserver { remote, token, local, sequence, proven, unverified, sent, request })
}

/// The peer of a session has a mark where others have the version of their address.
fn put_peer(out: &mut Vec<u8>, peer: PeerId) {
    match peer {
        PeerId::Session(session) => {
            out.put_u8(OF_SESSION);
            out.put_u64(session.number());
        }
        PeerId::Address(address) | PeerId::Connection(address) => put_address(out, address),
    }
}

fn get_peer(socket: u32, input: &mut &[u8]) -> Option<PeerId> {
    let Some(mut rest) = input.strip_prefix(&[OF_SESSION]) else {
        return get_address(input).map(PeerId::Address);
    };
    let number = rest.try_get_u64().ok()?;
    *input = rest;
    Some(PeerId::Session(SessionKey::new(socket, number)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_store::StateFile;

    fn observer() -> SavedObserver {
        let request: &[u8] = &[0x41, 1, 0, 7, 9, 0x60];
        SavedObserver {
            remote: PeerId::Address("[fe80::1%3]:5683".parse().unwrap()),
            token: PeerToken::new(&[9; 40]),
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
        let remote = PeerId::Address("192.0.2.1:5683".parse().unwrap());
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
        let of_session = PeerId::Session(SessionKey::new(2, 7));
        let saved = SavedState {
            key: 5,
            restarts: 3,
            verified: vec![("2001:db8::1".parse().unwrap(), 1_700_000_040_000)],
            observers: vec![
                (1, observer()),
                (2, SavedObserver { remote: of_session, ..observer() }),
            ],
            sessions: SavedSessions::from([((2, 7), b"a session".to_vec().into())]),
        };
        let entries = saved.entries();
        assert_eq!(SavedState::from_entries(&entries), Some(saved));
        for (key, value) in &entries {
            // A session's value is read when it is restored.
            for end in 0..if key[0] == SESSION { 0 } else { value.len().min(8) } {
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
