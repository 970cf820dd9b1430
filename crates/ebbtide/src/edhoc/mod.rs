//! EDHOC (RFC 9528): a handshake that gives two peers a security context of OSCORE, authenticated by their public keys.
//!
//! Method 3 (both authenticate with static Diffie-Hellman keys) and cipher suite 2 (P-256,
//! AES-CCM-16-64-128, SHA-256) are supported, with CWT Claims Sets as credentials. A client that
//! has no context for a server makes one before its first request to it, with a request to
//! `/.well-known/edhoc`, where a server answers. The handshake ends with a second one, or with the
//! first request itself if that is short (RFC 9668). Contexts made so end with the program.
//!
//! ```no_run
//! use ebbtide::edhoc::EdhocCredentials;
//!
//! # async fn example(key: &[u8], own: &[u8], server: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let credentials = EdhocCredentials::new(key, own)?.peer(server, "cloud")?;
//! let client = ebbtide::Client::with_config(ebbtide::ClientConfig::new().edhoc(credentials));
//! let response = client.get("coap://192.0.2.7/temperature").await?;
//! # Ok(()) }
//! ```

mod combined;
mod credentials;
mod crypto;
mod handshake;
mod server;
#[cfg(test)]
pub(crate) mod tests;
mod unfinished;

pub use credentials::{CredentialError, EdhocCredentials};

pub(crate) use handshake::HandshakeFault;
pub(crate) use server::{FIRST, TURNS, is_handshake, refusal};
pub(crate) use unfinished::HandshakePeer;

use crate::net::clock::secret_bytes;
use crate::oscore::OscoreContexts;
use crypto::Cryptography;
use ebbtide_core::oscore::MAX_PEER_ID;
use handshake::{Initiator, WaitingResponder};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::OwnedMutexGuard;
use unfinished::Unfinished;

/// How many servers without combined requests a client remembers. One that is forgotten refuses once more.
const MAX_SEPARATE: usize = 1024;

/// The handshakes of a client or server.
#[derive(Clone, Debug)]
pub(crate) struct Edhoc(Arc<Handshakes>);

#[derive(Debug)]
struct Handshakes {
    credentials: EdhocCredentials,
    /// A client makes one handshake at a time with a server, so that requests at the same time share one context.
    turns: Mutex<BTreeMap<SocketAddr, Weak<tokio::sync::Mutex<()>>>>,
    /// Servers that do not know the combined request of RFC 9668.
    separate: Mutex<BTreeSet<SocketAddr>>,
    /// Of a server.
    unfinished: Mutex<Unfinished<WaitingResponder>>,
}

impl Edhoc {
    pub(crate) fn new(credentials: EdhocCredentials) -> Self {
        let (turns, separate) = Default::default();
        let unfinished = Mutex::new(Unfinished::new());
        Self(Arc::new(Handshakes { credentials, turns, separate, unfinished }))
    }

    pub(crate) fn credentials(&self) -> &EdhocCredentials {
        &self.0.credentials
    }

    /// Waits for the handshake of this client with a server that is under way.
    pub(crate) async fn turn(&self, server: SocketAddr) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| turn.strong_count() > 0);
            let known = turns.get(&server).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let turn = Arc::default();
                turns.insert(server, Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
    }

    /// Notes that a server does not know the combined request.
    pub(crate) fn refuses_combined(&self, server: SocketAddr) {
        let mut separate = self.0.separate.lock().unwrap_or_else(PoisonError::into_inner);
        if separate.len() >= MAX_SEPARATE {
            separate.pop_first();
        }
        separate.insert(server);
    }

    /// Whether a handshake with this server may end with a combined request.
    pub(crate) fn may_combine(&self, server: SocketAddr) -> bool {
        !self.0.separate.lock().unwrap_or_else(PoisonError::into_inner).contains(&server)
    }

    /// Begins a handshake as a client. Returns message 1.
    pub(crate) fn begin(
        &self,
        contexts: &OscoreContexts,
    ) -> Result<(Initiator, Vec<u8>), HandshakeFault> {
        let crypto = ephemeral().ok_or(HandshakeFault::NoRandomness)?;
        let id = identifier(|id| contexts.has(id)).ok_or(HandshakeFault::NoRandomness)?;
        Initiator::begin(crypto, &self.0.credentials, &id)
    }
}

/// A new ephemeral key. `None` if the system provides no randomness.
fn ephemeral() -> Option<Cryptography> {
    (0..4).find_map(|_| Cryptography::new(secret_bytes()?))
}

/// An identifier of a peer that no context has, as short as there are some. `None` if the system
/// provides no randomness.
fn identifier(is_taken: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    // One byte as an integer of CBOR, which is sent as it is; then more, which have a head.
    for len in [1, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, MAX_PEER_ID] {
        let drawn: [u8; MAX_PEER_ID] = secret_bytes()?;
        let mut id: Vec<u8> = drawn.into_iter().take(len).collect();
        if let [id] = &mut *id {
            let (sign, value) = (*id & 0x20, (*id & 0x1f) % 24);
            *id = sign | value;
        }
        if !is_taken(&id) {
            return Some(id);
        }
    }
    None
}
