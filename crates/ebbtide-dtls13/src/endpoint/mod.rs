//! The sessions of DTLS 1.3 of a socket.
//!
//! The endpoint has the interface of [`ebbtide_dtls::Endpoint`], whose outputs and events it uses. Its
//! sessions have no connection IDs: a record belongs to the session with its sender's address.

mod server;
#[cfg(test)]
mod tests;

use crate::config::{Certificate, Dtls13Config};
use crate::epoch::Epoch;
use crate::hello::MAX_HANDSHAKE_DATAGRAM;
use crate::provider;
use crate::session::{Dtls13Session, Happened};
use dimpl::{Config, Dtls, DtlsCertificate};
use ebbtide_core::Shares;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_dtls::{
    CertificateCredentials, Counters, Event, Failure, Output, SendError, SessionId, SessionPeer,
    Timing,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The bit by which a session's number differs from those of DTLS 1.2, which begin with zero and never
/// reach it.
const MARK: u64 = 1 << 63;
/// The longest data of a record (RFC 8446 section 5.1).
const MAX_PLAINTEXT: usize = 16_384;
/// Datagrams that wait for the driver. Further ones are dropped, as if the network had lost them.
const MAX_WAITING: usize = 4096;
/// The longest datagram of a handshake at a client. `dimpl` pads a ClientHello to this length, so it is not
/// that of the path.
const CLIENT_MTU: usize = 512;
/// The number of datagrams that `dimpl` keeps until a message is complete. With their length this
/// bounds the memory of a handshake, and the length of a certificate, which `dimpl` puts into a
/// buffer of ours and panics if that is too short.
const MAX_INCOMPLETE: usize = 30;
/// `dimpl` sets the timer of a session with nothing to do to ten years. The driver ignores such timers.
const NEVER: Duration = Duration::from_secs(100_000_000);

/// The sessions of a socket.
pub struct Dtls13Endpoint {
    epoch: Epoch,
    limits: Dtls13Config,
    server: Option<server::Dtls13Server>,
    client: Option<Certificate>,
    /// A client's settings by the first timeout of its flights, in units of a quarter of a second; they
    /// take long to create.
    timings: BTreeMap<u64, Arc<Config>>,
    sessions: BTreeMap<u64, Dtls13Session>,
    handshakes: BTreeMap<SocketAddr, u64>,
    established: BTreeMap<SocketAddr, u64>,
    /// Handshakes by source. Numbers are given in order, so a lower one is older.
    handshake_shares: Shares<u64>,
    /// Established sessions by source, with the position in the order of use.
    session_shares: Shares<(u64, u64)>,
    due: BTreeSet<(Instant, u64)>,
    out: VecDeque<(SocketAddr, Vec<u8>)>,
    sending: Vec<u8>,
    events: VecDeque<Event>,
    counters: Counters,
    next: u64,
    uses: u64,
    buffer: Vec<u8>,
    /// Whether the last datagram had a ClientHello that offers DTLS 1.3 in a form that we cannot serve.
    declined: bool,
}

impl fmt::Debug for Dtls13Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dtls13Endpoint")
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

/// Whether a session is one of DTLS 1.3.
pub(crate) const fn is_here(session: SessionId) -> bool {
    session.as_u64() & MARK != 0
}

impl Dtls13Endpoint {
    /// A client's endpoint, with its certificate if it has one. `epoch` is the driver's instant zero.
    #[must_use]
    pub fn client(
        epoch: std::time::Instant,
        limits: Dtls13Config,
        own: Option<Certificate>,
    ) -> Self {
        Self { client: own, ..Self::new(Epoch(epoch), limits, None) }
    }

    fn new(epoch: Epoch, limits: Dtls13Config, server: Option<server::Dtls13Server>) -> Self {
        Self {
            epoch,
            limits,
            server,
            client: None,
            timings: BTreeMap::new(),
            sessions: BTreeMap::new(),
            handshakes: BTreeMap::new(),
            established: BTreeMap::new(),
            handshake_shares: Shares::new(),
            session_shares: Shares::new(),
            due: BTreeSet::new(),
            out: VecDeque::new(),
            sending: Vec::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            next: 0,
            uses: 0,
            buffer: vec![0; MAX_INCOMPLETE * MAX_HANDSHAKE_DATAGRAM],
            declined: false,
        }
    }

    /// Begins a handshake with `remote`. An earlier one with the same remote is given up.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        credentials: CertificateCredentials,
        timing: Timing,
    ) -> SessionId {
        if let Some(old) = self.handshakes.get(&remote).copied() {
            self.end(old, Failure::Replaced);
        }
        let none = || DtlsCertificate { certificate: vec![], private_key: vec![] };
        let own = self.client.as_ref().map_or_else(none, Certificate::to_dimpl);
        let CertificateCredentials { verifier, server_name, .. } = credentials;
        let config = self.settings(timing);
        let mut engine = Dtls::new_13(config, own, self.epoch.to_std(now));
        engine.set_active(true);
        let session = Dtls13Session::new(engine, remote, Some((verifier, server_name)));
        let number = self.insert(session);
        self.step(now, number, false, |_| Ok(()), &mut |_, _| ());
        SessionId::from_u64(number)
    }

    /// The settings for a client's handshake. `dimpl` varies the first timeout by a quarter, and may not
    /// make it shorter than congestion control wants it.
    fn settings(&mut self, timing: Timing) -> Arc<Config> {
        let quarters = (timing.first_timeout.as_millis() as u64 * 4 / 3).div_ceil(250).max(1);
        let quarters = quarters.next_power_of_two().min(256);
        let settings = self.timings.entry(quarters).or_insert_with(|| {
            let provider = match self.client {
                Some(_) => provider::provider(),
                None => provider::provider_without_key(),
            };
            let builder = Config::builder()
                .with_crypto_provider(provider)
                .mtu(CLIENT_MTU)
                .max_queue_rx(MAX_INCOMPLETE)
                .flight_start_rto(std::time::Duration::from_millis(250 * quarters))
                .flight_retries(timing.max_retransmit.into())
                // The number of retries decides.
                .handshake_timeout(std::time::Duration::from_secs(86_400));
            // All of this is in the ranges that it accepts.
            Arc::new(builder.build().unwrap_or_default())
        });
        Arc::clone(settings)
    }

    /// Processes a datagram, and passes the data in it to `deliver`. Returns false, having done nothing, if
    /// it is not one of DTLS 1.3.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        deliver: &mut dyn FnMut(SessionId, &[u8]),
    ) -> bool {
        self.declined = false;
        let first = datagram.first().copied().unwrap_or_default();
        let encrypted = first & 0xe0 == 0x20;
        let (handshake, established) = (self.handshakes.get(&from), self.established.get(&from));
        let number = match (handshake, established) {
            // RFC 9147 section 4: the lower bits are those of the epoch; 2 is that of handshakes.
            (Some(handshake), Some(_)) if encrypted && first & 3 == 2 => Some(*handshake),
            (_, Some(established)) if encrypted => Some(*established),
            (Some(handshake), _) => Some(*handshake),
            _ => None,
        };
        if self.server.is_some() && !encrypted {
            if let Some(taken) = self.handle_hello(now, from, datagram, deliver) {
                return taken;
            }
            // Alerts and acknowledgements; all else is DTLS 1.2. Our engines have keys from the second hello on, so messages of a
            // handshake that are not protected are those of a client that returns with DTLS 1.2, or forged.
            if number.is_none() || !matches!(first, 21 | 26) {
                return false;
            }
        }
        let Some(number) = number else {
            self.counters.records_malformed += 1;
            return true;
        };
        let is_established = self.sessions.get(&number).is_some_and(|session| session.established);
        if !is_established && datagram.len() > MAX_HANDSHAKE_DATAGRAM {
            self.counters.records_malformed += 1;
            return true;
        }
        if is_verify_request(datagram) && self.handshakes.get(&from) == Some(&number) {
            self.end(number, Failure::NoCommonVersion);
            return true;
        }
        self.step(now, number, true, |engine| engine.handle_packet(datagram), deliver);
        true
    }

    /// Appends a record with `data` to `out`; see [`ebbtide_dtls::Endpoint::send`].
    pub(crate) fn send(
        &mut self,
        now: Instant,
        session: SessionId,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<SocketAddr, SendError> {
        let number = session.as_u64();
        let Some(session) = self.sessions.get(&number) else { return Err(SendError::NoSession) };
        let remote = session.remote;
        if !session.established {
            return Err(SendError::NotEstablished);
        }
        if data.len() > MAX_PLAINTEXT {
            return Err(SendError::TooLong);
        }
        // The record does not stand in line, so that it is never one too many.
        let waiting = core::mem::take(&mut self.out);
        let send = |engine: &mut Dtls| engine.send_application_data(data).map(|_| ());
        self.step(now, number, false, send, &mut |_, _| ());
        let mut sent = core::mem::replace(&mut self.out, waiting);
        if !self.sessions.contains_key(&number) {
            return Err(SendError::SequenceNumbersUsedUp);
        }
        // The record is the first output, perhaps followed by a change of keys.
        if let Some((_, record)) = sent.pop_front() {
            out.extend_from_slice(&record);
        }
        self.out.extend(sent);
        self.touch(number);
        Ok(remote)
    }

    /// Closes a session, with a close_notify to the peer. No event follows.
    pub(crate) fn close(&mut self, now: Instant, session: SessionId) {
        let number = session.as_u64();
        self.step(now, number, false, Dtls::close, &mut |_, _| ());
        self.remove(number);
    }

    /// Ends a server's sessions with peers that are not to be served any more.
    pub(crate) fn end_sessions(
        &mut self,
        now: Instant,
        keeps: &mut dyn FnMut(SessionPeer<'_>) -> bool,
    ) {
        let mut is_to_end = |session: &Dtls13Session| {
            let peer = SessionPeer::new(&session.identity, session.certificate.as_deref());
            session.established && !keeps(peer)
        };
        let ended = self.sessions.iter().filter(|(_, session)| is_to_end(session));
        let ended: Vec<u64> = ended.map(|(number, _)| *number).collect();
        for number in ended {
            self.step(now, number, false, Dtls::close, &mut |_, _| ());
            self.end(number, Failure::NotServed);
        }
    }

    /// Processes everything that is due, and answers one hello that needs a signature.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.answer_waiting_hello(now);
        while let Some((at, number)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, number));
            if let Some(session) = self.sessions.get_mut(&number) {
                session.due = None;
            }
            self.step(now, number, false, |_| Ok(()), &mut |_, _| ());
        }
    }

    /// The next instant at which to call [`Self::handle_timeout`].
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let waiting = self.server.as_ref().and_then(|server| server.next_hello());
        self.due.first().map(|(at, _)| *at).into_iter().chain(waiting).min()
    }

    /// No hello that needs a signature is answered before this instant.
    pub(crate) fn rest_until(&mut self, until: Instant) {
        if let Some(server) = &mut self.server {
            server.rest_until(until);
        }
    }

    /// A datagram to send, or an event.
    pub(crate) fn poll_output(&mut self) -> Option<Output<'_>> {
        let Some((to, datagram)) = self.out.pop_front() else {
            return self.events.pop_front().map(Output::Event);
        };
        self.sending = datagram;
        Some(Output::Transmit { to, datagram: &self.sending })
    }

    /// Whether [`Self::poll_output`] returns anything.
    pub(crate) fn has_output(&self) -> bool {
        !self.out.is_empty() || !self.events.is_empty()
    }

    pub(crate) fn remote(&self, session: SessionId) -> Option<SocketAddr> {
        Some(self.sessions.get(&session.as_u64())?.remote)
    }

    pub(crate) fn identity(&self, session: SessionId) -> Option<Arc<[u8]>> {
        Some(Arc::clone(&self.sessions.get(&session.as_u64())?.identity))
    }

    pub(crate) fn certificate(&self, session: SessionId) -> Option<Arc<[u8]>> {
        self.sessions.get(&session.as_u64())?.certificate.clone()
    }

    /// Whether the last datagram had a ClientHello for DTLS 1.3 that has to be served with DTLS 1.2.
    pub(crate) const fn has_declined(&self) -> bool {
        self.declined
    }

    pub(crate) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) const fn counters(&self) -> Counters {
        self.counters
    }

    fn insert(&mut self, session: Dtls13Session) -> u64 {
        let number = MARK | self.next;
        self.next += 1;
        self.handshakes.insert(session.remote, number);
        self.handshake_shares.add(session.remote.ip(), number);
        self.sessions.insert(number, session);
        number
    }

    /// One step of a session, and its consequences.
    fn step(
        &mut self,
        now: Instant,
        number: u64,
        answers: bool,
        step: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>,
        deliver: &mut dyn FnMut(SessionId, &[u8]),
    ) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        let name = SessionId::from_u64(number);
        let (out, events) = (&mut self.out, &mut self.events);
        let (mut ended, mut established) = (None, false);
        let clock = (now, self.epoch.to_std(now));
        let next =
            session.step(clock, answers, &mut self.buffer, step, &mut |session, what| match what {
                Happened::Datagram(datagram) if out.len() < MAX_WAITING => {
                    out.push_back((session.remote, datagram.to_vec()));
                }
                Happened::Datagram(_) => {}
                Happened::Data(data) => deliver(name, data),
                Happened::Answered(sample) => {
                    events.push_back(Event::RoundTrip { session: name, sample });
                }
                Happened::Established => established = true,
                Happened::Ended(reason) => ended = Some(reason),
            });
        let due = next.map(|at| self.epoch.instant_of(at)).filter(|at| *at - now < NEVER);
        if session.due != due {
            if let Some(old) = session.due {
                self.due.remove(&(old, number));
            }
            // A timer that has expired already must not keep the driver busy.
            session.due = due.map(|at| at.max(now + Duration::from_millis(1)));
            self.due.extend(session.due.map(|at| (at, number)));
        }
        if let Some(reason) = ended {
            self.end(number, reason);
        } else if established {
            self.on_established(number);
        } else if answers {
            self.touch(number);
        }
    }

    fn on_established(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.cookie = None;
        let remote = session.remote;
        self.handshakes.remove(&remote);
        self.handshake_shares.remove(remote.ip(), number);
        self.session_shares.add(remote.ip(), (session.used, number));
        if let Some(old) = self.established.insert(remote, number) {
            self.end(old, Failure::Replaced);
            self.established.insert(remote, number);
        }
        self.touch(number);
        self.counters.established += 1;
        let session = SessionId::from_u64(number);
        self.events.push_back(Event::Established { session, resumed: false });
        while self.session_shares.len() > self.limits.sessions {
            let Some((_, oldest)) = self.session_shares.surplus_of_all() else { break };
            self.counters.evicted += 1;
            self.end(oldest, Failure::Evicted);
        }
    }

    /// Makes an established session the most recently used one.
    fn touch(&mut self, number: u64) {
        let Some(session) = self.sessions.get_mut(&number).filter(|s| s.established) else {
            return;
        };
        let before = session.used;
        self.uses += 1;
        session.used = self.uses;
        self.session_shares.renew(session.remote.ip(), (before, number), (self.uses, number));
    }

    fn end(&mut self, number: u64, reason: Failure) {
        let Some(Dtls13Session { remote, identity, established, .. }) = self.remove(number) else {
            return;
        };
        if !established {
            self.counters.handshakes_failed += 1;
            match reason {
                Failure::Certificate(_) => self.counters.certificates_refused += 1,
                Failure::WrongKey => self.counters.wrong_keys += 1,
                _ => {}
            }
        }
        let session = SessionId::from_u64(number);
        self.events.push_back(Event::Ended { session, remote, identity, established, reason });
    }

    fn remove(&mut self, number: u64) -> Option<Dtls13Session> {
        let session = self.sessions.remove(&number)?;
        if let Some(at) = session.due {
            self.due.remove(&(at, number));
        }
        self.handshake_shares.remove(session.remote.ip(), number);
        self.session_shares.remove(session.remote.ip(), (session.used, number));
        for of in [&mut self.handshakes, &mut self.established] {
            if of.get(&session.remote) == Some(&number) {
                of.remove(&session.remote);
            }
        }
        Some(session)
    }
}

/// Whether a datagram begins with a HelloVerifyRequest, by which a server answers that speaks DTLS 1.2
/// alone.
fn is_verify_request(datagram: &[u8]) -> bool {
    datagram.first() == Some(&22) && datagram.get(13) == Some(&3)
}
