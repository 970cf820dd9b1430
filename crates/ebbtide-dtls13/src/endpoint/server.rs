//! The server's side of DTLS 1.3: ClientHellos, and the limit on handshakes.

use super::{Dtls13Endpoint, MAX_INCOMPLETE, MAX_WAITING};
use crate::config::{Dtls13Config, ServedCertificate};
use crate::epoch::Epoch;
use crate::hello::{Hello, MAX_HANDSHAKE_DATAGRAM};
use crate::provider::{provider, with_cookie};
use crate::retry::{Confirmed, Retry};
use crate::selection::Selection;
use crate::session::Dtls13Session;
use dimpl::{Config, Dtls};
use ebbtide_core::time::Instant;
use ebbtide_core::turns::Turns;
use ebbtide_dtls::{CertificateVerifier, Failure, Limits, SessionId, Timing};
use std::net::SocketAddr;
use std::sync::Arc;

/// The settings of a server for its handshakes, and its cookies.
pub(super) struct Dtls13Server {
    retry: Retry,
    served: ServedCertificate,
    clients: Option<Arc<dyn CertificateVerifier>>,
    config: Arc<Config>,
    /// The numbers of the cipher suites with pre-shared keys that DTLS 1.2 serves.
    key_suites: Vec<u16>,
    /// Hellos with correct cookies. Their answers need a signature and a key agreement, so they wait for their turn,
    /// as those of DTLS 1.2 do.
    waiting: Turns<WaitingHello>,
    rest: Instant,
}

/// A second ClientHello whose cookie was correct.
struct WaitingHello {
    from: SocketAddr,
    confirmed: Confirmed,
    datagram: Vec<u8>,
}

impl Dtls13Server {
    /// When the next hello that waits may be answered.
    pub(super) fn next_hello(&self) -> Option<Instant> {
        self.waiting.due().map(|due| due.max(self.rest))
    }

    pub(super) fn rest_until(&mut self, until: Instant) {
        self.rest = self.rest.max(until);
    }

    fn take_hello(&mut self, now: Instant) -> Option<WaitingHello> {
        if self.rest > now { None } else { self.waiting.pop(now) }
    }
}

impl Dtls13Endpoint {
    /// A server's endpoint. `epoch` is the driver's instant zero; `clients` verifies the
    /// certificates of clients, which then must have one. `secret`, which must be unpredictable,
    /// makes the cookies, and no datagram of a handshake is longer than `mtu` bytes. `None` if
    /// `dimpl` refuses the configuration.
    #[must_use]
    pub fn server(
        epoch: std::time::Instant,
        limits: Dtls13Config,
        served: ServedCertificate,
        clients: Option<Arc<dyn CertificateVerifier>>,
        secret: [u8; 32],
        mtu: usize,
    ) -> Option<Self> {
        let config = Config::builder()
            .with_crypto_provider(provider())
            .mtu(mtu)
            .max_queue_rx(MAX_INCOMPLETE)
            .require_client_certificate(clients.is_some())
            // As with DTLS 1.2 a client that lacks an answer repeats its own flight.
            .flight_start_rto(Timing::SERVER.first_timeout)
            .handshake_timeout(limits.handshake_timeout)
            .build()
            .ok()?;
        let server = Dtls13Server {
            retry: Retry::new(secret),
            served,
            clients,
            config: Arc::new(config),
            key_suites: Vec::new(),
            waiting: Turns::new(Limits::default().signatures),
            rest: Instant::ZERO,
        };
        Some(Self::new(Epoch(epoch), limits, Some(server)))
    }

    /// Leaves clients that may have a pre-shared key for one of these cipher suites to DTLS 1.2.
    pub(crate) fn leave_keys(&mut self, suites: Vec<u16>) {
        if let Some(server) = &mut self.server {
            server.key_suites = suites;
        }
    }

    /// Handles a datagram that begins with a ClientHello for DTLS 1.3. `None` if it does not;
    /// `Some(false)` if it has to be answered by DTLS 1.2.
    pub(super) fn handle_hello(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        deliver: &mut dyn FnMut(SessionId, &[u8]),
    ) -> Option<bool> {
        let server = self.server.as_mut()?;
        let hello = Hello::parse(datagram)?;
        // A HelloRetryRequest commits the client to DTLS 1.3, where we have no pre-shared keys.
        let is_served = |selection: &Selection| {
            selection.group.is_none() || !hello.offers_any(&server.key_suites)
        };
        let selection = Some(&hello).filter(|_| datagram.len() <= MAX_HANDSHAKE_DATAGRAM);
        let selection = selection.and_then(Selection::of).filter(is_served);
        let selection = selection.filter(|_| server.served.current().is_some());
        let Some(selection) = selection else {
            self.declined = true;
            return Some(false);
        };
        if hello.has_cookie_of_1_2 {
            // Somebody else has sent the HelloVerifyRequest with that cookie.
            return Some(false);
        }
        if hello.cookie.is_none() {
            self.counters.hellos_verified += 1;
            if self.out.len() < MAX_WAITING {
                self.out.push_back((from, server.retry.answer(now, from, &hello, selection)));
            }
            return Some(true);
        }
        let Some(confirmed) = server.retry.confirm(now, from, &hello) else {
            self.counters.records_malformed += 1;
            return Some(true);
        };
        let cookie = confirmed.cookie;
        let known = self.handshakes.get(&from).copied();
        let is_repeated =
            known.and_then(|number| self.sessions.get(&number)?.cookie) == Some(cookie);
        if let Some(number) = known.filter(|_| is_repeated) {
            let repeat = |engine: &mut Dtls| with_cookie(cookie, || engine.handle_packet(datagram));
            self.step(now, number, true, repeat, deliver);
            return Some(true);
        }
        if !server.waiting.any_of(from.ip(), |waiting| waiting.from == from) {
            let hello = WaitingHello { from, confirmed, datagram: datagram.into() };
            if server.waiting.push(now, from.ip(), hello).is_err() {
                // The client repeats it, as if the network had lost it.
                self.counters.hellos_withheld += 1;
            }
        }
        Some(true)
    }

    /// Begins the handshake of the next hello that waits, if it may be answered now.
    pub(super) fn answer_waiting_hello(&mut self, now: Instant) {
        let Some(server) = &mut self.server else { return };
        let Some(WaitingHello { from, confirmed, datagram }) = server.take_hello(now) else {
            return;
        };
        let Some(own) = server.served.current() else { return };
        let Confirmed { cookie, first } = confirmed;
        let expected = server.clients.clone().map(|verifier| (verifier, None));
        let engine = Dtls::new_13(server.config.clone(), own.to_dimpl(), self.epoch.to_std(now));
        self.counters.signatures += 1;
        if let Some(number) = self.handshakes.get(&from).copied() {
            self.end(number, Failure::Replaced);
        }
        let most = self.limits.handshakes.max(1);
        while let Some(surplus) = self.handshake_shares.surplus(from.ip(), most) {
            self.counters.evicted += 1;
            self.end(surplus, Failure::Evicted);
        }
        let mut session = Dtls13Session::new(engine, from, expected);
        session.cookie = Some(cookie);
        let number = self.insert(session);
        // The engine answers the first ClientHello as the one did that was dropped; the client has that
        // answer already.
        let waiting = self.out.len();
        let again = |engine: &mut Dtls| with_cookie(cookie, || engine.handle_packet(&first));
        // A ClientHello carries no data.
        self.step(now, number, false, again, &mut |_, _| ());
        self.out.truncate(waiting);
        let proceed = |engine: &mut Dtls| with_cookie(cookie, || engine.handle_packet(&datagram));
        self.step(now, number, false, proceed, &mut |_, _| ());
    }
}
