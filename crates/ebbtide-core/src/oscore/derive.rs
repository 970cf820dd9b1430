//! The derivation of a context's keys (RFC 8613 section 3.2).

use super::aead::{Algorithm, KEY, MAX_NONCE};
use super::cbor::Derived;
use super::short::{ContextId, MAX_CONTEXT_ID, PeerId};
use core::fmt;
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize as _, Zeroizing};

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
    /// Our ID is longer than the algorithm's nonce allows (RFC 8613 section 3.3).
    SenderIdTooLong {
        /// The maximum length in bytes.
        max: usize,
    },
    /// The peer's ID is.
    RecipientIdTooLong {
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
            Self::SenderIdTooLong { max } | Self::RecipientIdTooLong { max } => {
                write!(f, "the ID has more than {max} bytes")
            }
            Self::IdContextTooLong => {
                write!(f, "the ID context has more than {MAX_CONTEXT_ID} bytes")
            }
            Self::SameIds => f.write_str("sender ID and recipient ID are the same"),
        }
    }
}

impl core::error::Error for ParameterError {}

/// The key of one of the two peers, and the beginning of its nonces.
pub(super) struct SenderKeys {
    pub(super) id: PeerId,
    pub(super) key: [u8; KEY],
    /// The nonce of its number 0. That of CCM takes all bytes, that of GCM one less.
    first_nonce: [u8; MAX_NONCE],
}

impl Drop for SenderKeys {
    fn drop(&mut self) {
        self.key.zeroize();
        self.first_nonce.zeroize();
    }
}

/// The keys of a context, and the names by which messages refer to them.
pub(super) struct ContextKeys {
    pub(super) algorithm: Algorithm,
    pub(super) id_context: Option<ContextId>,
    /// Ours.
    pub(super) sender: SenderKeys,
    /// The peer's.
    pub(super) recipient: SenderKeys,
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
        let id = |id: &[u8]| PeerId::new(id).filter(|_| id.len() <= max);
        let sender = id(sender).ok_or(ParameterError::SenderIdTooLong { max })?;
        let recipient = id(recipient).ok_or(ParameterError::RecipientIdTooLong { max })?;
        if sender == recipient {
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
        let mut common_iv = Zeroizing::new([0; MAX_NONCE]);
        derive(&[], "IV", common_iv.get_mut(..algorithm.nonce_len()).unwrap_or_default());
        let keys_of = |id: PeerId| {
            let first_nonce = first_nonce(algorithm, &id, &common_iv);
            let mut keys = SenderKeys { id, key: [0; KEY], first_nonce };
            derive(id.as_slice(), "Key", &mut keys.key);
            keys
        };
        Ok(Self { algorithm, id_context, sender: keys_of(sender), recipient: keys_of(recipient) })
    }

    /// The nonce of a number of this sender.
    pub(super) fn nonce(&self, of: &SenderKeys, number: u64) -> [u8; MAX_NONCE] {
        let mut first = [0; size_of::<u128>()];
        if let Some(place) = first.first_chunk_mut() {
            *place = of.first_nonce;
        }
        // Its digits are the last bytes of those that the algorithm takes.
        let behind = 8 * (first.len() - self.algorithm.nonce_len());
        let [nonce @ .., _, _, _] =
            (u128::from_be_bytes(first) ^ u128::from(number) << behind).to_be_bytes();
        nonce
    }
}

/// The nonce of number 0 (RFC 8613 section 5.2): the ID's length, the ID, the number, with zeros in
/// front of both, combined with the Common IV.
fn first_nonce(algorithm: Algorithm, id: &PeerId, common_iv: &[u8; MAX_NONCE]) -> [u8; MAX_NONCE] {
    const NUMBER: usize = 5;
    let id = id.as_slice();
    let mut nonce = *common_iv;
    nonce[0] ^= id.len() as u8;
    let first = algorithm.nonce_len() - NUMBER - id.len();
    nonce.iter_mut().skip(first).zip(id).for_each(|(to, byte)| *to ^= byte);
    nonce
}
