//! Processes incoming datagrams: finds the session of each record and handles the record.

use super::Endpoint;
use super::table::Session;
use super::types::{Event, SessionId};
use crate::alert::{self, AlertDescription, AlertLevel};
use crate::cid::OwnCid;
use crate::failure::Failure;
use crate::handshake::hello::{ReceivedHello, verify_request};
use crate::handshake::{Context, Handshake};
use crate::keys::Role;
use crate::message::{Fragment, HandshakeType};
use crate::protect::Discarded;
use crate::record::{self, ContentType, DTLS_1_0, DTLS_1_2, RecordHeader};
use alloc::vec::Vec;
use core::net::SocketAddr;
use ebbtide_core::time::Instant;

/// Bytes of a cookie.
const COOKIE: usize = 16;

impl Endpoint {
    /// Processes a datagram. Decrypted application data is passed to `deliver` at once; `datagram`
    /// is used as scratch space.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &mut [u8],
        deliver: &mut dyn FnMut(SessionId, &[u8]),
    ) {
        self.advance(now);
        self.unknown.datagram = datagram.len();
        let cid_length = usize::from(self.config.cid_length.unwrap_or(0));
        let mut rest = datagram;
        while !rest.is_empty() {
            // Bytes that cannot be a record end the datagram (RFC 6347 section 4.1.2.7).
            let Some(header) = RecordHeader::parse(rest, cid_length) else {
                self.counters.records_malformed += 1;
                return;
            };
            let (record, tail) = rest.split_at_mut(header.length);
            rest = tail;
            self.handle_record(from, record, &header, deliver);
        }
    }

    fn handle_record(
        &mut self,
        from: SocketAddr,
        record: &mut [u8],
        header: &RecordHeader,
        deliver: &mut dyn FnMut(SessionId, &[u8]),
    ) {
        if header.epoch == 0 {
            self.handle_plain(from, record, header);
        } else if header.cid.is_empty() {
            let waiting = self.table.handshakes.get(&from).copied();
            let established = self.table.by_address.get(&from).copied();
            match (established, waiting) {
                (Some(index), None) | (None, Some(index)) => {
                    self.handle_protected(index, from, record, header, deliver);
                }
                // A peer that starts over has two sessions for a moment; authentication shows to
                // which of them the record belongs.
                (Some(established), Some(waiting)) => {
                    let mut copy = record.to_vec();
                    let is_of = |session: &mut Session| {
                        let opened = session.protection.as_mut()?.authenticates(&mut copy, header);
                        opened.then_some(())
                    };
                    let old = self.table.get_mut(established).and_then(is_of).is_some();
                    let index = if old { established } else { waiting };
                    self.handle_protected(index, from, record, header, deliver);
                }
                (None, None) => self.on_unknown(from, header),
            }
        } else if let Some(index) = self.table.by_cid.get(&header.cid).copied() {
            self.handle_protected(index, from, record, header, deliver);
        } else {
            self.on_unknown(from, header);
        }
    }

    /// Handles a record of epoch 0, which belongs to a handshake and is not authenticated.
    fn handle_plain(&mut self, from: SocketAddr, record: &[u8], header: &RecordHeader) {
        let body = record.get(header.start..).unwrap_or_default();
        match header.content {
            ContentType::Handshake => {
                let hello = body.first() == Some(&HandshakeType::ClientHello.number());
                if hello && (self.lookup.is_some() || self.certificates.is_some()) {
                    self.handle_hello(from, body, header.sequence);
                } else if let Some(index) = self.table.handshakes.get(&from).copied() {
                    self.step(index, |handshake, cx| handshake.handle_record(cx, body, false));
                    self.replay_early(index, from);
                } else {
                    self.counters.records_malformed += 1;
                }
            }
            ContentType::Alert => {
                // Once there are keys, an alert must be encrypted; before, a peer can send nothing
                // else.
                let waiting = self.table.handshakes.get(&from).copied();
                match (waiting, alert::parse(body)) {
                    (Some(index), Some((AlertLevel::Fatal, AlertDescription::BAD_RECORD_MAC))) => {
                        self.on_unknown_handshake(index);
                    }
                    (Some(index), Some((AlertLevel::Fatal, description))) => {
                        self.end(index, Failure::Refused(description), None);
                    }
                    (None, Some((level, description))) => {
                        self.on_plain_alert(from, level, description);
                    }
                    _ => {}
                }
            }
            // The epoch of the following records carries the same information.
            ContentType::ChangeCipherSpec => {}
            ContentType::ApplicationData
            | ContentType::Tls12Cid
            | ContentType::ReturnRoutabilityCheck => self.counters.records_malformed += 1,
        }
    }

    fn handle_hello(&mut self, from: SocketAddr, body: &[u8], record_sequence: u64) {
        // Fragments would require state, so a hello must not be fragmented until its cookie is
        // correct.
        let Some(received) = ReceivedHello::parse(body, record_sequence) else {
            self.counters.records_malformed += 1;
            return;
        };
        let hello = &received.hello;
        if let Some(index) = self.table.handshakes.get(&from).copied()
            && let Some(handshake) = self.table.get(index).and_then(|s| s.handshake.as_ref())
            && handshake.role() == Role::Server
            && *handshake.client_random() == hello.random
        {
            if !hello.cookie.is_empty() {
                self.step(index, |handshake, cx| handshake.handle_record(cx, body, false));
            }
            return;
        }
        let parameters = hello.parameters();
        if !self.cookies.check(self.now, from, &parameters, hello.cookie) {
            let tag = self.cookies.tag(self.now, from, &parameters);
            self.counters.hellos_verified += 1;
            self.ask_for_cookie(from, &received, &tag[..COOKIE]);
            return;
        }
        if !hello.speaks_dtls_1_2() {
            self.refuse(from, record_sequence, Failure::NoCommonVersion);
            return;
        }
        if self.is_costly(from, hello) {
            self.keep_hello(from, body, record_sequence);
        } else {
            self.accept_hello(from, &received);
        }
    }

    /// Begins the handshake of a hello whose cookie was correct.
    pub(super) fn accept_hello(&mut self, from: SocketAddr, received: &ReceivedHello<'_>) {
        self.make_room(from);
        let own_cid = self.fresh_cid();
        let mut cx = self.context(from);
        match Handshake::accept(&mut cx, received, own_cid) {
            Ok(handshake) => {
                let protection = cx.protection;
                let mut session = Session::new(from, self.now, handshake);
                session.protection = protection;
                self.begin(session);
            }
            Err(failure) => self.refuse(from, received.record_sequence, failure),
        }
    }

    /// Sends a HelloVerifyRequest with the sequence numbers of the hello that it answers (RFC 6347
    /// section 4.2.1).
    fn ask_for_cookie(&mut self, to: SocketAddr, hello: &ReceivedHello<'_>, cookie: &[u8]) {
        let body = verify_request(cookie);
        let whole = Fragment {
            kind: HandshakeType::HelloVerifyRequest,
            total: body.len(),
            sequence: hello.fragment.sequence,
            offset: 0,
            bytes: &body,
        };
        let mut message = Vec::with_capacity(12 + body.len());
        whole.encode(&mut message);
        let mut datagram = Vec::with_capacity(64);
        let sequence = hello.record_sequence;
        record::plain(&mut datagram, ContentType::Handshake, DTLS_1_0, sequence, &message);
        self.out.push(to, &datagram);
    }

    /// Refuses a hello without keeping state.
    fn refuse(&mut self, to: SocketAddr, record: u64, failure: Failure) {
        self.counters.handshakes_failed += 1;
        if let Some(description) = failure.alert() {
            let mut datagram = Vec::with_capacity(16);
            let body = alert::encode(AlertLevel::Fatal, description);
            record::plain(&mut datagram, ContentType::Alert, DTLS_1_2, record, &body);
            self.out.push(to, &datagram);
        }
        self.refused = Some((to, failure));
    }

    fn handle_protected(
        &mut self,
        index: u32,
        from: SocketAddr,
        record: &mut [u8],
        header: &RecordHeader,
        deliver: &mut dyn FnMut(SessionId, &[u8]),
    ) {
        let Some(session) = self.table.get_mut(index) else { return };
        let Some(protection) = &mut session.protection else {
            if let Some(handshake) = &mut session.handshake {
                handshake.keep_early(record);
            }
            return;
        };
        let has_other_key =
            session.handshake.as_ref().is_some_and(|handshake| handshake.has_other_key());
        let copy = has_other_key.then(|| record.to_vec());
        let opened = match protection.open(record, header) {
            Ok(opened) => opened,
            Err(discarded) => {
                if matches!(discarded, Discarded::NotAuthentic)
                    && let Some(mut copy) = copy
                    && self.has_it_under_other_key(index, &copy, header)
                {
                    return self.handle_protected(index, from, &mut copy, header, deliver);
                }
                self.on_discarded(index, header, discarded);
                return;
            }
        };
        let plaintext = record.get(opened.plaintext).unwrap_or_default();
        if session.ping.is_some() && opened.content != ContentType::Alert {
            if self.is_sign_of_life(index, header.sequence, plaintext) {
                self.on_record_from(index, from, header.length);
            } else if opened.content == ContentType::Handshake {
                // Its answer ended with the program that began the session, and without it the peer takes no ping.
                self.tell_unknown_within_limit(from);
            } else {
                self.ask_at(index, from, header.length);
            }
            return;
        }
        // An answer to a challenge that comes too late must not begin the next check: where round trips are
        // longer than the limit, challenges and answers would follow each other forever.
        let is_late_check =
            opened.content == ContentType::ReturnRoutabilityCheck && from != session.remote;
        if opened.newest && !is_late_check {
            self.on_record_from(index, from, header.length);
        }
        self.table.touch(index);
        match opened.content {
            ContentType::Handshake => self.on_protected_handshake(index, from, plaintext),
            ContentType::Alert => self.on_protected_alert(index, plaintext),
            content => {
                let Some(session) = self.table.get_mut(index) else { return };
                if !session.established {
                    // It overtook Finished, without which it must not be trusted.
                    return;
                }
                // The peer has received our Finished, so the last flight is no longer needed.
                if session.handshake.take().is_some() {
                    self.table.rearm(index);
                }
                match content {
                    ContentType::ApplicationData => deliver(self.table.name(index), plaintext),
                    ContentType::ReturnRoutabilityCheck => self.on_check(index, from, plaintext),
                    _ => self.counters.records_malformed += 1,
                }
            }
        }
    }

    /// Whether a record is authentic under the other key of the client's identity, which is then the one in use.
    fn has_it_under_other_key(&mut self, index: u32, record: &[u8], header: &RecordHeader) -> bool {
        let switch = |endpoint: &mut Self| {
            endpoint.step(index, |handshake, cx| {
                handshake.switch_key(cx);
                Ok(())
            });
        };
        switch(self);
        let protection = self.table.get_mut(index).and_then(|session| session.protection.as_mut());
        let mut copy = record.to_vec();
        let is_authentic =
            protection.is_some_and(|protection| protection.authenticates(&mut copy, header));
        if !is_authentic {
            switch(self);
        }
        is_authentic
    }

    fn on_discarded(&mut self, index: u32, header: &RecordHeader, discarded: Discarded) {
        match discarded {
            Discarded::Malformed => self.counters.records_malformed += 1,
            Discarded::Replayed => self.counters.records_replayed += 1,
            Discarded::NotAuthentic => {
                self.counters.records_not_authentic += 1;
                let of_handshake =
                    matches!(header.content, ContentType::Handshake | ContentType::Tls12Cid);
                let waiting = self.table.get(index).is_some_and(|session| !session.established);
                if of_handshake && waiting {
                    self.step(index, |handshake, _| handshake.note_forgery());
                }
            }
        }
    }

    fn on_protected_handshake(&mut self, index: u32, from: SocketAddr, body: &[u8]) {
        let Some(session) = self.table.get(index) else { return };
        if session.handshake.is_some() {
            self.step(index, |handshake, cx| handshake.handle_record(cx, body, true));
        } else if body.first() == Some(&HandshakeType::Finished.number()) {
            self.on_late_finished(index, from);
        } else {
            // Renegotiation is refused (RFC 5746 section 4.5 allows it).
            self.send_alert(index, AlertLevel::Warning, AlertDescription::NO_RENEGOTIATION);
        }
    }

    fn on_protected_alert(&mut self, index: u32, body: &[u8]) {
        match alert::parse(body) {
            Some((_, AlertDescription::CLOSE_NOTIFY)) => {
                // A close_notify is answered with another one (RFC 5246 section 7.2.1).
                self.end(index, Failure::ClosedByPeer, Some(AlertDescription::CLOSE_NOTIFY));
            }
            Some((AlertLevel::Fatal, description)) => {
                self.forget_resumption(index);
                self.end(index, Failure::Refused(description), None);
            }
            Some((AlertLevel::Warning, _)) => {}
            None => self.counters.records_malformed += 1,
        }
    }

    /// Processes encrypted records that arrived before there were keys.
    fn replay_early(&mut self, index: u32, from: SocketAddr) {
        let Some(session) = self.table.get_mut(index) else { return };
        let (Some(handshake), Some(_)) = (&mut session.handshake, &session.protection) else {
            return;
        };
        let cid_length = usize::from(self.config.cid_length.unwrap_or(0));
        for mut record in handshake.take_early() {
            if let Some(header) = RecordHeader::parse(&record, cid_length) {
                // Data is not delivered before the handshake is complete.
                self.handle_protected(index, from, &mut record, &header, &mut |_, _| {});
            }
        }
    }

    /// Takes one step of a session's handshake and carries out its consequences.
    pub(super) fn step(
        &mut self,
        index: u32,
        act: impl FnOnce(&mut Handshake, &mut Context<'_>) -> Result<(), Failure>,
    ) {
        let Some(session) = self.table.get_mut(index) else { return };
        let Some(mut handshake) = session.handshake.take() else { return };
        let protection = session.protection.take();
        let remote = session.remote;
        let established = session.established;
        let offered_cid = handshake.own_cid();
        let mut cx = Context { protection, ..self.context(remote) };
        let result = act(&mut handshake, &mut cx);
        let protection = cx.protection;
        let name = self.table.name(index);
        for sample in self.round_trips.drain(..) {
            self.events.push_back(Event::RoundTrip { session: name, sample });
        }
        let done = handshake.is_done();
        // The server does not use connection IDs, so the offered one will not be used.
        if handshake.own_cid() != offered_cid {
            self.table.by_cid.remove(&offered_cid);
        }
        if let Some(session) = self.table.get_mut(index) {
            session.protection = protection;
            session.identity = handshake.identity().clone();
            session.handshake = Some(handshake);
        }
        match result {
            Err(failure) => {
                let description = failure.alert();
                self.end(index, failure, description);
            }
            Ok(()) if done && !established => self.on_established(index),
            Ok(()) => self.table.rearm(index),
        }
    }

    fn on_established(&mut self, index: u32) {
        let Some(session) = self.table.get_mut(index) else { return };
        let Some(handshake) = &session.handshake else { return };
        let resumed = handshake.is_resumed();
        session.established = true;
        session.return_routability = handshake.return_routability();
        session.resumption = match session.role {
            Role::Server => handshake.server_session_id(),
            Role::Client => None,
        };
        session.saved = match session.role {
            Role::Server => None,
            Role::Client => handshake.saved_session().map(alloc::boxed::Box::new),
        };
        // Only the side that spoke last keeps its flight.
        if handshake.due().is_none() {
            session.handshake = None;
        }
        let remote = session.remote;
        let own_cid = session.own_cid();
        self.leave_handshakes(index);
        self.counters.established += 1;
        self.counters.resumed += u64::from(resumed);
        if own_cid == OwnCid::EMPTY
            && let Some(old) = self.table.by_address.insert(remote, index)
            && old != index
        {
            self.end(old, Failure::Replaced, None);
            self.table.by_address.insert(remote, index);
        }
        self.table.rearm(index);
        self.note_change(index);
        let session = self.table.name(index);
        self.events.push_back(Event::Established { session, resumed });
    }
}
