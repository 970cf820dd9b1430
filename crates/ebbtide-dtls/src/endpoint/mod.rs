//! Any number of sessions over one socket, as client and as server.

mod costly;
mod path;
mod receive;
mod stored;
mod table;
#[cfg(test)]
mod tests;
mod types;
mod unknown;

pub use stored::{StoredSession, reserve};
pub use types::{Counters, Event, Output, SendError, SessionId, SessionPeer};

use crate::alert::{self, AlertDescription, AlertLevel};
use crate::certificate::{CertificateType, PeerCertificate, ServerCertificates};
use crate::cid::OwnCid;
use crate::config::{Config, PskLookup, Timing};
use crate::cookie::Cookies;
use crate::failure::Failure;
use crate::flight::RoundTrip;
use crate::handshake::{ClientCredentials, Context, Handshake};
use crate::key_log::KeyLog;
use crate::keys::Role;
use crate::outbox::Outbox;
use crate::record::{ContentType, MAX_PLAINTEXT};
use crate::session::{SavedSession, SessionCache};
use crate::shared::Arc;
use crate::suite::CipherSuite;
use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::SocketAddr;
use costly::WaitingHello;
use ebbtide_core::time::Instant;
use ebbtide_core::turns::Turns;
use rand_core::CryptoRng;
use table::{Session, Table};
use unknown::UnknownAnswers;

/// A DTLS endpoint. The [crate](crate) documentation states how a driver uses it.
pub struct Endpoint {
    config: Config,
    rng: Box<dyn CryptoRng + Send>,
    lookup: Option<Box<dyn PskLookup + Send>>,
    certificates: Option<ServerCertificates>,
    key_log: Option<Box<KeyLog>>,
    dtls13_declined: bool,
    now: Instant,
    cookies: Cookies,
    cache: SessionCache,
    table: Table,
    costly: Turns<WaitingHello>,
    /// No hello that needs a signature is answered before.
    rest: Instant,
    out: Outbox,
    events: VecDeque<Event>,
    round_trips: Vec<RoundTrip>,
    refused: Option<(SocketAddr, Failure)>,
    unknown: UnknownAnswers,
    /// The sessions that have to be stored again, if they are stored.
    changed: Option<BTreeSet<SessionId>>,
    counters: Counters,
}

impl Endpoint {
    /// Creates an endpoint without sessions. `rng` is its only source of randomness: random
    /// values, connection IDs, session IDs, cookies. Except in tests and simulations it must be
    /// unpredictable.
    #[must_use]
    pub fn new(mut config: Config, mut rng: Box<dyn CryptoRng + Send>) -> Self {
        let mut secret = [0; 32];
        rng.fill_bytes(&mut secret);
        config.cid_length = config.cid_length.map(|length| length.min(OwnCid::MAX as u8));
        // Enough remains to tell sessions apart.
        config.cid_prefix.truncate(config.cid_length.unwrap_or(0).saturating_sub(4).into());
        config.suites.retain(|suite| suite.is_available());
        // A ClientHello must not be fragmented, because a server without state cannot reassemble
        // it.
        config.mtu = config.mtu.max(256);
        let limits = config.limits;
        Self {
            cookies: Cookies::new(secret, config.cookie_period),
            cache: SessionCache::new(limits.resumable, config.resumption_lifetime),
            table: Table::new(),
            costly: Turns::new(limits.signatures),
            rest: Instant::ZERO,
            out: Outbox::new(limits.outbox_bytes),
            config,
            rng,
            lookup: None,
            certificates: None,
            key_log: None,
            dtls13_declined: false,
            now: Instant::ZERO,
            events: VecDeque::new(),
            round_trips: Vec::new(),
            refused: None,
            unknown: UnknownAnswers::default(),
            changed: None,
            counters: Counters::default(),
        }
    }

    /// Accepts handshakes with the keys of `lookup`. Without this call and
    /// [`Self::accept_certificates`] ClientHellos are ignored.
    pub fn accept(&mut self, lookup: Box<dyn PskLookup + Send>) {
        self.lookup = Some(lookup);
    }

    /// The cipher suites with which it accepts handshakes with keys.
    pub fn key_suites(&self) -> impl Iterator<Item = CipherSuite> {
        let suites = self.config.suites.iter().filter(|_| self.lookup.is_some());
        suites.copied().filter(|suite| !suite.has_certificates())
    }

    /// Accepts handshakes with certificates; nothing else about those with keys changes. Without the
    /// feature `certificates` there is no [`CertifiedKey`](crate::CertifiedKey) to show.
    pub fn accept_certificates(&mut self, certificates: ServerCertificates) {
        self.certificates = Some(certificates);
    }

    /// Passes the secrets of each handshake from now on to `log`, as lines of an NSS key log. They
    /// allow anyone to decrypt the session.
    pub fn log_keys(&mut self, log: Box<KeyLog>) {
        self.key_log = Some(log);
    }

    /// Whether ClientHellos from now on that offer DTLS 1.3 were declined by the implementation that serves that
    /// version ([`Config::serves_dtls13`]), for example for lack of a common group. Only their ServerHellos lack the
    /// mark of RFC 8446 section 4.1.3, because their clients would refuse it. Any other hello that offers DTLS 1.3 and
    /// arrives here has been tampered with.
    pub const fn decline_dtls13(&mut self, declined: bool) {
        self.dtls13_declined = declined;
    }

    /// Sets the retransmission timing of a session's handshake, from the next flight on.
    pub fn set_timing(&mut self, session: SessionId, timing: Timing) {
        if let Some(index) = self.table.find(session)
            && let Some(handshake) = self.table.get_mut(index).and_then(|s| s.handshake.as_mut())
        {
            handshake.set_timing(timing);
        }
    }

    /// Begins a handshake with `remote`, whose flights are retransmitted according to `timing`. An
    /// earlier handshake with the same remote is given up.
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        credentials: impl Into<ClientCredentials>,
        timing: Timing,
    ) -> SessionId {
        self.advance(now);
        if let Some(old) = self.table.handshakes.get(&remote).copied() {
            self.end(old, Failure::Replaced, None);
        }
        self.make_room(remote);
        let own_cid = self.fresh_cid();
        let mut cx = self.context(remote);
        let handshake = Handshake::connect(&mut cx, credentials.into(), timing, own_cid);
        let index = self.begin(Session::new(remote, now, handshake));
        self.table.name(index)
    }

    /// The driver's next action: first all datagrams, then all events, and the timeout last.
    pub fn poll_output(&mut self) -> Output<'_> {
        if self.out.is_empty() {
            return match self.events.pop_front() {
                Some(event) => Output::Event(event),
                None => {
                    let costly = self.costly_due();
                    Output::Timeout(self.table.next_timeout().into_iter().chain(costly).min())
                }
            };
        }
        match self.out.pop() {
            Some((to, datagram)) => Output::Transmit { to, datagram },
            None => Output::Timeout(None),
        }
    }

    /// Processes everything that is due at `now`, and at most one hello whose answer needs a signature. Call it
    /// at the instant that [`Self::poll_output`] returned.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        while let Some(index) = self.table.pop_due(self.now) {
            let Some(session) = self.table.get_mut(index) else { continue };
            let now = self.now;
            let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
            if session.path.as_ref().is_some_and(|path| due(path.due())) {
                self.on_path_timeout(index);
                continue;
            }
            if session.established {
                // The peer no longer retransmits the flight before the last one.
                session.handshake = None;
                self.table.rearm(index);
                continue;
            }
            self.step(index, |handshake, cx| handshake.handle_timeout(cx));
        }
        self.answer_costly();
    }

    /// Appends a record with `data` to `out`, which the caller sends to the returned address.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was appended then.
    pub fn send(
        &mut self,
        now: Instant,
        session: SessionId,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<SocketAddr, SendError> {
        self.advance(now);
        let index = self.table.find(session).ok_or(SendError::NoSession)?;
        let session = self.table.get_mut(index).ok_or(SendError::NoSession)?;
        if data.len() > MAX_PLAINTEXT {
            return Err(SendError::TooLong);
        }
        let Some(protection) = session.protection.as_mut().filter(|_| session.established) else {
            return Err(SendError::NotEstablished);
        };
        let (start, remote) = (out.len(), session.remote);
        if !protection.seal(ContentType::ApplicationData, data, out) {
            self.end(index, Failure::SequenceNumbersUsedUp, None);
            return Err(SendError::SequenceNumbersUsedUp);
        }
        let record = out.get(start..).unwrap_or_default();
        let mut to = remote;
        if let Some(path) = session.path.as_mut().filter(|path| path.is_open()) {
            // A stranger whose copies of the peer's records are the first to arrive would otherwise
            // get all that the peer is to get. The peer takes one of the two.
            if path.spend(record.len()) {
                self.out.push(path.previous(), record);
            } else {
                self.counters.unverified_withheld += 1;
                to = path.previous();
            }
        }
        let next = protection.next_sequence();
        self.table.touch(index);
        if stored::is_to_be_stored(next) {
            self.note_change(index);
        }
        Ok(to)
    }

    /// Closes a session: sends a close_notify to the peer and drops the state. No event follows.
    pub fn close(&mut self, now: Instant, session: SessionId) {
        self.advance(now);
        if let Some(index) = self.table.find(session) {
            self.send_alert(index, AlertLevel::Warning, AlertDescription::CLOSE_NOTIFY);
            self.remove(index);
        }
    }

    /// Ends the sessions that began as a server with peers that are not to be served any more, such
    /// as those whose key was removed. An event follows for each. Neither they nor earlier ones of
    /// such peers can be resumed.
    pub fn end_sessions(&mut self, now: Instant, mut keeps: impl FnMut(SessionPeer<'_>) -> bool) {
        self.advance(now);
        for index in self.table.indices() {
            let Some(session) = self.table.get(index) else { continue };
            let peer = SessionPeer::of(&session.identity);
            if session.role == Role::Server && session.established && !keeps(peer) {
                self.end(index, Failure::NotServed, Some(AlertDescription::ACCESS_DENIED));
            }
        }
        self.cache.retain(&mut |identity| keeps(SessionPeer::of(identity)));
    }

    /// The address of a session's peer.
    #[must_use]
    pub fn remote(&self, session: SessionId) -> Option<SocketAddr> {
        Some(self.table.get(self.table.find(session)?)?.remote)
    }

    /// The identity of a session: with a key, the client's; with certificates, the name that the verifier
    /// found in the peer's. It is empty if the peer has not shown one.
    #[must_use]
    pub fn identity(&self, session: SessionId) -> Option<Arc<[u8]>> {
        Some(Arc::clone(self.table.get(self.table.find(session)?)?.identity.name()))
    }

    /// The certificate or the raw public key, as SubjectPublicKeyInfo, that the peer has shown in
    /// the full handshake, in DER. A client that resumes a session sees none.
    #[must_use]
    pub fn certificate(&self, session: SessionId) -> Option<Arc<[u8]>> {
        Some(Arc::clone(&self.shown(session)?.der))
    }

    /// The form of what [`Self::certificate`] returns.
    #[must_use]
    pub fn certificate_type(&self, session: SessionId) -> Option<CertificateType> {
        Some(self.shown(session)?.kind)
    }

    fn shown(&self, session: SessionId) -> Option<&PeerCertificate> {
        self.table.get(self.table.find(session)?)?.identity.certificate()
    }

    /// Whether its handshake is complete.
    #[must_use]
    pub fn is_established(&self, session: SessionId) -> bool {
        self.table
            .find(session)
            .and_then(|index| self.table.get(index))
            .is_some_and(|s| s.established)
    }

    /// The cipher suite of a session with keys.
    #[must_use]
    pub fn suite(&self, session: SessionId) -> Option<crate::suite::CipherSuite> {
        let session = self.table.get(self.table.find(session)?)?;
        Some(session.protection.as_ref()?.suite())
    }

    /// Whether records of a session carry connection IDs: the peer's records to us, and our
    /// records to the peer.
    #[must_use]
    pub fn connection_ids(&self, session: SessionId) -> Option<(bool, bool)> {
        let session = self.table.get(self.table.find(session)?)?;
        let protection = session.protection.as_ref()?;
        Some((!protection.own_cid().is_empty(), protection.has_peer_cid()))
    }

    /// The secrets with which the session can be resumed later, at a client and if the server
    /// allows it.
    #[must_use]
    pub fn saved_session(&self, session: SessionId) -> Option<SavedSession> {
        self.table.get(self.table.find(session)?)?.saved.as_deref().cloned()
    }

    /// Records that the peer has answered a message of the application that was first sent at `sent`. If
    /// it has a new address since before then, and does not support RFC 9853, this confirms the address.
    pub fn confirm_address(&mut self, session: SessionId, sent: Instant) {
        let name = session;
        if let Some(index) = self.table.find(session)
            && let Some(session) = self.table.get_mut(index)
            && let Some(path) = session.path.take_if(|path| path.is_confirmed_by(sent))
        {
            let (from, to) = (path.previous(), session.remote);
            self.counters.addresses_changed += 1;
            self.events.push_back(Event::AddressChanged { session: name, from, to });
            self.table.rearm(index);
            self.note_change(index);
        }
    }

    /// The number of sessions and handshakes with state.
    #[must_use]
    pub const fn sessions(&self) -> usize {
        self.table.len()
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The last client that was refused without keeping state, and the reason.
    pub const fn take_refused(&mut self) -> Option<(SocketAddr, Failure)> {
        self.refused.take()
    }

    /// The latest time seen: if the clock jumps back, time stands still instead.
    fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// The context of one step of a handshake with `remote`.
    fn context(&mut self, remote: SocketAddr) -> Context<'_> {
        Context {
            now: self.now,
            on_message: Handshake::on_message,
            rng: &mut *self.rng,
            config: &self.config,
            lookup: self.lookup.as_deref_mut(),
            certificates: self.certificates.as_ref(),
            cache: Some(&mut self.cache),
            out: &mut self.out,
            remote,
            handshakes: self.table.handshakes.len(),
            key_log: self.key_log.as_deref_mut(),
            dtls13_declined: self.dtls13_declined,
            round_trips: &mut self.round_trips,
            protection: None,
        }
    }

    fn begin(&mut self, session: Session) -> u32 {
        let (remote, own_cid) = (session.remote, session.own_cid());
        let index = self.table.insert(session);
        if let Some(old) = self.table.handshakes.insert(remote, index) {
            self.end(old, Failure::Replaced, None);
            self.table.handshakes.insert(remote, index);
        }
        let began = self.table.get(index).map_or(self.now, |session| session.began);
        self.table.handshake_shares.add(remote.ip(), (began, index));
        if !own_cid.is_empty() {
            self.table.by_cid.insert(own_cid, index);
        }
        index
    }

    /// Enforces the limits before another handshake begins. A source that has as many handshakes as are free to
    /// others loses its own oldest one.
    fn make_room(&mut self, from: SocketAddr) {
        let limits = self.config.limits;
        let max = limits.handshakes.max(1);
        while let Some((_, index)) = self.table.handshake_shares.surplus(from.ip(), max) {
            self.evict(index);
        }
        let max = limits.sessions.max(1);
        while self.table.len() >= max {
            let Some(idle) = self.table.surplus(max).or(self.table.least_recent()) else { break };
            self.evict(idle);
        }
    }

    fn evict(&mut self, index: u32) {
        self.counters.evicted += 1;
        self.send_alert(index, AlertLevel::Warning, AlertDescription::CLOSE_NOTIFY);
        self.end(index, Failure::Evicted, None);
    }

    /// A connection ID that no session uses.
    fn fresh_cid(&mut self) -> OwnCid {
        let length = usize::from(self.config.cid_length.unwrap_or(0));
        if length == 0 {
            return OwnCid::EMPTY;
        }
        loop {
            let mut bytes = [0; OwnCid::MAX];
            self.rng.fill_bytes(&mut bytes);
            for (byte, prefix) in bytes.iter_mut().zip(&self.config.cid_prefix) {
                *byte = *prefix;
            }
            let cid = OwnCid::new(bytes.get(..length).unwrap_or_default());
            if !self.table.by_cid.contains_key(&cid) {
                return cid;
            }
        }
    }

    /// Queues an alert to a session's peer, encrypted if there are keys and the handshake is
    /// complete.
    fn send_alert(&mut self, index: u32, level: AlertLevel, description: AlertDescription) {
        let Some(session) = self.table.get_mut(index) else { return };
        let body = alert::encode(level, description);
        match (&mut session.protection, &mut session.handshake) {
            (Some(protection), _) if session.established => {
                let mut datagram = Vec::with_capacity(64);
                if protection.seal(ContentType::Alert, &body, &mut datagram) {
                    self.out.push(session.remote, &datagram);
                }
            }
            (_, Some(handshake)) => handshake.send_alert(&mut self.out, session.remote, body),
            _ => {}
        }
    }

    /// Ends a session and reports it to the application.
    fn end(&mut self, index: u32, reason: Failure, alert: Option<AlertDescription>) {
        if let Some(description) = alert {
            let level = match reason {
                Failure::ClosedByPeer => AlertLevel::Warning,
                _ => AlertLevel::Fatal,
            };
            self.send_alert(index, level, description);
        }
        let name = self.table.name(index);
        let Some(session) = self.remove(index) else { return };
        if !session.established {
            self.counters.handshakes_failed += 1;
            self.counters.unknown_identities += u64::from(reason == Failure::UnknownIdentity);
            self.counters.wrong_keys += u64::from(reason == Failure::WrongKey);
            self.counters.certificates_refused +=
                u64::from(matches!(reason, Failure::Certificate(_)));
        }
        self.events.push_back(Event::Ended {
            session: name,
            remote: session.remote,
            identity: Arc::clone(session.identity.name()),
            established: session.established,
            reason,
        });
    }

    /// A session with a fatal alert must not be resumed (RFC 5246 section 7.2.2).
    fn forget_resumption(&mut self, index: u32) {
        if let Some(id) = self.table.get(index).and_then(|session| session.resumption) {
            self.cache.remove(&id);
        }
    }

    fn leave_handshakes(&mut self, index: u32) {
        let Some(session) = self.table.get(index) else { return };
        let (remote, began_at, began) = (session.remote, session.began_at, session.began);
        self.table.handshake_shares.remove(began_at.ip(), (began, index));
        if self.table.handshakes.get(&remote) == Some(&index) {
            self.table.handshakes.remove(&remote);
        }
    }

    fn remove(&mut self, index: u32) -> Option<Box<Session>> {
        self.leave_handshakes(index);
        self.note_change(index);
        let session = self.table.remove(index)?;
        let own_cid = session.own_cid();
        if self.table.by_cid.get(&own_cid) == Some(&index) {
            self.table.by_cid.remove(&own_cid);
        }
        if self.table.by_address.get(&session.remote) == Some(&index) {
            self.table.by_address.remove(&session.remote);
        }
        Some(session)
    }
}

impl core::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint")
            .field("now", &self.now)
            .field("sessions", &self.table.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
