//! Carries out the output of the DTLS sessions of a socket, and applies its consequences to the endpoint.

use super::dtls::Queued;
use super::pending::Answer;
use super::socket_state::SocketState;
use ebbtide_core::endpoint::Sent;
use ebbtide_core::stream::{self, Closed};
use ebbtide_core::time::{Instant, Micros};
use ebbtide_core::{ExchangeId, PeerId, SessionKey};
use ebbtide_dtls::{Event, Failure, Output, RoundTrip, SessionId, Timing};
use std::io;
use std::net::IpAddr;

impl SocketState {
    /// Carries out the output of the sessions. Returns true if the endpoint may have new output as
    /// well.
    pub(super) fn pump(&mut self, from: Option<IpAddr>) -> bool {
        let mut changed = false;
        loop {
            changed |= self.fail_unsent();
            self.begin_wanted();
            let Some(sessions) = &mut self.dtls else { return false };
            match sessions.endpoint.poll_output() {
                Output::Transmit { to, datagram } => self.out.push(to, from, datagram, Sent::Reply),
                Output::Event(event) => {
                    changed = true;
                    self.on_session(event);
                }
                Output::Timeout(at) => {
                    if let Some((remote, reason)) = sessions.endpoint.take_refused() {
                        tracing::warn!(%remote, %reason, "DTLS handshake refused");
                    }
                    sessions.deadline = at;
                    return changed;
                }
            }
        }
    }

    fn fail_unsent(&mut self) -> bool {
        let Some(sessions) = self.dtls.as_mut().filter(|sessions| !sessions.unsent.is_empty())
        else {
            return false;
        };
        let unsent = core::mem::take(&mut sessions.unsent);
        let now = sessions.now;
        for what in &unsent {
            let (Sent::Exchange { exchange, .. } | Sent::Probe { exchange, .. }) = *what else {
                continue;
            };
            let answer = self.ended(|| "the DTLS session has ended".into());
            self.end(exchange, answer);
            self.endpoint.handle_send_error(now, exchange);
        }
        true
    }

    /// Begins the handshakes that are needed. A flight counts as a message of the peer's scope,
    /// whose congestion control decides how long to wait.
    fn begin_wanted(&mut self) {
        let Some(sessions) = &mut self.dtls else { return };
        let (now, socket) = (sessions.now, sessions.socket);
        let Some(links) = &mut sessions.links else { return };
        while let Some((number, link, credentials)) = links.next_wanted() {
            let Some(credentials) = credentials else {
                link.failed = Some(Failure::UnknownIdentity);
                self.wake.append(&mut link.wakers);
                continue;
            };
            let peer = SessionKey::new(socket, number).into();
            // That of a handshake whose place this one takes.
            if let Some(flight) = link.flight.take() {
                self.endpoint.end_flight(now, peer, &flight, None);
            }
            link.flight = self.endpoint.begin_flight(now, peer);
            let timing = timing(link.flight.as_ref().map(|flight| flight.timeout()));
            let session = sessions.endpoint.connect(now, link.remote, credentials, timing);
            links.begun(number, session);
        }
    }

    fn on_session(&mut self, event: Event) {
        match event {
            Event::RoundTrip { session, sample } => self.on_round_trip(session, &sample),
            Event::Established { session, resumed } => {
                self.on_established(session);
                let sessions = self.dtls.as_ref();
                let remote = sessions.and_then(|sessions| sessions.endpoint.remote(session));
                if let Some(remote) = remote {
                    tracing::debug!(%remote, resumed, "DTLS session established");
                }
            }
            Event::Ended { session, remote, identity, established, reason } => {
                let identity = String::from_utf8_lossy(&identity).escape_debug().to_string();
                if established {
                    tracing::debug!(%remote, identity, %reason, "DTLS session ended");
                } else {
                    tracing::warn!(%remote, identity, %reason, "DTLS handshake failed");
                }
                self.on_ended(session, established, reason);
            }
            Event::Doubted { session } => {
                if let Some(sessions) = &mut self.dtls {
                    sessions.doubt(session);
                }
            }
            Event::AddressChanged { session, from, to } => {
                tracing::debug!(%from, %to, "DTLS peer moved");
                self.repeat_all(session);
            }
            _ => {}
        }
    }

    /// Congestion control learns from the answer to a flight, and decides how long to wait for the
    /// answer to the next one.
    fn on_round_trip(&mut self, session: SessionId, sample: &RoundTrip) {
        let Some(sessions) = &mut self.dtls else { return };
        let (now, socket) = (sessions.now, sessions.socket);
        let Some((number, link)) = sessions.links.as_mut().and_then(|links| links.of(session))
        else {
            return;
        };
        let Some(flight) = link.flight.take() else { return };
        let scope = SessionKey::new(socket, number).into();
        self.endpoint.end_flight(now, scope, &flight, Some(&sample.into()));
        link.flight = self.endpoint.begin_flight(now, scope);
        let timing = timing(link.flight.as_ref().map(|flight| flight.timeout()));
        sessions.endpoint.set_timing(session, timing);
    }

    fn on_established(&mut self, session: SessionId) {
        let Some(sessions) = &mut self.dtls else { return };
        let now = sessions.now;
        let Some(key) = sessions.key(session) else { return };
        let saved = sessions.endpoint.saved_session(session);
        let Some((_, link)) = sessions.links.as_mut().and_then(|links| links.of(session)) else {
            return;
        };
        let is_replaced = link.was_established;
        (link.established, link.was_established, link.restarts) = (true, true, 0);
        link.saved = saved;
        let waiting = link.take_waiting();
        self.wake.append(&mut link.wakers);
        // What waited is sent now.
        let repeats = is_replaced && waiting.is_empty();
        if is_replaced {
            // The server may know nothing of observations.
            link.replaced += 1;
            self.wake.append(&mut link.watchers);
        }
        let flight = link.flight.take();
        if is_replaced {
            self.fail_unrepeatable(now, key, &waiting);
        }
        let Some(sessions) = &mut self.dtls else { return };
        for (message, what) in waiting {
            // A Confirmable message that its sender has given up could arrive after those that follow it.
            if let Sent::Exchange { exchange, timeout, .. } = what
                && timeout > Micros::ZERO
                && self.endpoint.has_ended(exchange)
            {
                continue;
            }
            let queued = Queued { local: None, datagram: &message, what };
            sessions.send(&mut self.out, key, queued);
        }
        if let Some(flight) = flight {
            self.endpoint.end_flight(now, key.into(), &flight, None);
        }
        if repeats {
            self.repeat_all(session);
        }
    }

    fn on_ended(&mut self, session: SessionId, established: bool, reason: Failure) {
        let Some(sessions) = &mut self.dtls else { return };
        let now = sessions.now;
        let Some(key) = sessions.key(session) else { return };
        if let Some(links) = &mut sessions.links {
            if let Some((_, link)) = links.of(session)
                // Another session may have taken its place.
                && link.session == Some(session)
            {
                if !established {
                    (link.failed, link.restarts) = (Some(reason), 0);
                    link.take_waiting();
                }
                self.wake.append(&mut link.wakers);
                if let Some(flight) = link.flight.take() {
                    self.endpoint.end_flight(now, key.into(), &flight, None);
                }
            }
            if !established && reason == Failure::Replaced {
                // What waits for a session waits for the new one.
                links.ended(session);
                return;
            }
            if !established || matches!(reason, Failure::Refused(_)) {
                links.forbid_resumption(session);
            }
            links.ended(session);
            if established && reason == Failure::ClosedByPeer {
                // A server that restarts says goodbye.
                links.want_if_watched(key.number());
            }
            if established {
                // The next transmission of an open exchange begins a new session.
                return;
            }
        }
        self.fail_all(now, key.into(), reason);
    }

    /// The answer to a call whose session has ended. A server cannot begin another one.
    fn ended(&self, reason: impl FnOnce() -> Box<dyn core::error::Error + Send + Sync>) -> Answer {
        match self.dtls.as_ref().is_some_and(|sessions| sessions.links.is_none()) {
            true => Answer::Gone,
            false => Answer::Network(io::Error::other(reason())),
        }
    }

    /// Sends again what a session has not answered: it went to the address that the peer had.
    fn repeat_all(&mut self, session: SessionId) {
        let Some(sessions) = &self.dtls else { return };
        let (now, Some(key)) = (sessions.now, sessions.key(session)) else { return };
        for exchange in self.pending.with_remote(key.into()) {
            self.endpoint.repeat_now(now, exchange);
        }
        self.endpoint.handle_timeout(now);
    }

    /// Fails the requests that were transmitted over the session whose place another one has taken,
    /// unless they are idempotent: message IDs belong to a session (RFC 7252 section 9.1.1), so the
    /// server would take a copy for another request. A request whose first transmission is still
    /// waiting is not among them.
    fn fail_unrepeatable(&mut self, now: Instant, key: SessionKey, waiting: &[(Vec<u8>, Sent)]) {
        let is_first = |of: ExchangeId| {
            waiting.iter().any(|(_, what)| {
                matches!(what, Sent::Exchange { exchange, ordinal: 0, .. } if *exchange == of)
            })
        };
        for exchange in self.pending.with_remote(key.into()) {
            if self.endpoint.may_be_done_twice(exchange) && !is_first(exchange) {
                let reason = stream::Failure::Closed(Closed::Lost);
                self.end(exchange, Answer::Ended { reason, diagnostic: None });
                self.endpoint.handle_send_error(now, exchange);
            }
        }
    }

    /// Fails the exchanges with a peer whose session has ended and who cannot be reached.
    fn fail_all(&mut self, now: Instant, remote: PeerId, reason: Failure) {
        for exchange in self.pending.with_remote(remote) {
            let answer = self.ended(|| reason.into());
            self.end(exchange, answer);
            self.endpoint.handle_send_error(now, exchange);
        }
    }
}

/// The schedule of a flight's retransmissions, given the first timeout that a control has chosen.
fn timing(first: Option<Micros>) -> Timing {
    let default = Timing::default();
    first.map_or(default, |first| default.beginning_with(first.into()))
}
