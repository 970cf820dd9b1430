//! Sessions that a server does not know any more, as after a restart, and what it tells their peers.
//!
//! RFC 6347 section 4.1.2.7 lets an endpoint answer a record that it cannot verify by a fatal bad_record_mac. There
//! are no keys to protect that alert, so a client takes it for a hint.

use super::Endpoint;
use super::types::Event;
use crate::alert::{self, AlertDescription, AlertLevel};
use crate::handshake::LINGER;
use crate::keys::Role;
use crate::record::{self, ContentType, DTLS_1_2, RecordHeader};
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;
use ebbtide_core::time::Instant;

/// The answers to records of unknown sessions within the present second.
#[derive(Debug, Default)]
pub(super) struct UnknownAnswers {
    began: Instant,
    count: u32,
    /// The length of the datagram that is being handled, until it is answered.
    pub(super) datagram: usize,
}

/// Bytes of a plain record with an alert.
const ALERT: usize = 15;

impl Endpoint {
    /// A record that no session here can read. A server answers it unless it is an alert.
    pub(super) fn on_unknown(&mut self, from: SocketAddr, header: &RecordHeader) {
        self.counters.records_malformed += 1;
        let is_server = self.lookup.is_some() || self.certificates.is_some();
        // Finished, of a handshake that was lost, is one of handshake.
        let is_told = matches!(
            header.content,
            ContentType::ApplicationData | ContentType::Tls12Cid | ContentType::Handshake
        );
        if is_server && is_told {
            self.tell_unknown_within_limit(from);
        }
    }

    /// A peer has repeated the last flight of a handshake that was complete here so long ago that its answer is gone.
    /// A copy that the network has delayed is younger.
    pub(super) fn on_late_finished(&mut self, index: u32, from: SocketAddr) {
        let session = self.table.get(index).filter(|session| session.role == Role::Server);
        let age = session.map(|session| self.now.saturating_since(session.began));
        if age.is_some_and(|age| age >= LINGER) {
            self.tell_unknown_within_limit(from);
        }
    }

    /// By fewer bytes than it received, and once for all records of a datagram, so that a forged address gains nothing.
    pub(super) fn tell_unknown_within_limit(&mut self, from: SocketAddr) {
        if core::mem::take(&mut self.unknown.datagram) <= ALERT {
            return;
        }
        if self.now.saturating_since(self.unknown.began) >= Duration::from_secs(1) {
            self.unknown = UnknownAnswers { began: self.now, ..UnknownAnswers::default() };
        }
        if self.unknown.count < self.config.limits.unknown_answered {
            self.unknown.count += 1;
            self.tell_unknown(from);
        }
    }

    /// Tells the peer of a session that ended without its knowledge, with a server that was here
    /// before, that the session is not known. A peer that has a handshake here already is not told.
    /// The caller limits how often.
    pub fn tell_unknown(&mut self, to: SocketAddr) {
        if self.table.handshakes.contains_key(&to) {
            return;
        }
        let mut datagram = Vec::with_capacity(16);
        let body = alert::encode(AlertLevel::Fatal, AlertDescription::BAD_RECORD_MAC);
        record::plain(&mut datagram, ContentType::Alert, DTLS_1_2, 0, &body);
        self.out.push(to, &datagram);
    }

    /// An alert that is not protected, from a peer that has a session.
    pub(super) fn on_plain_alert(
        &mut self,
        from: SocketAddr,
        level: AlertLevel,
        description: AlertDescription,
    ) {
        if (level, description) != (AlertLevel::Fatal, AlertDescription::BAD_RECORD_MAC) {
            return;
        }
        if let Some(index) = self.table.by_address.get(&from).copied()
            && self.table.get(index).is_some_and(|session| session.role == Role::Client)
        {
            self.doubt(index);
        }
    }

    /// The server of a handshake says that it does not know a session. That may answer a record of
    /// the session before, or be forged: it counts once the server has not answered our last flight
    /// in time.
    pub(super) fn on_unknown_handshake(&mut self, index: u32) {
        let session = self.table.get(index);
        let handshake = session.and_then(|session| session.handshake.as_ref());
        if handshake.is_some_and(|handshake| handshake.is_unanswered()) {
            self.doubt(index);
        }
    }

    fn doubt(&mut self, index: u32) {
        let doubted = Event::Doubted { session: self.table.name(index) };
        if self.events.back() != Some(&doubted) {
            self.events.push_back(doubted);
        }
    }
}
