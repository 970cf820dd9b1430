//! The server's side of DTLS 1.3: ClientHellos, and the limit on handshakes.

use super::{Dtls13Endpoint, MAX_INCOMPLETE, MAX_WAITING};
use crate::config::{Dtls13Config, ServedCertificate};
use crate::epoch::Epoch;
use crate::hello::{Hello, MAX_HANDSHAKE_DATAGRAM};
use crate::provider::{provider, with_cookie};
use crate::retry::{Confirmed, Retry};
use crate::session::Dtls13Session;
use dimpl::{Config, Dtls};
use ebbtide_core::time::Instant;
use ebbtide_dtls::{CertificateVerifier, Failure, SessionId, Timing};
use std::net::SocketAddr;
use std::sync::Arc;

/// The settings of a server for its handshakes, and its cookies.
pub(super) struct Dtls13Server {
    retry: Retry,
    served: ServedCertificate,
    clients: Option<Arc<dyn CertificateVerifier>>,
    config: Arc<Config>,
}

impl Dtls13Endpoint {
    /// A server's endpoint. `epoch` is the driver's instant zero; `clients` verifies the certificates of clients, which then
    /// must have one. `secret`, which must be unpredictable, makes the cookies, and no datagram of a handshake is longer than
    /// `mtu` bytes. `None` if `dimpl` refuses the configuration.
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
        let server =
            Dtls13Server { retry: Retry::new(secret)?, served, clients, config: Arc::new(config) };
        Some(Self::new(Epoch(epoch), limits, Some(server)))
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
        let own = server.served.current();
        let fits =
            datagram.len() <= MAX_HANDSHAKE_DATAGRAM && hello.has_key_share && hello.has_suite;
        let Some(own) = own.filter(|_| fits) else {
            self.declined = true;
            return Some(false);
        };
        if hello.has_cookie_of_1_2 || hello.cookie.is_none() {
            let std_now = self.epoch.to_std(now);
            let answer = server.retry.answer(now, std_now, from, &hello);
            // For example because it has no signature algorithm that we support. This holds for the hello with the
            // cookie of DTLS 1.2 as well.
            self.declined = answer.is_none();
            // If not, somebody else has sent the HelloVerifyRequest with that cookie.
            let Some(answer) = answer.filter(|_| !hello.has_cookie_of_1_2) else {
                return Some(false);
            };
            self.counters.hellos_verified += 1;
            if self.out.len() < MAX_WAITING {
                self.out.push_back((from, answer.to_vec()));
            }
            return Some(true);
        }
        let Some(Confirmed { cookie, first }) = server.retry.confirm(now, from, &hello) else {
            self.counters.records_malformed += 1;
            return Some(true);
        };
        let known = self.handshakes.get(&from).copied();
        let is_repeated =
            known.and_then(|number| self.sessions.get(&number)?.cookie) == Some(cookie);
        if let Some(number) = known.filter(|_| is_repeated) {
            let repeat = |engine: &mut Dtls| with_cookie(cookie, || engine.handle_packet(datagram));
            self.step(now, number, true, repeat, deliver);
            return Some(true);
        }
        let expected = server.clients.clone().map(|verifier| (verifier, None));
        let engine = Dtls::new_13(server.config.clone(), own.to_dimpl(), self.epoch.to_std(now));
        if let Some(number) = known {
            self.end(number, Failure::Replaced);
        }
        while self.handshakes.len() >= self.limits.handshakes.max(1) {
            // Numbers are given in order, so the oldest handshake has the lowest.
            let Some(oldest) = self.handshakes.values().min().copied() else { break };
            self.counters.evicted += 1;
            self.end(oldest, Failure::Evicted);
        }
        let mut session = Dtls13Session::new(engine, from, expected);
        session.cookie = Some(cookie);
        let number = self.insert(session);
        // The engine answers the first ClientHello as the one did that was dropped; the client has that
        // answer already.
        let waiting = self.out.len();
        let again = |engine: &mut Dtls| with_cookie(cookie, || engine.handle_packet(&first));
        self.step(now, number, false, again, deliver);
        self.out.truncate(waiting);
        let proceed = |engine: &mut Dtls| with_cookie(cookie, || engine.handle_packet(datagram));
        self.step(now, number, false, proceed, deliver);
        Some(true)
    }
}
