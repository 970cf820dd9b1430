//! The sessions of both versions behind one interface, that of [`ebbtide_dtls::Endpoint`]. A ClientHello
//! decides which version serves it; later datagrams belong to the version that has the session.

use super::v13;
use ebbtide_core::time::Instant;
use ebbtide_dtls::{
    ClientCredentials, Counters, Endpoint, Failure, Output, SavedSession, SendError, SessionId,
    SessionPeer, Timing,
};
use std::net::SocketAddr;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct DtlsEngine {
    v12: Endpoint,
    /// A client with it uses it for all servers with certificates.
    v13: Option<v13::Dtls13Endpoint>,
}

impl DtlsEngine {
    pub(super) const fn new(v12: Endpoint, v13: Option<v13::Dtls13Endpoint>) -> Self {
        Self { v12, v13 }
    }

    /// The sessions of DTLS 1.3, if this is one of them.
    fn of(&self, session: SessionId) -> Option<&v13::Dtls13Endpoint> {
        self.v13.as_ref().filter(|_| v13::is_here(session))
    }

    fn of_mut(&mut self, session: SessionId) -> Option<&mut v13::Dtls13Endpoint> {
        self.v13.as_mut().filter(|_| v13::is_here(session))
    }

    pub(super) fn connect(
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

    pub(super) fn handle_datagram(
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

    pub(super) fn send(
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

    /// Sessions of DTLS 1.3 go on.
    pub(super) fn end_sessions(
        &mut self,
        now: Instant,
        keeps: &mut dyn FnMut(SessionPeer<'_>) -> bool,
    ) {
        self.v12.end_sessions(now, keeps);
    }

    pub(super) fn tell_unknown(&mut self, to: SocketAddr) {
        self.v12.tell_unknown(to);
    }

    pub(super) fn close(&mut self, now: Instant, session: SessionId) {
        match self.of_mut(session) {
            Some(v13) => v13.close(now, session),
            None => self.v12.close(now, session),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(v13) = &mut self.v13 {
            v13.handle_timeout(now);
        }
        self.v12.handle_timeout(now);
    }

    /// Both versions sign hellos one at a time.
    pub(super) fn rest_until(&mut self, until: Instant) {
        self.v12.rest_until(until);
    }

    pub(super) fn poll_output(&mut self) -> Output<'_> {
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

    pub(super) fn remote(&self, session: SessionId) -> Option<SocketAddr> {
        self.of(session).map_or_else(|| self.v12.remote(session), |v13| v13.remote(session))
    }

    pub(super) fn identity(&self, session: SessionId) -> Option<Arc<[u8]>> {
        self.of(session).map_or_else(|| self.v12.identity(session), |v13| v13.identity(session))
    }

    pub(super) fn certificate(&self, session: SessionId) -> Option<Arc<[u8]>> {
        self.of(session)
            .map_or_else(|| self.v12.certificate(session), |v13| v13.certificate(session))
    }

    /// There is none of DTLS 1.3: `dimpl` does not resume sessions.
    pub(super) fn saved_session(&self, session: SessionId) -> Option<SavedSession> {
        self.v12.saved_session(session)
    }

    /// The timing of `dimpl` is set when a handshake begins.
    pub(super) fn set_timing(&mut self, session: SessionId, timing: Timing) {
        self.v12.set_timing(session, timing);
    }

    /// The address of a session of DTLS 1.3 never changes.
    pub(super) fn confirm_address(&mut self, session: SessionId, sent: Instant) {
        self.v12.confirm_address(session, sent);
    }

    pub(super) fn sessions(&self) -> usize {
        match &self.v13 {
            Some(v13) => self.v12.sessions() + v13.sessions(),
            None => self.v12.sessions(),
        }
    }

    pub(super) fn counters(&self) -> Counters {
        let mut sum = self.v12.counters();
        if let Some(v13) = &self.v13 {
            let more = v13.counters();
            sum.hellos_verified += more.hellos_verified;
            sum.established += more.established;
            sum.handshakes_failed += more.handshakes_failed;
            sum.wrong_keys += more.wrong_keys;
            sum.certificates_refused += more.certificates_refused;
            sum.evicted += more.evicted;
            sum.records_malformed += more.records_malformed;
        }
        sum
    }

    pub(super) const fn take_refused(&mut self) -> Option<(SocketAddr, Failure)> {
        self.v12.take_refused()
    }
}
