//! Handshakes by EDHOC that end with the first request that their context protects (RFC 9668).

use super::OscoreContexts;
use ebbtide_core::oscore::OuterMessage;
use ebbtide_core::session::with_options;
use ebbtide_core::wire::{Content, Opt, OptionNumber};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// A handshake that ends with the first request of its context. Dropping it before the server has
/// answered forgets the context.
pub(crate) struct EndingHandshake {
    contexts: OscoreContexts,
    number: u32,
    /// Message 3, unless a request has left with it.
    message_3: Mutex<Option<Vec<u8>>>,
    /// Requests to the same server wait for it.
    turn: Mutex<Option<OwnedMutexGuard<()>>>,
}

impl EndingHandshake {
    pub(super) fn new(
        contexts: OscoreContexts,
        number: u32,
        message_3: Vec<u8>,
        turn: OwnedMutexGuard<()>,
    ) -> Self {
        let (message_3, turn) = (Mutex::new(Some(message_3)), Mutex::new(Some(turn)));
        Self { contexts, number, message_3, turn }
    }

    /// Message 3, until it is sent.
    pub(super) fn message_3(&self) -> Option<Vec<u8>> {
        self.message_3.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A request has left with message 3.
    pub(super) fn sent(&self) {
        *self.message_3.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The server has shown that it has the context.
    pub(super) fn complete(&self) {
        let entry = self.contexts.get(self.number);
        if let Some(made) = entry.as_ref().and_then(|entry| entry.made.as_ref()) {
            made.is_complete.store(true, Ordering::Release);
        }
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for EndingHandshake {
    fn drop(&mut self) {
        let entry = self.contexts.get(self.number);
        if entry.is_some_and(|entry| !entry.is_complete()) {
            self.contexts.forget_made(self.number);
        }
    }
}

/// Calls `send` with a protected request that message 3 precedes (RFC 9668 section 3.2.1).
pub(super) fn combined<R>(
    outer: &OuterMessage<'_>,
    plain: &Content<'_>,
    message_3: &[u8],
    send: impl FnOnce(&Content<'_>) -> R,
) -> R {
    let edhoc = Opt { number: OptionNumber::EDHOC, value: &[] };
    with_options(outer.options(plain).chain([edhoc]), |options| {
        let payload = &[message_3, outer.payload].concat();
        send(&Content { code: outer.code, options, payload })
    })
}
