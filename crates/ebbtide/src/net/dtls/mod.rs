//! DTLS between a socket and its endpoint, which turns records into messages and messages into
//! records.
//!
//! A socket either speaks DTLS or does not; one that does has [`Sessions`]. Its endpoint
//! identifies peers by their sessions, so that congestion control, exchanges and observations
//! survive a change of the peer's address.

mod client;
pub(crate) mod config;

pub(crate) use ebbtide_dtls::{StoredSession, reserve};

use super::beside;
use super::clock::{Clock, seeded_for_secrets};
use super::peer::PeerInfo;
use super::socket::Outbound;
use crate::proved_identity::ProvedIdentity;
use client::ServerLinks;
use config::{DtlsBind, DtlsConfig};
use ebbtide_core::endpoint::Sent;
use ebbtide_core::time::{Instant, Micros};
use ebbtide_core::{PeerId, SessionKey};
use ebbtide_dtls::{CertificateType, Endpoint, SendError, SessionId, SessionPeer};
#[cfg(feature = "dtls13")]
use ebbtide_dtls13::{Dtls13Endpoint, DualEndpoint as DtlsEngine};
#[cfg(feature = "dtls13")]
use rand_core::Rng as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

#[cfg(not(feature = "dtls13"))]
type DtlsEngine = Endpoint;

/// The role of a socket.
pub(crate) enum Side {
    /// It opens sessions.
    Client,
    /// It accepts sessions.
    Server(DtlsBind),
}

/// The sessions of a socket.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(super) endpoint: DtlsEngine,
    clock: Clock,
    /// The instant of the present call. A clock read for each record would take longer than some of its encryption.
    pub(super) now: Instant,
    /// The number of the socket.
    pub(super) socket: u32,
    /// Present at a client.
    pub(super) links: Option<ServerLinks>,
    /// The next instant at which to call the sessions.
    pub(super) deadline: Option<Instant>,
    /// A buffer for one datagram, reused.
    record: Vec<u8>,
    /// Messages that cannot be sent any more.
    pub(super) unsent: Vec<Sent>,
}

/// A message that is to be sent over a session.
#[derive(Debug)]
pub(crate) struct Queued<'m> {
    /// The local address to send from, if that matters.
    pub(crate) local: Option<IpAddr>,
    pub(crate) datagram: &'m [u8],
    pub(crate) what: Sent,
}

/// Messages that came in one datagram. The buffers are used again for the next one.
#[derive(Debug, Default)]
pub(crate) struct OpenedMessages {
    bytes: Vec<u8>,
    messages: Vec<(SessionKey, Range<usize>)>,
}

impl OpenedMessages {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.messages.clear();
    }

    /// The session and the bytes of each message.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (SessionKey, &[u8])> {
        let bytes = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        self.messages.iter().map(move |(session, range)| (*session, bytes(range)))
    }
}

impl Sessions {
    pub(crate) fn new(
        side: Side,
        config: &DtlsConfig,
        socket: u32,
        clock: Clock,
    ) -> io::Result<Self> {
        #[cfg(feature = "dtls13")]
        let v13 = v13(&side, config, clock)?;
        let rng = seeded_for_secrets()?;
        let (mut endpoint, links) = match side {
            Side::Client => {
                let links =
                    ServerLinks::new(config.credentials.clone(), config.certificates.clone());
                (Endpoint::new(config.client.clone(), rng), Some(links))
            }
            Side::Server(DtlsBind { keys, certificates, .. }) => {
                #[allow(unused_mut, reason = "another version is a feature")]
                let mut config = config.server.clone();
                #[cfg(feature = "dtls13")]
                {
                    config.serves_dtls13 |= v13.is_some();
                }
                let mut endpoint = Endpoint::new(config, rng);
                if let Some(keys) = keys {
                    endpoint.accept(Box::new(keys));
                }
                if let Some(certificates) = certificates {
                    endpoint.accept_certificates(certificates);
                }
                (endpoint, None)
            }
        };
        if let Some(log) = config.key_log.clone() {
            endpoint.log_keys(Box::new(move |line: &str| log.log(line)));
        }
        #[cfg(feature = "dtls13")]
        let endpoint = DtlsEngine::new(endpoint, v13);
        Ok(Self {
            endpoint,
            clock,
            now: clock.now(),
            socket,
            links,
            deadline: None,
            record: Vec::new(),
            unsent: Vec::new(),
        })
    }

    /// Sets the instant of the present call.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// The key of a session: of a client's, that of the link with its server, which outlives the session.
    pub(super) fn key(&self, session: SessionId) -> Option<SessionKey> {
        let number = match &self.links {
            Some(links) => links.number(session)?,
            None => session.as_u64(),
        };
        Some(SessionKey::new(self.socket, number))
    }

    /// The session with this key.
    fn session(&self, key: SessionKey) -> Option<SessionId> {
        match &self.links {
            Some(links) => links.session(key.number()),
            None => Some(SessionId::from_u64(key.number())),
        }
    }

    /// The address of a peer.
    pub(crate) fn address(&self, peer: PeerId) -> Option<SocketAddr> {
        let PeerId::Session(key) = peer else { return peer.address() };
        match &self.links {
            Some(links) => links.remote(key.number()),
            None => self.endpoint.remote(SessionId::from_u64(key.number())),
        }
    }

    /// The peer of a session.
    pub(crate) fn peer(&self, peer: PeerId) -> Option<PeerInfo> {
        let PeerId::Session(key) = peer else { return None };
        let session = self.session(key)?;
        let address = self.endpoint.remote(session)?;
        let identity = self.endpoint.identity(session).filter(|identity| !identity.is_empty());
        let identity = identity.map(ProvedIdentity::Shared);
        let shown = self.endpoint.certificate(session);
        Some(match self.endpoint.certificate_type(session) {
            Some(CertificateType::RawPublicKey) => {
                PeerInfo { identity, raw_key: shown, ..PeerInfo::at(address) }
            }
            _ => PeerInfo { identity, certificate: shown, ..PeerInfo::at(address) },
        })
    }

    /// Records that a peer has answered a message of ours which was first sent so long ago.
    pub(crate) fn answered(&mut self, peer: PeerId, after: Micros) {
        if let PeerId::Session(key) = peer
            && let Some(session) = self.session(key)
        {
            // The span is rounded down.
            let nanos = after.to_duration().as_nanos() as u64 + 1000;
            let sent = self.now.as_nanos().saturating_sub(nanos);
            self.endpoint.confirm_address(session, Instant::from_nanos(sent));
        }
    }

    /// The number of sessions, including those in a handshake.
    #[cfg_attr(
        not(feature = "dtls13"),
        expect(clippy::missing_const_for_fn, reason = "with dtls13 it cannot be const")
    )]
    pub(crate) fn count(&self) -> usize {
        self.endpoint.sessions()
    }

    /// The counters of the sessions.
    pub(crate) fn counters(&self) -> ebbtide_dtls::Counters {
        self.endpoint.counters()
    }

    /// Decrypts a datagram, and adds its messages to `opened`.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        opened: &mut OpenedMessages,
    ) {
        self.advance(now);
        self.record.clear();
        self.record.extend_from_slice(datagram);
        let (links, socket) = (&self.links, self.socket);
        self.endpoint.handle_datagram(now, from, &mut self.record, &mut |session, message| {
            let number = match links {
                Some(links) => links.number(session),
                None => Some(session.as_u64()),
            };
            if let Some(number) = number {
                let start = opened.bytes.len();
                opened.bytes.extend_from_slice(message);
                let session = SessionKey::new(socket, number);
                opened.messages.push((session, start..opened.bytes.len()));
            }
        });
    }

    /// Encrypts a message and queues it. Without a session it waits for one at a client, and fails
    /// at a server.
    pub(crate) fn send(&mut self, out: &mut Outbound<Sent>, to: SessionKey, message: Queued<'_>) {
        let Queued { local, datagram, what } = message;
        let sent = match self.session(to) {
            Some(session) => {
                // The peer of a restored session is asked for a sign of life first.
                let ask = |record: &mut Vec<u8>| self.endpoint.ask(session, record).ok_or(());
                let _ = out.append(local, Sent::Reply, ask);
                out.append(local, what, |record| {
                    self.endpoint.send(self.now, session, datagram, record)
                })
            }
            None => Err(SendError::NoSession),
        };
        match (sent, &mut self.links) {
            (Ok(()), _) => {}
            (Err(_), Some(links)) => links.keep(to, datagram, what, &mut self.unsent),
            (Err(_), None) => self.unsent.push(what),
        }
    }

    /// Ends sessions with peers that are not to be served any more.
    pub(crate) fn end_sessions(&mut self, keeps: &mut dyn FnMut(SessionPeer<'_>) -> bool) {
        let now = self.now;
        self.endpoint.end_sessions(now, keeps);
    }

    /// Notes from now on which sessions have to be stored.
    pub(crate) fn note_changes(&mut self) {
        self.endpoint.note_changes();
    }

    /// The sessions that have to be stored again, by number; none in the place of those that have ended.
    pub(crate) fn take_changed(&mut self) -> Vec<(u64, Option<StoredSession>)> {
        let changed = self.endpoint.take_changed();
        changed.into_iter().map(|(session, stored)| (session.as_u64(), stored)).collect()
    }

    /// All sessions, which end here without a word, for another process that goes on with them.
    pub(crate) fn take_all(&mut self) -> Vec<(u64, StoredSession)> {
        let all = self.endpoint.take_all();
        all.into_iter().map(|(session, stored)| (session.as_u64(), stored)).collect()
    }

    /// Goes on with a stored session. Returns false if that is not possible.
    pub(crate) fn restore(&mut self, now: Instant, number: u64, stored: &[u8]) -> bool {
        self.advance(now);
        self.endpoint.restore(now, SessionId::from_u64(number), stored)
    }

    /// The next instant at which to call the sessions.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Handles the timers of the sessions.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        if self.deadline.is_some_and(|at| at <= now) {
            let (began, signatures) = (self.clock.now(), self.endpoint.counters().signatures);
            self.endpoint.handle_timeout(now);
            if self.endpoint.counters().signatures > signatures
                && let Some(until) = beside::rest(began, self.clock.now())
            {
                self.endpoint.rest_until(until);
            }
        }
    }
}

/// The sessions of DTLS 1.3 of a socket that has them.
#[cfg(feature = "dtls13")]
fn v13(side: &Side, config: &DtlsConfig, clock: Clock) -> io::Result<Option<Dtls13Endpoint>> {
    let Some(limits) = config.dtls13.clone() else { return Ok(None) };
    let bind = match (side, &config.certificates) {
        (Side::Server(bind), _) => bind,
        (Side::Client, Some(certificates)) if config.credentials.is_none() => {
            return certificates
                .for_v13()
                .map(|own| Some(Dtls13Endpoint::client(clock.epoch(), limits, own)));
        }
        (Side::Client, _) => return Ok(None),
    };
    let Some((served, clients)) = bind.for_v13()? else { return Ok(None) };
    let mut secret = [0; 32];
    seeded_for_secrets()?.fill_bytes(&mut secret);
    let mtu = config.server.mtu;
    Dtls13Endpoint::server(clock.epoch(), limits, served, clients, secret, mtu)
        .map(Some)
        .ok_or_else(|| io::Error::other("the library for DTLS 1.3 refuses its configuration"))
}
