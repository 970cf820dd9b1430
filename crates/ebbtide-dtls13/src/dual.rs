//! The sessions of both versions behind one interface, that of [`ebbtide_dtls::Endpoint`]. A ClientHello
//! decides which version serves it; later datagrams belong to the version that has the session.

use crate::endpoint::{Dtls13Endpoint, is_here};
use ebbtide_core::time::Instant;
use ebbtide_dtls::{
    CertificateType, CipherSuite, ClientCredentials, Counters, Endpoint, Failure, Output,
    SavedSession, SendError, SessionId, SessionPeer, StoredSession, Timing,
};
use std::net::SocketAddr;
use std::sync::Arc;

/// Sessions of DTLS 1.2 and 1.3 of one socket.
#[derive(Debug)]
pub struct DualEndpoint {
    v12: Endpoint,
    v13: Option<Dtls13Endpoint>,
}

impl DualEndpoint {
    /// Creates an endpoint. `v12`, which accepts its keys and certificates already, serves what is not DTLS 1.3. A
    /// client with `v13` uses it for all servers with certificates.
    #[must_use]
    pub fn new(v12: Endpoint, mut v13: Option<Dtls13Endpoint>) -> Self {
        if let Some(v13) = &mut v13 {
            v13.leave_keys(v12.key_suites().map(CipherSuite::number).collect());
        }
        Self { v12, v13 }
    }

    /// The sessions of DTLS 1.3, if this is one of them.
    fn of(&self, session: SessionId) -> Option<&Dtls13Endpoint> {
        self.v13.as_ref().filter(|_| is_here(session))
    }

    fn of_mut(&mut self, session: SessionId) -> Option<&mut Dtls13Endpoint> {
        self.v13.as_mut().filter(|_| is_here(session))
    }

    /// Begins a handshake with `remote`, whose flights are retransmitted according to `timing`:
    /// over DTLS 1.3 with certificates, if there is an endpoint for it. See [`Endpoint::connect`].
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        credentials: ClientCredentials,
        timing: Timing,
    ) -> SessionId {
        match (&mut self.v13, credentials) {
            (Some(v13), ClientCredentials::Certificate(credentials)) => {
                v13.connect(now, remote, credentials, timing)
            }
            (_, credentials) => self.v12.connect(now, remote, credentials, timing),
        }
    }

    /// Processes a datagram, and passes the data in it to `deliver`. See [`Endpoint::handle_datagram`].
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &mut [u8],
        deliver: &mut dyn FnMut(SessionId, &[u8]),
    ) {
        let taken = match &mut self.v13 {
            Some(v13) => {
                let taken = v13.handle_datagram(now, from, datagram, deliver);
                self.v12.decline_dtls13(v13.has_declined());
                taken
            }
            None => false,
        };
        if !taken {
            self.v12.handle_datagram(now, from, datagram, deliver);
        }
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
        match self.of_mut(session) {
            Some(v13) => v13.send(now, session, data, out),
            None => self.v12.send(now, session, data, out),
        }
    }

    /// Ends sessions with peers that are not to be served any more. See [`Endpoint::end_sessions`].
    pub fn end_sessions(&mut self, now: Instant, keeps: &mut dyn FnMut(SessionPeer<'_>) -> bool) {
        if let Some(v13) = &mut self.v13 {
            v13.end_sessions(now, keeps);
        }
        self.v12.end_sessions(now, keeps);
    }

    /// Notes which sessions of DTLS 1.2 have to be stored. Those of DTLS 1.3 are not: `dimpl` does not give their keys.
    pub fn note_changes(&mut self) {
        self.v12.note_changes();
    }

    /// See [`Endpoint::take_changed`].
    pub fn take_changed(&mut self) -> Vec<(SessionId, Option<StoredSession>)> {
        self.v12.take_changed()
    }

    /// See [`Endpoint::take_all`].
    pub fn take_all(&mut self) -> Vec<(SessionId, StoredSession)> {
        self.v12.take_all()
    }

    /// See [`Endpoint::restore`].
    pub fn restore(&mut self, now: Instant, session: SessionId, stored: &[u8]) -> bool {
        !is_here(session) && self.v12.restore(now, session, stored)
    }

    /// See [`Endpoint::ask`].
    pub fn ask(&mut self, session: SessionId, out: &mut Vec<u8>) -> Option<SocketAddr> {
        match self.of(session) {
            Some(_) => None,
            None => self.v12.ask(session, out),
        }
    }

    /// Closes a session: sends a close_notify to the peer and drops the state. No event follows.
    pub fn close(&mut self, now: Instant, session: SessionId) {
        match self.of_mut(session) {
            Some(v13) => v13.close(now, session),
            None => self.v12.close(now, session),
        }
    }

    /// Processes everything that is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(v13) = &mut self.v13 {
            v13.handle_timeout(now);
        }
        self.v12.handle_timeout(now);
    }

    /// Signs no hello before `until`. See [`Endpoint::rest_until`]. Both versions sign hellos one at a time.
    pub fn rest_until(&mut self, until: Instant) {
        if let Some(v13) = &mut self.v13 {
            v13.rest_until(until);
        }
        self.v12.rest_until(until);
    }

    /// The driver's next action: a datagram, an event, or, last, the timeout.
    pub fn poll_output(&mut self) -> Output<'_> {
        let due = self.v13.as_ref().and_then(|v13| v13.next_timeout());
        if let Some(v13) = self.v13.as_mut().filter(|v13| v13.has_output())
            && let Some(output) = v13.poll_output()
        {
            return output;
        }
        match self.v12.poll_output() {
            Output::Timeout(at) => Output::Timeout(at.into_iter().chain(due).min()),
            output => output,
        }
    }

    /// The address of a session's peer.
    #[must_use]
    pub fn remote(&self, session: SessionId) -> Option<SocketAddr> {
        self.of(session).map_or_else(|| self.v12.remote(session), |v13| v13.remote(session))
    }

    /// The identity of a session's peer. See [`Endpoint::identity`].
    #[must_use]
    pub fn identity(&self, session: SessionId) -> Option<Arc<[u8]>> {
        self.of(session).map_or_else(|| self.v12.identity(session), |v13| v13.identity(session))
    }

    /// The certificate or raw public key that the peer has shown, in DER.
    #[must_use]
    pub fn certificate(&self, session: SessionId) -> Option<Arc<[u8]>> {
        self.of(session)
            .map_or_else(|| self.v12.certificate(session), |v13| v13.certificate(session))
    }

    /// The form of what [`Self::certificate`] returns.
    #[must_use]
    pub fn certificate_type(&self, session: SessionId) -> Option<CertificateType> {
        match self.of(session) {
            Some(v13) => v13.certificate(session).map(|_| CertificateType::X509),
            None => self.v12.certificate_type(session),
        }
    }

    /// The secrets with which a session can be resumed later. There is none of DTLS 1.3: `dimpl`
    /// does not resume sessions.
    #[must_use]
    pub fn saved_session(&self, session: SessionId) -> Option<SavedSession> {
        self.v12.saved_session(session)
    }

    /// Sets the retransmission timing of a handshake of DTLS 1.2. The timing of `dimpl` is set when a handshake begins.
    pub fn set_timing(&mut self, session: SessionId, timing: Timing) {
        self.v12.set_timing(session, timing);
    }

    /// Records that the peer has answered a message that was first sent at `sent`. See
    /// [`Endpoint::confirm_address`]. The address of a session of DTLS 1.3 never changes.
    pub fn confirm_address(&mut self, session: SessionId, sent: Instant) {
        self.v12.confirm_address(session, sent);
    }

    /// The number of sessions and handshakes with state.
    #[must_use]
    pub fn sessions(&self) -> usize {
        match &self.v13 {
            Some(v13) => self.v12.sessions() + v13.sessions(),
            None => self.v12.sessions(),
        }
    }

    /// The counters of both versions, added.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut sum = self.v12.counters();
        if let Some(v13) = &self.v13 {
            sum += v13.counters();
        }
        sum
    }

    /// The last client that was refused without keeping state, and the reason.
    pub const fn take_refused(&mut self) -> Option<(SocketAddr, Failure)> {
        self.v12.take_refused()
    }
}
