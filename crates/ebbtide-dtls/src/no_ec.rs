//! In place of `ec` without the feature `certificates`: there is no elliptic curve cryptography, so there
//! are no certificates.

use alloc::vec::Vec;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// There are none without the feature `certificates`.
#[derive(Clone, Debug)]
pub enum SigningKey {}

impl SigningKey {
    /// `None`.
    #[must_use]
    pub const fn from_der(_: &[u8]) -> Option<Self> {
        None
    }

    pub(crate) const fn public_key(&self) -> Vec<u8> {
        match *self {}
    }

    pub(crate) const fn sign(&self, _: &[u8; 32]) -> Option<Vec<u8>> {
        match *self {}
    }
}

/// There are none.
#[derive(Debug)]
pub(crate) enum VerificationKey {}

impl VerificationKey {
    pub(crate) const fn from_der(_: &[u8]) -> Option<Self> {
        None
    }

    pub(crate) const fn verifies(&self, _: &[u8; 32], _: &[u8]) -> bool {
        match *self {}
    }
}

/// There are none.
#[derive(Debug)]
pub(crate) enum Ephemeral {}

impl Ephemeral {
    pub(crate) fn new(_: &mut dyn CryptoRng) -> Option<Self> {
        None
    }

    pub(crate) const fn public(&self) -> Vec<u8> {
        match *self {}
    }

    pub(crate) const fn agree(&self, _: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        match *self {}
    }
}
