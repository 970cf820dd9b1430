//! A server's side: message 1 is answered with message 2, message 3 with message 4.

use super::handshake::{HandshakeFault, Responder, WaitingResponder};
use super::unfinished::{HandshakePeer, Unfinished};
use super::{Edhoc, ephemeral, identifier};
use crate::message::{ContentFormat, Response};
use crate::oscore::OscoreContexts;
use ebbtide_core::PeerId;
use ebbtide_core::time::Instant;
use ebbtide_core::turns::TurnLimits;
use ebbtide_core::wire::{Code, Message};
use std::sync::{MutexGuard, PoisonError};

/// From so many on, clients have to show their addresses first.
const PRESSED: usize = 64;
/// The Content-Format `application/edhoc+cbor-seq` (RFC 9528 section 10.11).
const MESSAGES: ContentFormat = ContentFormat(64);
/// The byte before message 1: `true` in CBOR (RFC 9528 appendix A.2.1).
pub(crate) const FIRST: u8 = 0xf5;

/// The turns in which messages are answered: each takes the time of a hundred other messages, and a handshake has two.
/// A message 3 in a combined request (RFC 9668) is verified where it arrives: at most one for each message 1.
pub(crate) const TURNS: TurnLimits =
    TurnLimits { per_second: 128, at_once: 256, waiting: 1024, sources: 16_384 };

/// Whether a request is for `/.well-known/edhoc`.
pub(crate) fn is_handshake(message: &Message<'_>) -> bool {
    message.code() == Code::POST && message.path().eq([&b".well-known"[..], &b"edhoc"[..]])
}

/// A message of a client that was read, and is to be answered.
pub(crate) enum Step {
    /// Message 1.
    First(Box<Responder>),
    /// Message 3 of the handshake with our identifier `id`.
    Third { id: Vec<u8>, message: Vec<u8> },
}

impl Edhoc {
    /// Whether so many handshakes are unfinished or wait for a turn that a client has to show its address first.
    pub(crate) fn is_pressed(&self, now: Instant, waiting: usize) -> bool {
        waiting + self.unfinished().len(now) >= PRESSED
    }

    fn unfinished(&self) -> MutexGuard<'_, Unfinished<WaitingResponder>> {
        self.0.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a client's message, which costs little.
    pub(crate) fn read(&self, client: PeerId, payload: &[u8]) -> Result<Step, HandshakeFault> {
        if let Some((&FIRST, message_1)) = payload.split_first() {
            let crypto = ephemeral().ok_or(HandshakeFault::NoRandomness)?;
            let responder = Responder::begin(crypto, &self.0.credentials, message_1)?;
            return Ok(Step::First(Box::new(responder)));
        }
        let (id, message_3) = split_identifier(payload).ok_or(HandshakeFault::Malformed)?;
        match self.unfinished().is_of(client, id) {
            true => Ok(Step::Third { id: id.to_vec(), message: message_3.to_vec() }),
            false => Err(HandshakeFault::Malformed),
        }
    }

    /// Answers a client's message, which takes long.
    pub(crate) fn answer(
        &self,
        now: Instant,
        contexts: &OscoreContexts,
        client: HandshakePeer,
        step: Step,
    ) -> Response {
        let answered = match step {
            Step::First(responder) => self.answer_first(now, contexts, client, *responder),
            Step::Third { id, message } => self.complete_with(contexts, client.id, &id, &message),
        };
        match answered {
            Ok(message) => Response::new(Code::CHANGED).payload(message).format(MESSAGES),
            Err(fault) => refusal(fault),
        }
    }

    fn answer_first(
        &self,
        now: Instant,
        contexts: &OscoreContexts,
        client: HandshakePeer,
        responder: Responder,
    ) -> Result<Vec<u8>, HandshakeFault> {
        let (number, id) = {
            // Locked until it is taken, so that no other handshake draws the same one.
            let mut unfinished = self.unfinished();
            let is_taken =
                |id: &[u8]| id == responder.client_id() || contexts.has(id) || unfinished.has(id);
            let id = identifier(is_taken).ok_or(HandshakeFault::NoRandomness)?;
            (unfinished.begin(now, client, id.clone()), id)
        };
        match responder.answer(&self.0.credentials, &id) {
            Ok((answered, message_2)) => {
                self.unfinished().answered(number, answered);
                Ok(message_2)
            }
            Err(fault) => {
                self.unfinished().end(number);
                Err(fault)
            }
        }
    }

    /// Verifies message 3 of the handshake with our identifier `id`, and adds the context. Returns message 4.
    pub(super) fn complete_with(
        &self,
        contexts: &OscoreContexts,
        client: PeerId,
        id: &[u8],
        message_3: &[u8],
    ) -> Result<Vec<u8>, HandshakeFault> {
        let answered = self.unfinished().take(client, id);
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
