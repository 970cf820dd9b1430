//! ClientHellos whose answers need a signature. They wait for their turn, which comes with
//! [`Endpoint::handle_timeout`], one at a time: a driver does what else it has to do in between.

use super::Endpoint;
use crate::handshake::Handshake;
use crate::handshake::hello::{ClientHello, ReceivedHello};
use alloc::vec::Vec;
use core::net::SocketAddr;
use ebbtide_core::time::Instant;

/// The longest hello that is kept. Those of browsers with post-quantum key shares are shorter.
const LONGEST: usize = 2048;

/// A hello with a correct cookie.
#[derive(Debug)]
pub(super) struct WaitingHello {
    from: SocketAddr,
    /// The contents of its record.
    body: Vec<u8>,
    record_sequence: u64,
}

impl Endpoint {
    /// No hello that needs a signature is answered before this instant. A driver that has other work calls it
    /// with a later one after each of them, in proportion to the time that the signature took.
    pub fn rest_until(&mut self, until: Instant) {
        self.rest = self.rest.max(until);
    }

    /// Keeps a hello until its turn, unless it waits already. Its source has a share of the places.
    pub(super) fn keep_hello(&mut self, from: SocketAddr, body: &[u8], record_sequence: u64) {
        if self.costly.any_of(from.ip(), |waiting| waiting.from == from) {
            return;
        }
        let hello = WaitingHello { from, body: body.to_vec(), record_sequence };
        if body.len() > LONGEST || self.costly.push(self.now, from.ip(), hello).is_err() {
            // The client repeats it, as if the network had lost it.
            self.counters.hellos_withheld += 1;
        }
    }

    /// When the next hello may be answered.
    pub(super) fn costly_due(&self) -> Option<Instant> {
        self.costly.due().map(|due| due.max(self.rest))
    }

    /// Answers the next hello, if it may be answered now.
    pub(super) fn answer_costly(&mut self) {
        if self.rest > self.now {
            return;
        }
        let Some(WaitingHello { from, body, record_sequence }) = self.costly.pop(self.now) else {
            return;
        };
        let Some(received) = ReceivedHello::parse(&body, record_sequence) else { return };
        self.counters.signatures += 1;
        self.accept_hello(from, &received);
    }

    /// Whether the answer to a hello needs a signature.
    pub(super) fn is_costly(&mut self, from: SocketAddr, hello: &ClientHello<'_>) -> bool {
        self.certificates.is_some() && Handshake::needs_signature(&mut self.context(from), hello)
    }
}
