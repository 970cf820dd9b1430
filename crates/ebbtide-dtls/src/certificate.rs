//! X.509 certificates and raw public keys (RFC 7250): our own, and the verification of the peer's.
//! Path validation needs a clock and trusted authorities, so it is the application's
//! ([`CertificateVerifier`]).

use crate::alert::AlertDescription;
use crate::ec::SigningKey;
use crate::shared::Arc;
use crate::wire::{Reader, put_u24};
use alloc::vec::Vec;
use core::fmt;

/// The longest Certificate message, in bytes: some five certificates with keys on P-256.
pub(crate) const MAX_CHAIN: usize = 8192;
/// The most certificates in a chain.
const MAX_CERTIFICATES: usize = 10;

/// The form in which a peer shows its public key (RFC 7250 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateType {
    /// In an X.509 certificate, with the chain to its authority.
    #[default]
    X509,
    /// Alone, as SubjectPublicKeyInfo.
    RawPublicKey,
}

impl CertificateType {
    /// The number in IANA's registry "TLS Certificate Types".
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::X509 => 0,
            Self::RawPublicKey => 2,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::X509, Self::RawPublicKey].into_iter().find(|kind| kind.number() == number)
    }
}

/// Our private key, with the forms in which its public key is shown.
#[derive(Clone, Debug)]
pub struct CertifiedKey {
    /// The body of the Certificate message with the chain (RFC 5246 section 7.4.2), if there is one.
    chain: Option<Vec<u8>>,
    /// SubjectPublicKeyInfo in DER.
    public: Vec<u8>,
    pub(crate) key: SigningKey,
}

impl CertifiedKey {
    /// Combines a chain of certificates in DER, our own first, with the private key of the first one.
    /// `None` if there is no certificate, or if the chain is longer than 8192 bytes. The caller ensures
    /// that key and certificate belong together; otherwise every handshake fails.
    #[must_use]
    pub fn new<C: AsRef<[u8]>>(chain: &[C], key: SigningKey) -> Option<Self> {
        let message = encode_chain(chain.iter().map(AsRef::as_ref));
        let fits = message.len() <= MAX_CHAIN && (1..=MAX_CERTIFICATES).contains(&chain.len());
        fits.then(|| Self { chain: Some(message), ..Self::raw(key) })
    }

    /// A key without a certificate (RFC 7250).
    #[must_use]
    pub fn raw(key: SigningKey) -> Self {
        Self { chain: None, public: key.public_key(), key }
    }

    /// The public key as SubjectPublicKeyInfo, in DER.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        &self.public
    }

    pub(crate) fn has(&self, kind: CertificateType) -> bool {
        kind == CertificateType::RawPublicKey || self.chain.is_some()
    }

    /// The body of the Certificate message that shows the key in this form, if there is one.
    pub(crate) fn message(&self, kind: CertificateType) -> Option<Vec<u8>> {
        match kind {
            CertificateType::X509 => self.chain.clone(),
            CertificateType::RawPublicKey => Some(encode_key(&self.public)),
        }
    }
}

/// The body of a Certificate message.
pub(crate) fn encode_chain<'c>(chain: impl Iterator<Item = &'c [u8]> + Clone) -> Vec<u8> {
    let length: usize = chain.clone().map(|certificate| 3 + certificate.len()).sum();
    let mut body = Vec::with_capacity(3 + length);
    put_u24(&mut body, length as u32);
    for certificate in chain {
        put_u24(&mut body, certificate.len() as u32);
        body.extend_from_slice(certificate);
    }
    body
}

/// The body of a Certificate message with a raw public key (RFC 7250 section 3).
fn encode_key(public: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(3 + public.len());
    put_u24(&mut body, public.len() as u32);
    body.extend_from_slice(public);
    body
}

/// The raw public key in the body of a Certificate message, which is empty if the peer has no key.
pub(crate) fn parse_key(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(body);
    let length = reader.u24()? as usize;
    let key = reader.take(length)?;
    reader.is_empty().then_some(key)
}

/// The certificates in the body of a Certificate message, the peer's own first.
pub(crate) fn parse_chain(body: &[u8]) -> Option<Vec<&[u8]>> {
    let mut reader = Reader::new(body);
    let length = reader.u24()? as usize;
    let mut list = Reader::new(reader.take(length)?);
    let mut chain = Vec::new();
    while !list.is_empty() {
        let length = list.u24()? as usize;
        let certificate = list.take(length)?;
        if certificate.is_empty() || chain.len() >= MAX_CERTIFICATES {
            return None;
        }
        chain.push(certificate);
    }
    reader.is_empty().then_some(chain)
}

/// Decides whether a peer's certificate is accepted.
pub trait CertificateVerifier: Send + Sync {
    /// Verifies a chain of certificates in DER, the peer's own first. `name` is the name or address by
    /// which a client knows its server; `None` at a server. That the peer has the private key is
    /// verified elsewhere. The function is called while a handshake waits, so it must return quickly.
    ///
    /// # Errors
    ///
    /// The reason why the certificate is not accepted.
    fn verify(&self, chain: &[&[u8]], name: Option<&str>) -> Result<Verified, CertificateError>;

    /// The forms that it accepts, the preferred one first. By default certificates alone.
    fn types(&self) -> &[CertificateType] {
        &[CertificateType::X509]
    }

    /// Verifies a raw public key, as SubjectPublicKeyInfo in DER. `name` is as in [`Self::verify`].
    ///
    /// # Errors
    ///
    /// The reason why the key is not accepted. By default none is.
    fn verify_key(&self, key: &[u8], name: Option<&str>) -> Result<Verified, CertificateError> {
        let _ = (key, name);
        Err(CertificateError::UnsupportedType)
    }
}

/// The contents of a verified certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Its SubjectPublicKeyInfo in DER.
    pub public_key: Vec<u8>,
    /// The name by which the application knows the peer.
    pub identity: Vec<u8>,
}

/// The certificates of a server.
#[derive(Clone)]
pub struct ServerCertificates {
    /// Returns our certificate for a handshake that begins. Without one, suites with certificates are
    /// not available.
    pub own: Arc<dyn Fn() -> Option<Arc<CertifiedKey>> + Send + Sync>,
    /// The certificates of clients.
    pub clients: ClientCertificates,
}

impl fmt::Debug for ServerCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCertificates").field("clients", &self.clients).finish_non_exhaustive()
    }
}

/// Whether a server requests certificates of its clients.
#[derive(Clone)]
pub enum ClientCertificates {
    /// It does not.
    None,
    /// It does, and also accepts clients without one, which have no identity.
    Optional(Arc<dyn CertificateVerifier>),
    /// It does, and accepts no others.
    Required(Arc<dyn CertificateVerifier>),
}

impl fmt::Debug for ClientCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Optional(_) => "Optional",
            Self::Required(_) => "Required",
        })
    }
}

impl ClientCertificates {
    pub(crate) const fn verifier(&self) -> Option<&Arc<dyn CertificateVerifier>> {
        match self {
            Self::None => None,
            Self::Optional(verifier) | Self::Required(verifier) => Some(verifier),
        }
    }

    pub(crate) const fn is_required(&self) -> bool {
        matches!(self, Self::Required(_))
    }

    /// Whether a client that has shown this in an earlier handshake would be known by the same identity now.
    pub(crate) fn still_accepts(&self, shown: &PeerCertificate) -> bool {
        let Some(verifier) = self.verifier() else { return false };
        let verified = match shown.kind {
            CertificateType::X509 => verifier.verify(&[&shown.der], None),
            CertificateType::RawPublicKey => verifier.verify_key(&shown.der, None),
        };
        verified.is_ok_and(|verified| *verified.identity == *shown.identity)
    }
}

/// The authenticated identity of a session.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// The identity of a pre-shared key; empty if there is none.
    Key(Arc<[u8]>),
    Certificate(Arc<PeerCertificate>),
}

/// A peer's certificate, or its raw public key.
#[derive(Debug)]
pub(crate) struct PeerCertificate {
    pub(crate) identity: Arc<[u8]>,
    pub(crate) kind: CertificateType,
    pub(crate) der: Arc<[u8]>,
}

impl Identity {
    pub(crate) fn none() -> Self {
        Self::Key(Arc::from([].as_slice()))
    }

    pub(crate) fn name(&self) -> &Arc<[u8]> {
        match self {
            Self::Key(identity) => identity,
            Self::Certificate(certificate) => &certificate.identity,
        }
    }

    pub(crate) fn certificate(&self) -> Option<&PeerCertificate> {
        match self {
            Self::Key(_) => None,
            Self::Certificate(certificate) => Some(certificate),
        }
    }
}

/// The reason why a certificate is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateError {
    /// It is not a well-formed X.509 certificate.
    Malformed,
    /// The peer has none, and one is required.
    Missing,
    /// It is no longer valid.
    Expired,
    /// It is not valid yet.
    NotValidYet,
    /// It was issued by an authority that is not trusted.
    UnknownAuthority,
    /// It is valid for other names than the one by which the peer is known.
    WrongName,
    /// Its signature is wrong.
    BadSignature,
    /// Its authority has revoked it.
    Revoked,
    /// It must not be used for this purpose, for example a server's certificate by a client.
    WrongPurpose,
    /// Its public key is not on P-256.
    UnsupportedKey,
    /// It is in another form than those that are accepted (RFC 7250 section 4.2).
    UnsupportedType,
    /// The raw public key is none of those that are trusted.
    UnknownKey,
    /// Another reason.
    Other,
}

impl CertificateError {
    /// The alert that the peer receives (RFC 5246 section 7.2.2 and 7.4.6).
    pub(crate) const fn alert(self) -> AlertDescription {
        match self {
            Self::Malformed | Self::BadSignature | Self::WrongName => {
                AlertDescription::BAD_CERTIFICATE
            }
            Self::Missing => AlertDescription::HANDSHAKE_FAILURE,
            Self::Expired | Self::NotValidYet => AlertDescription::CERTIFICATE_EXPIRED,
            Self::UnknownAuthority => AlertDescription::UNKNOWN_CA,
            Self::Revoked => AlertDescription::CERTIFICATE_REVOKED,
            Self::WrongPurpose | Self::UnsupportedKey | Self::UnsupportedType => {
                AlertDescription::UNSUPPORTED_CERTIFICATE
            }
            Self::UnknownKey | Self::Other => AlertDescription::CERTIFICATE_UNKNOWN,
        }
    }
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the peer's certificate is malformed",
            Self::Missing => "the peer has no certificate, and one is required",
            Self::Expired => "the peer's certificate has expired",
            Self::NotValidYet => "the peer's certificate is not valid yet",
            Self::UnknownAuthority => "the peer's certificate was issued by an unknown authority",
            Self::WrongName => "the peer's certificate is valid for another name",
            Self::BadSignature => "the signature of the peer's certificate is wrong",
            Self::Revoked => "the peer's certificate has been revoked",
            Self::WrongPurpose => "the peer's certificate must not be used for this purpose",
            Self::UnsupportedKey => "the key of the peer's certificate is not on the curve P-256",
            Self::UnsupportedType => {
                "the peer has no key in a form that is accepted: a certificate, or a raw public key"
            }
            Self::UnknownKey => "the peer's raw public key is not trusted",
            Self::Other => "the peer's certificate is not accepted",
        })
    }
}

impl core::error::Error for CertificateError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_read_as_it_was_written_and_a_damaged_one_is_refused() {
        let chain: [&[u8]; 2] = [b"own", b"authority"];
        let body = encode_chain(chain.into_iter());
        assert_eq!(parse_chain(&body).unwrap(), chain);
        assert_eq!(parse_chain(&encode_chain([].into_iter())), Some(Vec::new()));
        for length in 0..body.len() {
            assert_eq!(parse_chain(&body[..length]), None);
        }
        assert_eq!(parse_chain(&[&body[..], b"x"].concat()), None);
        assert_eq!(parse_chain(&encode_chain([&b""[..]].into_iter())), None);
    }
}
