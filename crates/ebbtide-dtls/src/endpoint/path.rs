//! A peer's change of address (RFC 9146 section 6) and the check that it receives at the new one
//! (RFC 9853).
//!
//! Data is sent to both addresses at once, but to the new one at most three times the bytes that came
//! from there, until the peer has answered a challenge from it. Both addresses are challenged at the
//! same time. An attacker who forwards the peer's records and answers from another address is
//! thereby detected, because the peer also answers at the old address.

use super::Endpoint;
use super::types::Event;
use crate::record::ContentType;
use crate::wire::Reader;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use ebbtide_core::time::{Duration, Instant};

/// How long to wait for an answer to the first challenge, doubled for each further one: 35 s in all. RFC
/// 9853 section 5.5 has 1 s for peers whose round trip is unknown, and lets profiles of constrained networks,
/// whose round trips take seconds, have another value.
const CHALLENGE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often an address is challenged.
const CHALLENGES: u8 = 3;
/// The maximum ratio of bytes to an unconfirmed address and bytes from it.
const AMPLIFICATION: usize = 3;

// IANA's registry "TLS RRC Message Types" (RFC 9853 section 4).
const PATH_CHALLENGE: u8 = 0;
const PATH_RESPONSE: u8 = 1;
const PATH_DROP: u8 = 2;

/// The state of a session while the peer's address is new.
#[derive(Debug)]
pub(crate) struct NewPath {
    /// When the peer was first seen there.
    began: Instant,
    /// The address at which the peer was last confirmed.
    previous: SocketAddr,
    /// Bytes that may still be sent to the new address; not counted once it is confirmed.
    budget: usize,
    confirmed: bool,
    /// With RFC 9853: the challenges to the new and to the previous address.
    cookies: Option<[[u8; 8]; 2]>,
    challenges: u8,
    due: Option<Instant>,
}

impl NewPath {
    /// Whether an answer to a message that was sent at `sent` confirms the address. With RFC 9853 the
    /// answer to a challenge does.
    pub(crate) fn is_confirmed_by(&self, sent: Instant) -> bool {
        self.cookies.is_none() && sent > self.began
    }

    pub(crate) const fn previous(&self) -> SocketAddr {
        self.previous
    }

    /// Whether it is not known yet at which of the addresses the peer is.
    pub(crate) const fn is_open(&self) -> bool {
        !self.confirmed
    }

    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes `length` bytes off the budget; returns false if there are fewer.
    pub(crate) const fn spend(&mut self, length: usize) -> bool {
        if self.confirmed {
            return true;
        }
        let enough = self.budget >= length;
        if enough {
            self.budget -= length;
        }
        enough
    }
}

impl Endpoint {
    /// The newest record of a session came from another address than the one before.
    pub(super) fn on_record_from(&mut self, index: u32, from: SocketAddr, length: usize) {
        let Some(session) = self.table.get_mut(index) else { return };
        let allowance = length.saturating_mul(AMPLIFICATION);
        if from == session.remote {
            if let Some(path) = &mut session.path {
                path.budget = path.budget.saturating_add(allowance);
            }
            return;
        }
        // Without a connection ID the address identifies the session.
        if session.own_cid().is_empty() || !session.established {
            return;
        }
        let previous = match session.path.take() {
            Some(path) if !path.confirmed && path.previous == from => {
                // The peer is back at the previous address.
                session.remote = from;
                self.counters.addresses_refused += 1;
                self.table.rearm(index);
                return;
            }
            Some(path) if !path.confirmed => path.previous,
            _ => session.remote,
        };
        let cookies = session.return_routability.then(|| {
            let mut cookies = [[0; 8]; 2];
            self.rng.fill_bytes(cookies.as_flattened_mut());
            cookies
        });
        session.remote = from;
        session.path = Some(Box::new(NewPath {
            began: self.now,
            previous,
            budget: allowance,
            confirmed: false,
            cookies,
            challenges: 0,
            due: None,
        }));
        if cookies.is_some() {
            self.challenge(index);
        }
    }

    fn challenge(&mut self, index: u32) {
        let Some(session) = self.table.get_mut(index) else { return };
        let remote = session.remote;
        let Some(path) = &mut session.path else { return };
        let Some([new, previous]) = path.cookies else { return };
        path.due = Some(self.now + CHALLENGE_TIMEOUT.saturating_mul(1 << path.challenges));
        path.challenges += 1;
        let targets = [(remote, new), (path.previous, previous)];
        for (to, cookie) in targets {
            self.send_check(index, to, PATH_CHALLENGE, cookie);
        }
        self.table.rearm(index);
    }

    fn send_check(&mut self, index: u32, to: SocketAddr, kind: u8, cookie: [u8; 8]) {
        let Some(session) = self.table.get_mut(index) else { return };
        let mut body = Vec::with_capacity(9);
        body.push(kind);
        body.extend_from_slice(&cookie);
        let mut datagram = Vec::with_capacity(64);
        let Some(protection) = &mut session.protection else { return };
        if !protection.seal(ContentType::ReturnRoutabilityCheck, &body, &mut datagram) {
            return;
        }
        // Everything sent to an unconfirmed address counts, including the challenge.
        if to == session.remote
            && let Some(path) = &mut session.path
            && !path.spend(datagram.len())
        {
            return;
        }
        self.out.push(to, &datagram);
    }

    /// Handles a message of RFC 9853. Unknown ones are ignored.
    pub(super) fn on_check(&mut self, index: u32, from: SocketAddr, body: &[u8]) {
        let mut reader = Reader::new(body);
        let (Some(kind), Some(cookie)) = (reader.u8(), reader.array::<8>()) else { return };
        let Some(session) = self.table.get_mut(index) else { return };
        if !session.return_routability || !reader.is_empty() {
            return;
        }
        if kind == PATH_CHALLENGE {
            // The response is sent to the address from which the challenge came.
            self.send_check(index, from, PATH_RESPONSE, cookie);
            return;
        }
        let Some(path) = &mut session.path else { return };
        let Some([new, previous]) = path.cookies else { return };
        if cookie == new && kind == PATH_RESPONSE && from == session.remote && !path.confirmed {
            path.confirmed = true;
            // As long as an answer from the previous address may still arrive.
            path.due = Some(self.now + CHALLENGE_TIMEOUT.saturating_mul(1 << CHALLENGES));
            let event = (path.previous, session.remote);
            self.counters.addresses_changed += 1;
            let session = self.table.name(index);
            self.events.push_back(Event::AddressChanged { session, from: event.0, to: event.1 });
            self.note_change(index);
        } else if cookie == previous && kind == PATH_RESPONSE && from == path.previous {
            // The peer is at its previous address, and a third party forwards its records.
            let (wrong, right) = (session.remote, path.previous);
            let told = path.confirmed;
            session.remote = right;
            session.path = None;
            self.counters.addresses_refused += 1;
            if told {
                let session = self.table.name(index);
                self.events.push_back(Event::AddressChanged { session, from: wrong, to: right });
                self.note_change(index);
            }
        } else if cookie == previous && kind == PATH_DROP {
            // The peer has left the previous address, which counts as no answer from there.
        }
        self.table.rearm(index);
    }

    /// The time limit for answers to challenges has passed.
    pub(super) fn on_path_timeout(&mut self, index: u32) {
        let Some(session) = self.table.get_mut(index) else { return };
        let Some(path) = &mut session.path else { return };
        if path.confirmed {
            session.path = None;
        } else if path.challenges < CHALLENGES {
            self.challenge(index);
        } else {
            session.remote = path.previous;
            session.path = None;
            self.counters.addresses_refused += 1;
        }
        self.table.rearm(index);
    }
}
