//! The binding of a ciphertext to its request (RFC 8613 sections 5.2 and 5.4).

use super::aead::{Algorithm, MAX_NONCE};
use super::cbor::{Cbor, additional_data};
use super::option::partial_iv_of;
use super::short::PeerId;

/// The inputs of an encryption or decryption, apart from key and text.
pub(super) struct Binding<'k> {
    /// The request's number and the ID of its sender.
    pub(super) request: u64,
    pub(super) kid: &'k PeerId,
    pub(super) nonce: [u8; MAX_NONCE],
}

impl Binding<'_> {
    pub(super) fn additional_data(&self, algorithm: Algorithm) -> Cbor {
        additional_data(algorithm.number(), self.kid, &partial_iv_of(self.request))
    }
}
