//! A server's side: message 1 is answered with message 2, message 3 with message 4.

use super::handshake::{HandshakeFault, Responder, WaitingResponder};
use super::unfinished::Unfinished;
use super::{Edhoc, ephemeral, identifier};
use crate::message::{ContentFormat, Response};
use crate::oscore::OscoreContexts;
use ebbtide_core::time::Instant;
use ebbtide_core::turns::{TurnLimits, Turns};
use ebbtide_core::wire::{Code, Message};
use ebbtide_core::{PeerId, Source};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{MutexGuard, PoisonError};

/// From so many on, clients have to show their addresses first.
const PRESSED: usize = 64;
/// The Content-Format `application/edhoc+cbor-seq` (RFC 9528 section 10.11).
const MESSAGES: ContentFormat = ContentFormat(64);
/// The byte before message 1: `true` in CBOR (RFC 9528 appendix A.2.1).
pub(crate) const FIRST: u8 = 0xf5;

/// Messages 1 of a source that are answered: each takes the time of a hundred other messages.
const BUDGET: TurnLimits =
    TurnLimits { per_second: 256, at_once: 512, waiting: 0, sources: 16_384 };

/// The handshakes of a server's clients.
#[derive(Debug)]
pub(super) struct Responding {
    unfinished: Unfinished<WaitingResponder>,
    budget: Turns<Infallible>,
}

impl Default for Responding {
    fn default() -> Self {
        Self { unfinished: Unfinished::new(), budget: Turns::new(BUDGET) }
    }
}

/// Whether a request is for `/.well-known/edhoc`.
pub(crate) fn is_handshake(message: &Message<'_>) -> bool {
    message.code() == Code::POST && message.path().eq([&b".well-known"[..], &b"edhoc"[..]])
}

impl Edhoc {
    /// Whether so many handshakes are unfinished that a client has to show its address first.
    pub(crate) fn is_pressed(&self, now: Instant) -> bool {
        self.responding().unfinished.len(now) >= PRESSED
    }

    fn responding(&self) -> MutexGuard<'_, Responding> {
        self.0.responding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a client's message.
    pub(crate) fn answer(
        &self,
        now: Instant,
        contexts: &OscoreContexts,
        client: PeerId,
        payload: &[u8],
    ) -> Response {
        let answered = match payload.split_first() {
            Some((&FIRST, _)) if !self.has_budget(now, client) => {
                return Response::new(Code::SERVICE_UNAVAILABLE).max_age(1);
            }
            Some((&FIRST, message_1)) => self.answer_first(now, contexts, client, message_1),
            _ => self.answer_third(contexts, client, payload),
        };
        match answered {
            Ok(message) => Response::new(Code::CHANGED).payload(message).format(MESSAGES),
            Err(fault) => refusal(fault),
        }
    }

    /// Whether one more handshake of a client may begin now. Those of all sessions share the budget of one source.
    fn has_budget(&self, now: Instant, client: PeerId) -> bool {
        let ip = match client.source() {
            Source::Address(ip) => ip,
            Source::Session(_) => Ipv4Addr::UNSPECIFIED.into(),
        };
        self.responding().budget.spend(now, ip)
    }

    fn answer_first(
        &self,
        now: Instant,
        contexts: &OscoreContexts,
        client: PeerId,
        message_1: &[u8],
    ) -> Result<Vec<u8>, HandshakeFault> {
        let credentials = &self.0.credentials;
        let crypto = ephemeral().ok_or(HandshakeFault::NoRandomness)?;
        let responder = Responder::begin(crypto, credentials, message_1)?;
        let is_taken = |id: &[u8]| {
            id == responder.client_id() || contexts.has(id) || self.responding().unfinished.has(id)
        };
        let id = identifier(is_taken).ok_or(HandshakeFault::NoRandomness)?;
        let (answered, message_2) = responder.answer(credentials, &id)?;
        // Another thread may have drawn the same one since.
        let is_added = self.responding().unfinished.add(now, client, id, answered);
        if is_added { Ok(message_2) } else { Err(HandshakeFault::NoRandomness) }
    }

    fn answer_third(
        &self,
        contexts: &OscoreContexts,
        client: PeerId,
        payload: &[u8],
    ) -> Result<Vec<u8>, HandshakeFault> {
        let (id, message_3) = split_identifier(payload).ok_or(HandshakeFault::Malformed)?;
        self.complete_with(contexts, client, id, message_3)
    }

    /// Verifies message 3 of the handshake with our identifier `id`, and adds the context. Returns message 4.
    pub(super) fn complete_with(
        &self,
        contexts: &OscoreContexts,
        client: PeerId,
        id: &[u8],
        message_3: &[u8],
    ) -> Result<Vec<u8>, HandshakeFault> {
        let answered = self.responding().unfinished.take(client, id);
        let answered = answered.ok_or(HandshakeFault::Malformed)?;
        let (secret, message_4) = answered.finish(&self.0.credentials, message_3)?;
        contexts.add_of_client(secret).ok_or(HandshakeFault::Malformed)?;
        Ok(message_4)
    }
}

/// The error message.
pub(crate) fn refusal(fault: HandshakeFault) -> Response {
    Response::new(Code::BAD_REQUEST).payload(fault.message().to_vec()).format(MESSAGES)
}

/// Splits what precedes message 3, the identifier as an integer of one byte or as a byte string, from it.
fn split_identifier(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = payload.split_at_checked(1)?;
    match head.first()? {
        integer if integer >> 6 == 0 && integer & 0x1f < 24 => Some((head, rest)),
        string @ 0x40..=0x47 => rest.split_at_checked(usize::from(string & 7)),
        _ => None,
    }
}
