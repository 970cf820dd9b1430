//! The derivation of a context's keys (RFC 8613 section 3.2).

use super::aead::{Algorithm, KEY, MAX_NONCE};
use super::cbor::Derived;
use super::short::{ContextId, MAX_CONTEXT_ID, PeerId};
use core::fmt;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroize;

/// The parameters that both peers have in common. The key derivation is HKDF with SHA-256.
#[derive(Copy, Clone)]
pub struct MasterSecret<'a> {
    /// The Master Secret; uniformly random, 16 bytes or more.
    pub secret: &'a [u8],
    /// The Master Salt; may be empty.
    pub salt: &'a [u8],
    /// The ID Context.
    pub id_context: Option<&'a [u8]>,
    /// The AEAD algorithm.
    pub algorithm: Algorithm,
}

/// Shows no secret.
impl fmt::Debug for MasterSecret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasterSecret").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// The reason why no context can be derived. The fault is the caller's.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ParameterError {
    /// The Master Secret is empty.
    NoSecret,
    /// An ID is longer than the algorithm's nonce allows (RFC 8613 section 3.3).
    IdTooLong {
        /// The maximum length in bytes.
        max: usize,
    },
    /// The ID Context is longer than [`MAX_CONTEXT_ID`].
    IdContextTooLong,
    /// Both peers have the same ID, and so the same keys.
    SameIds,
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecret => f.write_str("the master secret is empty"),
            Self::IdTooLong { max } => write!(f, "an ID has more than {max} bytes"),
            Self::IdContextTooLong => {
                write!(f, "the ID context has more than {MAX_CONTEXT_ID} bytes")
            }
            Self::SameIds => f.write_str("sender ID and recipient ID are the same"),
        }
    }
}

impl core::error::Error for ParameterError {}

/// The keys of a context, and the names by which messages refer to them.
pub(super) struct ContextKeys {
    pub(super) algorithm: Algorithm,
    pub(super) sender_id: PeerId,
    pub(super) recipient_id: PeerId,
    pub(super) id_context: Option<ContextId>,
    pub(super) sender_key: [u8; KEY],
    pub(super) recipient_key: [u8; KEY],
    common_iv: [u8; MAX_NONCE],
}

impl Drop for ContextKeys {
    fn drop(&mut self) {
        self.sender_key.zeroize();
        self.recipient_key.zeroize();
        self.common_iv.zeroize();
    }
}

impl ContextKeys {
    pub(super) fn derive(
        secret: &MasterSecret<'_>,
        sender: &[u8],
        recipient: &[u8],
    ) -> Result<Self, ParameterError> {
        let algorithm = secret.algorithm;
        if secret.secret.is_empty() {
            return Err(ParameterError::NoSecret);
        }
        let max = algorithm.nonce_len() - 6;
        let id = |id: &[u8]| {
            PeerId::new(id).filter(|_| id.len() <= max).ok_or(ParameterError::IdTooLong { max })
        };
        let (sender_id, recipient_id) = (id(sender)?, id(recipient)?);
        if sender_id == recipient_id {
            return Err(ParameterError::SameIds);
        }
        let id_context = match secret.id_context {
            Some(id) => Some(ContextId::new(id).ok_or(ParameterError::IdContextTooLong)?),
            None => None,
        };
        let hkdf = Hkdf::<Sha256>::new(Some(secret.salt), secret.secret);
        let derive = |id: &[u8], kind: &'static str, out: &mut [u8]| {
            let what = Derived {
                id,
                id_context: secret.id_context,
                algorithm: algorithm.number(),
                kind,
                len: out.len(),
            };
            // HKDF gives up to 8,160 bytes, so this does not fail.
            let _ = hkdf.expand(what.info().as_slice(), out);
        };
        let mut keys = Self {
            algorithm,
            sender_id,
            recipient_id,
            id_context,
            sender_key: [0; KEY],
            recipient_key: [0; KEY],
            common_iv: [0; MAX_NONCE],
        };
        derive(sender, "Key", &mut keys.sender_key);
        derive(recipient, "Key", &mut keys.recipient_key);
        derive(&[], "IV", keys.common_iv.get_mut(..algorithm.nonce_len()).unwrap_or_default());
        Ok(keys)
    }

    /// The nonce of a number of the peer with this ID (RFC 8613 section 5.2): the ID's length, the ID, the number, with zeros in
    /// front of both, combined with the Common IV.
    pub(super) fn nonce(&self, id: &PeerId, number: u64) -> Nonce {
        let len = self.algorithm.nonce_len();
        let mut bytes = [0; MAX_NONCE];
        let id = id.as_slice();
        let [_, _, _, digits @ ..] = number.to_be_bytes();
        let first = len - digits.len() - id.len();
        bytes[0] = id.len() as u8;
        let from = id.iter().chain(&digits);
        bytes.iter_mut().skip(first).zip(from).for_each(|(to, from)| *to = *from);
        bytes.iter_mut().zip(&self.common_iv).for_each(|(to, iv)| *to ^= iv);
        Nonce { bytes, len }
    }
}

/// A nonce.
pub(super) struct Nonce {
    bytes: [u8; MAX_NONCE],
    len: usize,
}

impl Nonce {
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}
