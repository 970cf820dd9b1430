//! TLS by rustls: trust in servers, and our own identity (RFC 8323 section 9).

use super::socket::StreamSocket;
use crate::net::peer::PeerInfo;
use crate::proved_identity::ProvedIdentity;
use core::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// The protocol name that both sides must send (RFC 8323 section 8.2).
pub(super) const ALPN: &[u8] = b"coap";

/// A client's side of TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientTls {
    /// The server certificates that it accepts.
    pub(crate) trust: Trust,
    /// The certificate with which it authenticates itself, if a server asks for one.
    pub(crate) identity: Option<Identity>,
}

/// The server certificates that a client accepts.
#[derive(Clone, Debug, Default)]
pub struct Trust(Roots);

#[derive(Clone, Debug, Default)]
enum Roots {
    #[default]
    System,
    Authorities(Vec<CertificateDer<'static>>),
    Nobody,
}

impl Trust {
    /// Trusts the authorities that the operating system trusts. This is the default.
    #[must_use]
    pub const fn system() -> Self {
        Self(Roots::System)
    }

    /// Trusts only the authorities in this PEM text.
    ///
    /// # Errors
    ///
    /// Returns an error if `pem` does not contain a certificate.
    pub fn authorities(pem: &[u8]) -> Result<Self, TlsError> {
        certificates(pem).map(Roots::Authorities).map(Self)
    }

    /// Accepts any certificate. Dangerous: an attacker on the path can read and change everything,
    /// as without TLS. Use it only for experiments on a machine of your own.
    #[must_use]
    pub const fn dangerously_anyone() -> Self {
        Self(Roots::Nobody)
    }

    #[cfg(feature = "dtls-cert")]
    pub(super) const fn is_system(&self) -> bool {
        matches!(self.0, Roots::System)
    }

    pub(super) const fn is_anyone(&self) -> bool {
        matches!(self.0, Roots::Nobody)
    }

    /// The authorities; none if anyone is trusted.
    pub(super) fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        match &self.0 {
            Roots::System => return system_roots(),
            Roots::Authorities(authorities) => {
                for authority in authorities {
                    roots.add(authority.clone()).map_err(TlsError::Rejected)?;
                }
            }
            Roots::Nobody => {}
        }
        Ok(roots)
    }
}

/// A certificate with the chain to its authority, and its private key.
#[derive(Clone)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key must not be printed.
        write!(f, "Identity({} certificates)", self.chain.len())
    }
}

impl Identity {
    /// Reads a certificate chain, our own certificate first, and a private key, both as PEM. Both
    /// may be the same text.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no certificate or no key, or if the two do not belong
    /// together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey)?;
        let identity = Self { chain, key: Arc::new(key) };
        identity.certified()?;
        Ok(identity)
    }

    /// The instant after which the certificate is not valid any more, in seconds since 1970; `None` if it does not say.
    #[must_use]
    pub fn not_after(&self) -> Option<u64> {
        super::expiry::not_after(self.chain.first()?)
    }

    #[cfg(feature = "dtls-cert")]
    pub(super) fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    #[cfg(feature = "dtls-cert")]
    pub(super) fn key_der(&self) -> &[u8] {
        self.key.secret_der()
    }

    /// The certificate and the key as rustls shows them.
    pub(super) fn certified(&self) -> Result<Arc<CertifiedKey>, TlsError> {
        let certified =
            CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), &provider());
        certified.map(Arc::new).map_err(TlsError::Rejected)
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect();
    if found.is_empty() { Err(TlsError::NoCertificate) } else { Ok(found) }
}

/// Makes a TLS connection to a server of this name out of one over TCP.
pub(crate) async fn connect(
    tls: &ClientTls,
    host: &str,
    stream: StreamSocket,
) -> io::Result<TlsStream<StreamSocket>> {
    let settings = client(&tls.trust, tls.identity.as_ref()).map_err(io::Error::other)?;
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    TlsConnector::from(settings).connect(name, stream).await
}

/// Whether client and server have agreed on CoAP (ALPN).
pub(crate) fn has_protocol(stream: &TlsStream<StreamSocket>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(ALPN)
}

/// The server, with the certificate that it has shown and the name in it, which is unproved if anyone is trusted.
pub(crate) fn server(
    tls: &ClientTls,
    remote: SocketAddr,
    stream: &TlsStream<StreamSocket>,
) -> PeerInfo {
    let chain = stream.get_ref().1.peer_certificates();
    let info = info_of(remote, chain);
    let identity = info.identity.filter(|_| !tls.trust.is_anyone());
    PeerInfo { identity, ..info }
}

/// A peer, with the certificate that it has shown and the name in it.
pub(super) fn info_of(address: SocketAddr, chain: Option<&[CertificateDer<'_>]>) -> PeerInfo {
    let shown = chain.and_then(|chain| chain.first());
    let parsed = shown.and_then(|shown| webpki::EndEntityCert::try_from(shown).ok());
    let name = parsed.and_then(|parsed| name_in(&parsed)).map(Arc::from);
    let identity = name.map(ProvedIdentity::Shared);
    let certificate = shown.map(|shown| shown.as_ref().into());
    PeerInfo { identity, certificate, ..PeerInfo::at(address) }
}

/// The name by which a certificate's owner is known.
pub(super) fn name_in(certificate: &webpki::EndEntityCert<'_>) -> Option<Vec<u8>> {
    Some(certificate.valid_dns_names().next()?.as_bytes().to_vec())
}

/// The rustls settings of a client.
fn client(trust: &Trust, identity: Option<&Identity>) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Rejected)?;
    let builder = match &trust.0 {
        Roots::System | Roots::Authorities(_) => builder.with_root_certificates(trust.roots()?),
        Roots::Nobody => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider))),
    };
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
            .map_err(TlsError::Rejected)?,
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(config))
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TlsError::NoSystemRoots) } else { Ok(roots) }
}

/// Accepts every certificate; see [`Trust::dangerously_anyone`].
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    // It is still verified that the peer has the certificate's key.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The reason why certificates or a key cannot be used. The fault is the caller's.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TlsError {
    /// No certificate in the PEM text.
    NoCertificate,
    /// No private key in the PEM text.
    NoKey,
    /// The operating system trusts no authorities.
    NoSystemRoots,
    /// No public key in the text.
    NoPublicKey,
    /// DTLS needs a key on the curve P-256, and a chain of at most 8192 bytes.
    NotForDtls,
    /// The certificate or the key is not accepted.
    Rejected(Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("no certificate: a PEM text has BEGIN CERTIFICATE"),
            Self::NoKey => f.write_str("no private key: a PEM text has BEGIN PRIVATE KEY"),
            Self::NoPublicKey => f.write_str(
                "no public key: a PEM text has BEGIN PUBLIC KEY, and a line of a fingerprint ends with ni:///sha-256;HASH",
            ),
            Self::NoSystemRoots => f.write_str(
                "the system trusts no authority: install its certificates, or name one to trust",
            ),
            Self::NotForDtls => f.write_str(
                "DTLS needs a key on the curve P-256 (prime256v1), and a chain of at most 8192 bytes",
            ),
            Self::Rejected(error) => write!(f, "certificate or key not accepted: {error}"),
        }
    }
}

impl core::error::Error for TlsError {}
