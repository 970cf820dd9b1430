//! Raw public keys that are known beforehand, by their fingerprints.

use crate::certificate::{CertificateError, CertificateType, CertificateVerifier, Verified};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use sha2::{Digest, Sha256};

/// The characters of base64url (RFC 4648 section 5).
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The beginning of a fingerprint as text (RFC 6920 section 3).
const SCHEME: &str = "ni:///sha-256;";

/// The SHA-256 hash of a public key as SubjectPublicKeyInfo, by which RFC 7252 section 9.1.3.2.1 names it. Its text is
/// that of RFC 6920: `ni:///sha-256;` and 43 characters of base64url.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of a public key as SubjectPublicKeyInfo, in DER.
    #[must_use]
    pub fn of(public_key: &[u8]) -> Self {
        Self(Sha256::digest(public_key).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from(SCHEME);
        for part in self.0.chunks(3) {
            let bytes = [0, 1, 2].map(|at| part.get(at).copied().map_or(0, u32::from));
            let bits = bytes[0] << 16 | bytes[1] << 8 | bytes[2];
            for place in 0..=part.len() {
                let index = (bits >> (18 - 6 * place)) as usize % ALPHABET.len();
                text.push(char::from(ALPHABET[index]));
            }
        }
        f.write_str(&text)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text is not a [`Fingerprint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintError;

impl fmt::Display for FingerprintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a fingerprint is {SCHEME} and 43 characters of base64url")
    }
}

impl core::error::Error for FingerprintError {}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let digits = text.strip_prefix(SCHEME).ok_or(FingerprintError)?;
        let mut hash = Vec::with_capacity(32);
        let (mut bits, mut count) = (0u32, 0);
        for digit in digits.bytes() {
            let value = ALPHABET.iter().position(|known| *known == digit);
            bits = bits << 6 | value.ok_or(FingerprintError)? as u32;
            count += 6;
            if count >= 8 {
                count -= 8;
                hash.push((bits >> count) as u8);
            }
        }
        let rest = bits & ((1 << count) - 1);
        let hash = <[u8; 32]>::try_from(hash).map_err(|_| FingerprintError)?;
        if digits.len() == 43 && rest == 0 { Ok(Self(hash)) } else { Err(FingerprintError) }
    }
}

/// The raw public keys (RFC 7250) that an endpoint accepts of its peers, and the identities of their owners.
#[derive(Clone, Debug, Default)]
pub struct TrustedKeys {
    identities: BTreeMap<Fingerprint, Vec<u8>>,
}

impl TrustedKeys {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { identities: BTreeMap::new() }
    }

    /// Accepts the key with this fingerprint. Its owner is known as `identity`; several keys may have the same.
    #[must_use]
    pub fn and(mut self, key: Fingerprint, identity: impl Into<Vec<u8>>) -> Self {
        self.identities.insert(key, identity.into());
        self
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.identities.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.identities.is_empty()
    }
}

impl CertificateVerifier for TrustedKeys {
    fn verify(&self, _: &[&[u8]], _: Option<&str>) -> Result<Verified, CertificateError> {
        Err(CertificateError::UnsupportedType)
    }

    fn types(&self) -> &[CertificateType] {
        &[CertificateType::RawPublicKey]
    }

    fn verify_key(&self, key: &[u8], _: Option<&str>) -> Result<Verified, CertificateError> {
        let identity = self.identities.get(&Fingerprint::of(key));
        let identity = identity.ok_or(CertificateError::UnknownKey)?.clone();
        Ok(Verified { public_key: key.to_vec(), identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_fingerprint_has_the_text_of_rfc_6920_and_is_read_from_it() {
        // Section 8.1.
        let text = "ni:///sha-256;f4OxZX_x_FO5LcGBSKHWXfwtSx-j1ncoSt3SABJtkGk";
        let fingerprint = Fingerprint::of(b"Hello World!");
        assert_eq!(fingerprint.to_string(), text);
        assert_eq!(text.parse(), Ok(fingerprint));
        for wrong in [
            "",
            SCHEME,
            &text[..56],
            &text[1..],
            &text.replace('_', "/"),
            &text.replace("Gk", "Gl"),
        ] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(FingerprintError), "{wrong}");
        }
    }

    #[test]
    fn a_key_is_known_by_its_fingerprint_and_no_other_is() {
        assert!(TrustedKeys::new().is_empty());
        let trusted = TrustedKeys::new().and(Fingerprint::of(b"key"), "device");
        assert_eq!((trusted.len(), trusted.is_empty()), (1, false));
        let verified = Verified { public_key: b"key".to_vec(), identity: b"device".to_vec() };
        assert_eq!(trusted.verify_key(b"key", None), Ok(verified));
        assert_eq!(trusted.verify_key(b"kex", None), Err(CertificateError::UnknownKey));
        assert_eq!(trusted.verify(&[b"key"], None), Err(CertificateError::UnsupportedType));
    }
}
