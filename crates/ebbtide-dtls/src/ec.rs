//! Ephemeral Diffie-Hellman and ECDSA with SHA-256 on the curve P-256, which RFC 7252 section 9.1.3.3 and
//! RFC 7925 section 4.4 require of CoAP with certificates.

use alloc::vec::Vec;
use core::fmt;
use p256::ecdsa::signature::hazmat::{PrehashSigner, PrehashVerifier};
use p256::ecdsa::{DerSignature, VerifyingKey};
use p256::elliptic_curve::Generate;
use p256::elliptic_curve::sec1::ToSec1Point;
use p256::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePublicKey};
use p256::{PublicKey, SecretKey};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// The private key of a certificate, on P-256. It is wiped when it is dropped, and never printed.
#[derive(Clone)]
pub struct SigningKey(p256::ecdsa::SigningKey);

impl SigningKey {
    /// Reads a private key in DER, as PKCS #8 or SEC 1. `None` if it is not a private key on P-256.
    #[must_use]
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let key = SecretKey::from_pkcs8_der(der).ok();
        let key = key.or_else(|| SecretKey::from_sec1_der(der).ok())?;
        Some(Self(key.into()))
    }

    /// The public key as SubjectPublicKeyInfo, in DER.
    pub(crate) fn public_key(&self) -> Vec<u8> {
        // Encoding a valid key cannot fail.
        self.0.verifying_key().to_public_key_der().map(|der| der.into_vec()).unwrap_or_default()
    }

    /// An ECDSA signature of a SHA-256 hash, in DER. The same hash gives the same signature (RFC 6979).
    pub(crate) fn sign(&self, hash: &[u8; 32]) -> Option<Vec<u8>> {
        let signature: DerSignature = self.0.sign_prehash(hash).ok()?;
        Some(signature.as_bytes().to_vec())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

/// The public key in a certificate.
#[derive(Debug)]
pub(crate) struct VerificationKey(VerifyingKey);

impl VerificationKey {
    /// Reads a certificate's SubjectPublicKeyInfo, in DER. `None` if it is not a key on P-256.
    pub(crate) fn from_der(der: &[u8]) -> Option<Self> {
        VerifyingKey::from_public_key_der(der).ok().map(Self)
    }

    pub(crate) fn verifies(&self, hash: &[u8; 32], signature: &[u8]) -> bool {
        DerSignature::from_bytes(signature)
            .is_ok_and(|signature| self.0.verify_prehash(hash, &signature).is_ok())
    }
}

/// The private value of one handshake.
pub(crate) struct Ephemeral(SecretKey);

impl Ephemeral {
    pub(crate) fn new(rng: &mut dyn CryptoRng) -> Option<Self> {
        Some(Self(SecretKey::generate_from_rng(rng)))
    }

    /// The public value, as an uncompressed point (RFC 8422 section 5.4.1).
    pub(crate) fn public(&self) -> Vec<u8> {
        self.0.public_key().to_sec1_point(false).as_bytes().to_vec()
    }

    /// The premaster secret (RFC 8422 section 5.10). `None` if the peer's value is not an uncompressed point of the
    /// curve: other forms were not offered (section 5.1.2).
    pub(crate) fn agree(&self, peer: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        const UNCOMPRESSED: u8 = 4;
        if peer.first() != Some(&UNCOMPRESSED) {
            return None;
        }
        let peer = PublicKey::from_sec1_bytes(peer).ok()?;
        let shared = self.0.diffie_hellman(&peer);
        Some(Zeroizing::new(shared.raw_secret_bytes().to_vec()))
    }
}

impl fmt::Debug for Ephemeral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ephemeral(..)")
    }
}
