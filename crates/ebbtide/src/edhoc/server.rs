//! A server's side: message 1 is answered with message 2, message 3 with message 4.

use super::handshake::{HandshakeFault, Responder, WaitingResponder};
use super::{Edhoc, ephemeral, identifier};
use crate::message::{ContentFormat, Response};
use crate::oscore::OscoreContexts;
use ebbtide_core::PeerId;
use ebbtide_core::wire::{Code, Message};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// Handshakes that wait for message 3 at most; the oldest makes room for another. As many as those
/// of DTLS: if a thousand devices wake up at once, those that were begun last must not end those
/// whose message 3 is still under way.
const MAX_UNFINISHED: usize = 4096;
/// From so many on, clients have to show their addresses first.
const PRESSED: usize = 64;
/// The Content-Format `application/edhoc+cbor-seq` (RFC 9528 section 10.11).
const MESSAGES: ContentFormat = ContentFormat(64);
/// The byte before message 1: `true` in CBOR (RFC 9528 appendix A.2.1).
pub(crate) const FIRST: u8 = 0xf5;

/// Handshakes that wait for message 3, the oldest first.
#[derive(Default)]
pub(super) struct Unfinished(VecDeque<UnfinishedHandshake>);

struct UnfinishedHandshake {
    client: PeerId,
    /// Our identifier.
    id: Vec<u8>,
    answered: WaitingResponder,
}

const _: () = assert!(size_of::<UnfinishedHandshake>() <= 1024);

impl core::fmt::Debug for Unfinished {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Unfinished").field(&self.0.len()).finish()
    }
}

/// Whether a request is for `/.well-known/edhoc`.
pub(crate) fn is_handshake(message: &Message<'_>) -> bool {
    message.code() == Code::POST && message.path().eq([&b".well-known"[..], &b"edhoc"[..]])
}

impl Edhoc {
    /// Whether so many handshakes are unfinished that a client has to show its address first.
    pub(crate) fn is_pressed(&self) -> bool {
        self.unfinished().0.len() >= PRESSED
    }

    fn unfinished(&self) -> std::sync::MutexGuard<'_, Unfinished> {
        self.0.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a client's message.
    pub(crate) fn answer(
        &self,
        contexts: &OscoreContexts,
        client: PeerId,
        payload: &[u8],
    ) -> Response {
        let answered = match payload.split_first() {
            Some((&FIRST, message_1)) => self.answer_first(contexts, client, message_1),
            _ => self.answer_third(contexts, client, payload),
        };
        match answered {
            Ok(message) => Response::new(Code::CHANGED).payload(message).format(MESSAGES),
            Err(fault) => refusal(fault),
        }
    }

    fn answer_first(
        &self,
        contexts: &OscoreContexts,
        client: PeerId,
        message_1: &[u8],
    ) -> Result<Vec<u8>, HandshakeFault> {
        let credentials = &self.0.credentials;
        let crypto = ephemeral().ok_or(HandshakeFault::NoRandomness)?;
        let responder = Responder::begin(crypto, credentials, message_1)?;
        let is_taken = |id: &[u8]| {
            id == responder.client_id()
                || contexts.has(id)
                || self.unfinished().0.iter().any(|waiting| waiting.id == id)
        };
        let id = identifier(is_taken).ok_or(HandshakeFault::NoRandomness)?;
        let (answered, message_2) = responder.answer(credentials, &id)?;
        let waiting = &mut self.unfinished().0;
        if waiting.len() >= MAX_UNFINISHED {
            waiting.pop_front();
        }
        waiting.push_back(UnfinishedHandshake { client, id, answered });
        Ok(message_2)
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
        let found = {
            let waiting = &mut self.unfinished().0;
            let is_this =
                |waiting: &UnfinishedHandshake| waiting.client == client && waiting.id == id;
            waiting.iter().position(is_this).and_then(|at| waiting.remove(at))
        };
        let answered = found.ok_or(HandshakeFault::Malformed)?.answered;
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
