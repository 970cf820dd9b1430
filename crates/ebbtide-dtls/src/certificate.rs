//! X.509 certificates: our own, and the verification of the peer's. Path validation needs a clock and
//! trusted authorities, so it is the application's ([`CertificateVerifier`]).

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

/// Our certificate with the chain to its authority, and its private key.
#[derive(Clone, Debug)]
pub struct CertifiedKey {
    /// The body of the Certificate message (RFC 5246 section 7.4.2).
    pub(crate) message: Vec<u8>,
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
        fits.then_some(Self { message, key })
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
}

/// The authenticated identity of a session.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// The identity of a pre-shared key; empty if there is none.
    Key(Arc<[u8]>),
    Certificate(Arc<PeerCertificate>),
}

/// A peer's certificate.
#[derive(Debug)]
pub(crate) struct PeerCertificate {
    pub(crate) identity: Arc<[u8]>,
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

    pub(crate) fn certificate(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::Key(_) => None,
            Self::Certificate(certificate) => Some(&certificate.der),
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
            Self::WrongPurpose | Self::UnsupportedKey => AlertDescription::UNSUPPORTED_CERTIFICATE,
            Self::Other => AlertDescription::CERTIFICATE_UNKNOWN,
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
