//! Sessions in a stored form, with which a server that starts again goes on.
//!
//! * A sequence number is a nonce (RFC 6655 section 3) and must not be used twice. The stored one
//!   is ahead of all that are used before another one is stored.
//! * A record that the program before has received must not count as new. Unless that program has
//!   ended in order and stored its replay window, the peer is asked for a sign of life first, by a
//!   CoAP ping with a message ID that it cannot foresee. The records before its answer are dropped,
//!   as if the network had lost them.

use super::Endpoint;
use super::table::{Session, Table};
use super::types::SessionId;
use crate::certificate::{CertificateType, Identity, PeerCertificate};
use crate::cid::OwnCid;
use crate::keys::{ConnectionKeys, Role};
use crate::protect::Protection;
use crate::record::{ContentType, MAX_SEQUENCE};
use crate::replay::ReplayWindow;
use crate::shared::Arc;
use crate::suite::CipherSuite;
use crate::wire::{Reader, put_u16, put_u48, put_vector8, put_vector16};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use ebbtide_core::time::Instant;
use zeroize::Zeroizing;

/// A session in its stored form, which contains its keys.
pub type StoredSession = Zeroizing<Vec<u8>>;

/// The first byte of the stored form.
const FORMAT: u8 = 2;
/// The one before, which does not know raw public keys.
const WITHOUT_RAW_KEYS: u8 = 1;
/// The flags in the second byte.
const HAS_WINDOW: u8 = 1;
const RETURN_ROUTABILITY: u8 = 1 << 1;
const RAW_KEY: u8 = 1 << 2;
/// Sequence numbers that are reserved by one stored form: for days of a disk that is full, and for 4,000 starts.
const RESERVED: u64 = 1 << 35;
/// The bytes of a CoAP ping (RFC 7252 section 4.3) and of the Reset that answers it, before the message ID.
const PING: [u8; 2] = [0x40, 0];
const RESET: [u8; 2] = [0x70, 0];

/// Whether the program that stores sessions goes on with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storing {
    /// It does, so the stored form stays valid while it sends and receives.
    Running,
    /// It neither sends nor receives any more, so that its successor goes on without asking peers.
    Ended,
}

/// A number that is ahead of all that a session uses until [`is_to_be_stored`] holds again.
const fn reserved(next: u64) -> u64 {
    (next / RESERVED + 2) * RESERVED
}

/// Whether a session that will use this number next has to be stored again.
pub(super) const fn is_to_be_stored(next: u64) -> bool {
    next.is_multiple_of(RESERVED)
}

/// The parts of a session that are stored.
struct SessionParts {
    remote: SocketAddr,
    suite: CipherSuite,
    own_cid: OwnCid,
    peer_cid: Vec<u8>,
    keys: Zeroizing<Vec<u8>>,
    next_sequence: u64,
    window: Option<ReplayWindow>,
    return_routability: bool,
    identity: Identity,
}

impl SessionParts {
    fn of(session: &Session, storing: Storing) -> Option<Self> {
        let protection = session.protection.as_ref()?;
        if session.role != Role::Server || !session.established {
            return None;
        }
        let next = protection.next_sequence();
        let (next_sequence, window) = match storing {
            Storing::Running => (reserved(next), None),
            // Without its peer's sign of life the window says nothing.
            Storing::Ended => (next, session.ping.is_none().then(|| protection.window())),
        };
        Some(Self {
            remote: session.confirmed_remote(),
            suite: protection.suite(),
            own_cid: protection.own_cid(),
            peer_cid: protection.peer_cid().to_vec(),
            keys: protection.keys(),
            next_sequence,
            window,
            return_routability: session.return_routability,
            identity: session.identity.clone(),
        })
    }

    /// `None` if there are no sequence numbers left for another program.
    fn to_bytes(&self) -> Option<StoredSession> {
        if self.next_sequence > MAX_SEQUENCE {
            return None;
        }
        let mut out = Zeroizing::new(Vec::with_capacity(160));
        out.push(FORMAT);
        let shown = self.identity.certificate();
        let is_raw = shown.is_some_and(|shown| shown.kind == CertificateType::RawPublicKey);
        let flags = [
            (self.window.is_some(), HAS_WINDOW),
            (self.return_routability, RETURN_ROUTABILITY),
            (is_raw, RAW_KEY),
        ];
        out.push(flags.iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, flag)| all | flag));
        put_remote(&mut out, self.remote);
        put_u16(&mut out, self.suite.number());
        put_vector8(&mut out, self.own_cid.as_slice());
        put_vector8(&mut out, &self.peer_cid);
        put_vector8(&mut out, &self.keys);
        put_u48(&mut out, self.next_sequence);
        if let Some(window) = &self.window {
            out.extend_from_slice(&window.to_bytes());
        }
        put_vector16(&mut out, self.identity.name());
        put_vector16(&mut out, shown.map_or(&[], |shown| &*shown.der));
        Some(out)
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if ![FORMAT, WITHOUT_RAW_KEYS].contains(&reader.u8()?) {
            return None;
        }
        let flags = reader.u8()?;
        let remote = get_remote(&mut reader)?;
        let suite = CipherSuite::from_number(reader.u16()?)?;
        let own_cid = reader.vector8().filter(|cid| cid.len() <= OwnCid::MAX)?;
        let peer_cid = reader.vector8()?.to_vec();
        let keys = Zeroizing::new(reader.vector8()?.to_vec());
        let next_sequence = reader.u48()?;
        let window = match flags & HAS_WINDOW {
            0 => None,
            _ => Some(ReplayWindow::from_bytes(reader.array()?)),
        };
        let (name, der) = (Arc::from(reader.vector16()?), reader.vector16()?);
        let kind = match flags & RAW_KEY {
            0 => CertificateType::X509,
            _ => CertificateType::RawPublicKey,
        };
        let shown = PeerCertificate { identity: Arc::clone(&name), kind, der: der.into() };
        let identity =
            if der.is_empty() { Identity::Key(name) } else { Identity::Certificate(shown.into()) };
        reader.is_empty().then_some(Self {
            remote,
            suite,
            own_cid: OwnCid::new(own_cid),
            peer_cid,
            keys,
            next_sequence,
            window,
            return_routability: flags & RETURN_ROUTABILITY != 0,
            identity,
        })
    }
}

/// The form to store in the place of a session that is about to be restored, so that a program that ends before it
/// stores anything else is not followed by one that uses the same sequence numbers. `None` if the bytes are not valid.
#[must_use]
pub fn reserve(stored: &[u8]) -> Option<StoredSession> {
    let session = SessionParts::from_bytes(stored)?;
    let next_sequence = reserved(session.next_sequence);
    SessionParts { next_sequence, window: None, ..session }.to_bytes()
}

impl Endpoint {
    /// Notes from now on which sessions have to be stored, for [`Self::take_changed`].
    pub fn note_changes(&mut self) {
        self.changed = Some(Default::default());
    }

    /// The sessions of a server whose stored form has changed, and that form; none for those that have ended.
    pub fn take_changed(&mut self) -> Vec<(SessionId, Option<StoredSession>)> {
        let changed = self.changed.as_mut().map(core::mem::take).unwrap_or_default();
        let form = |id: SessionId| self.stored(self.table.find(id)?, Storing::Running);
        changed.into_iter().map(|id| (id, form(id))).collect()
    }

    /// All sessions of a server that receives nothing any more, in their stored form. They end here
    /// without a word, since whatever else was sent would have sequence numbers that the next
    /// program uses.
    pub fn take_all(&mut self) -> Vec<(SessionId, StoredSession)> {
        let form = |index| Some((self.table.name(index), self.stored(index, Storing::Ended)?));
        let all = self.table.indices().into_iter().filter_map(form).collect();
        self.table = Table::new();
        all
    }

    fn stored(&self, index: u32, storing: Storing) -> Option<StoredSession> {
        SessionParts::of(self.table.get(index)?, storing)?.to_bytes()
    }

    /// Goes on with a stored session under its name. Returns false if it is not valid, if its peer is not to be served
    /// any more, or if there is no room.
    pub fn restore(&mut self, now: Instant, id: SessionId, stored: &[u8]) -> bool {
        self.advance(now);
        let Some(stored) = SessionParts::from_bytes(stored) else { return false };
        let max = self.config.limits.sessions;
        let is_taken = self.table.by_cid.contains_key(&stored.own_cid)
            || stored.own_cid.is_empty() && self.table.by_address.contains_key(&stored.remote);
        let Some(keys) = ConnectionKeys::from_bytes(&stored.keys) else { return false };
        if is_taken || self.table.len() >= max || !self.still_serves(&stored.identity) {
            return false;
        }
        let mut protection = Protection::new(stored.suite, keys, stored.own_cid, &stored.peer_cid);
        protection.go_on(stored.next_sequence, stored.window.unwrap_or_default());
        let ping = stored.window.is_none().then(|| {
            let mut number = [0; 2];
            self.rng.fill_bytes(&mut number);
            number
        });
        let mut session = Session::restored(stored.remote, self.now, protection, stored.identity);
        session.return_routability = stored.return_routability;
        session.ping = ping;
        if !self.table.insert_at(id, session, max) {
            return false;
        }
        match stored.own_cid.is_empty() {
            true => self.table.by_address.insert(stored.remote, id.index),
            false => self.table.by_cid.insert(stored.own_cid, id.index),
        };
        true
    }

    /// Whether a peer would be served if it began a session now.
    fn still_serves(&mut self, identity: &Identity) -> bool {
        let clients = self.certificates.as_ref().map(|certificates| &certificates.clients);
        match (identity, clients) {
            (Identity::Key(name), clients) if name.is_empty() => {
                clients.is_some_and(|clients| !clients.is_required())
            }
            (Identity::Key(name), _) => {
                self.lookup.as_mut().is_some_and(|lookup| lookup.key(name).is_some())
            }
            (Identity::Certificate(shown), clients) => {
                clients.is_some_and(|clients| clients.still_accepts(shown))
            }
        }
    }

    /// Appends a record to `out` that asks the peer of a restored session for a sign of life, and
    /// returns where to send it. `None` if the session needs none. A driver asks before it sends
    /// anything else.
    pub fn ask(&mut self, session: SessionId, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let session = self.table.get_mut(self.table.find(session)?)?;
        let message = [PING, session.ping?].concat();
        let protection = session.protection.as_mut()?;
        protection.seal(ContentType::ApplicationData, &message, out).then_some(session.remote)
    }

    /// A record that a restored session has received before its peer has given a sign of life.
    /// Returns true if it is that.
    pub(super) fn is_sign_of_life(&mut self, index: u32, sequence: u64, plaintext: &[u8]) -> bool {
        let Some(session) = self.table.get_mut(index) else { return false };
        let (Some(ping), Some(protection)) = (session.ping, &mut session.protection) else {
            return false;
        };
        let is_answer = plaintext == [RESET, ping].concat();
        if is_answer {
            session.ping = None;
            protection.forget_before(sequence);
        }
        is_answer
    }

    /// Asks a peer for a sign of life where a record of it came from, by no more than three times its bytes.
    pub(super) fn ask_at(&mut self, index: u32, from: SocketAddr, length: usize) {
        let mut datagram = Vec::with_capacity(64);
        let name = self.table.name(index);
        if self.ask(name, &mut datagram).is_some() && datagram.len() <= 3 * length {
            self.out.push(from, &datagram);
        }
    }

    /// The stored form of a session has changed.
    pub(super) fn note_change(&mut self, index: u32) {
        let name = self.table.name(index);
        let is_server = self.table.get(index).is_some_and(|session| session.role == Role::Server);
        if let Some(changed) = self.changed.as_mut().filter(|_| is_server) {
            changed.insert(name);
        }
    }
}

fn put_remote(out: &mut Vec<u8>, remote: SocketAddr) {
    let (ip, scope) = match remote {
        SocketAddr::V4(remote) => (remote.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(remote) => (*remote.ip(), remote.scope_id()),
    };
    out.push(u8::from(remote.is_ipv6()));
    out.extend_from_slice(&ip.octets());
    put_u16(out, remote.port());
    out.extend_from_slice(&scope.to_be_bytes());
}

fn get_remote(reader: &mut Reader<'_>) -> Option<SocketAddr> {
    let is_ipv6 = reader.u8()? != 0;
    let ip = Ipv6Addr::from(reader.array::<16>()?);
    let (port, scope) = (reader.u16()?, u32::from_be_bytes(reader.array()?));
    Some(match is_ipv6 {
        true => SocketAddrV6::new(ip, port, 0, scope).into(),
        false => SocketAddr::new(IpAddr::V4(ip.to_ipv4_mapped()?), port),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn session(
        window: Option<ReplayWindow>,
        certificate: &[u8],
        kind: CertificateType,
    ) -> SessionParts {
        let name: Arc<[u8]> = Arc::from(&b"device"[..]);
        SessionParts {
            remote: "[fe80::1%3]:5684".parse().unwrap(),
            suite: CipherSuite::PskAes128Ccm8,
            own_cid: OwnCid::new(b"server"),
            peer_cid: b"peer".to_vec(),
            keys: Zeroizing::new(vec![7; 40]),
            next_sequence: 5,
            window,
            return_routability: true,
            identity: match certificate {
                [] => Identity::Key(name),
                der => Identity::Certificate(Arc::new(PeerCertificate {
                    identity: name,
                    kind,
                    der: der.into(),
                })),
            },
        }
    }

    fn of_key(window: Option<ReplayWindow>) -> SessionParts {
        session(window, b"", CertificateType::X509)
    }

    #[test]
    fn a_session_is_read_as_it_was_written_and_a_cut_one_is_refused() {
        let mut window = ReplayWindow::default();
        window.accept(9);
        let with = |kind| session(Some(window), b"certificate", kind);
        for session in
            [of_key(None), with(CertificateType::X509), with(CertificateType::RawPublicKey)]
        {
            let stored = session.to_bytes().unwrap();
            let read = SessionParts::from_bytes(&stored).unwrap();
            assert_eq!(*read.to_bytes().unwrap(), *stored);
            assert_eq!(read.remote, session.remote);
            let kind = |session: &SessionParts| session.identity.certificate().map(|it| it.kind);
            assert_eq!(kind(&read), kind(&session));
            let earlier = [&[WITHOUT_RAW_KEYS], &stored[1..]].concat();
            assert!(SessionParts::from_bytes(&earlier).is_some());
            assert!(SessionParts::from_bytes(&[&[FORMAT + 1], &stored[1..]].concat()).is_none());
            for end in 0..stored.len() {
                assert!(SessionParts::from_bytes(&stored[..end]).is_none(), "{end}");
            }
        }
    }

    #[test]
    fn what_is_stored_before_a_restored_session_goes_on_has_other_numbers_and_no_window() {
        let stored = of_key(Some(ReplayWindow::default())).to_bytes().unwrap();
        let next = SessionParts::from_bytes(&reserve(&stored).unwrap()).unwrap();
        assert!(next.next_sequence >= 5 + RESERVED && next.window.is_none());
        let last = SessionParts { next_sequence: MAX_SEQUENCE - 1, ..of_key(None) };
        assert!(reserve(&last.to_bytes().unwrap()).is_none(), "no numbers are left");
    }

    proptest! {
        #[test]
        fn stored_bytes_of_any_kind_are_read_or_refused(bytes in proptest::collection::vec(0_u8.., 0..200)) {
            let _ = reserve(&bytes);
        }
    }
}
