//! The cryptography that `dimpl` is given: RustCrypto's, with a change that makes a retry without an engine possible.
//!
//! `dimpl` computes the cookie of its HelloRetryRequest from a secret that each of its engines has of its
//! own. It asks the provider for this HMAC, and for no other with SHA-256, so that a provider decides
//! what the cookie is.

use dimpl::crypto::{
    Buf, CryptoProvider, HashAlgorithm, HmacProvider, KeyProvider, SignatureAlgorithm, SigningKey,
    rust_crypto,
};
use dimpl::{CryptoError, CryptoOperation};
use std::cell::Cell;

thread_local! {
    /// The cookie of the handshake that is at work on this thread.
    static COOKIE: Cell<Option<[u8; 32]>> = const { Cell::new(None) };
}

/// Runs `step`, in which a server's engine creates and expects `cookie`.
pub(crate) fn with_cookie<T>(cookie: [u8; 32], step: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            COOKIE.set(None);
        }
    }
    COOKIE.set(Some(cookie));
    let _reset = Reset;
    step()
}

/// The provider of a side that has a private key.
pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider { hmac_provider: &Cookies, ..rust_crypto::default_provider() }
}

/// The provider of a client without a certificate.
pub(crate) fn provider_without_key() -> CryptoProvider {
    CryptoProvider { key_provider: &NoKey, ..provider() }
}

/// Whether `dimpl` can sign with this private key. Its engines panic on other keys.
pub(crate) fn is_usable(key_der: &[u8]) -> bool {
    rust_crypto::default_provider().key_provider.load_private_key(key_der).is_ok()
}

#[derive(Debug)]
struct Cookies;

impl HmacProvider for Cookies {
    fn hmac_sha256(&self, key: &[u8], data: &[u8]) -> Result<[u8; 32], CryptoError> {
        match COOKIE.get() {
            Some(cookie) => Ok(cookie),
            None => rust_crypto::default_provider().hmac_provider.hmac_sha256(key, data),
        }
    }

    fn hmac(
        &self,
        hash: HashAlgorithm,
        key: &[u8],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        rust_crypto::default_provider().hmac_provider.hmac(hash, key, data, out)
    }
}

#[derive(Debug)]
struct NoKey;

impl KeyProvider for NoKey {
    fn load_private_key(&self, _: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
        Ok(Box::new(Self))
    }
}

impl SigningKey for NoKey {
    fn sign(&mut self, _: &[u8], _: HashAlgorithm, _: &mut Buf) -> Result<(), CryptoError> {
        Err(CryptoError::OperationFailed(CryptoOperation::Sign))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn supported_hash_algorithms(&self) -> &[HashAlgorithm] {
        &[HashAlgorithm::SHA256]
    }
}
