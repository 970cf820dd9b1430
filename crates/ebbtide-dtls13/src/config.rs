//! Settings and certificates.

use crate::provider::is_usable;
use core::fmt;
use dimpl::DtlsCertificate;
use ebbtide_core::time::Duration;
use std::sync::Arc;

/// The settings of DTLS 1.3.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Dtls13Config {
    /// Handshakes in progress at a server, with clients whose cookie was correct. At the limit the oldest
    /// one is dropped. Default 1024.
    pub handshakes: usize,
    /// Established sessions. At the limit the least recently used one of the address with most is dropped. Default 16384; a session
    /// takes about 17 KB.
    pub sessions: usize,
    /// The longest duration of a handshake at a server. Default 60 s.
    pub handshake_timeout: Duration,
}

impl Default for Dtls13Config {
    fn default() -> Self {
        let handshake_timeout = Duration::from_secs(60);
        Self { handshakes: 1024, sessions: 16_384, handshake_timeout }
    }
}

/// A certificate that can be shown over DTLS 1.3, with its private key.
#[derive(Clone)]
pub struct Certificate(Arc<DtlsCertificate>);

impl Certificate {
    /// The certificate `der` with its private key, both in DER. `None` if `dimpl` cannot sign with
    /// this key, which must be on P-256 or P-384: its engines would panic.
    #[must_use]
    pub fn new(der: Vec<u8>, private_key: Vec<u8>) -> Option<Self> {
        let certificate = DtlsCertificate { certificate: der, private_key };
        is_usable(&certificate.private_key).then(|| Self(Arc::new(certificate)))
    }

    pub(crate) fn to_dimpl(&self) -> DtlsCertificate {
        (*self.0).clone()
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate(..)")
    }
}

/// The certificate that a server shows to clients from now on, if it has one that can be shown.
#[derive(Clone)]
pub struct ServedCertificate(Arc<dyn Fn() -> Option<Certificate> + Send + Sync>);

impl ServedCertificate {
    /// `current` is called for each ClientHello of DTLS 1.3. While it returns `None`, clients get DTLS 1.2.
    pub fn new(current: impl Fn() -> Option<Certificate> + Send + Sync + 'static) -> Self {
        Self(Arc::new(current))
    }

    /// The certificate that is shown now.
    #[must_use]
    pub fn current(&self) -> Option<Certificate> {
        (self.0)()
    }
}

impl fmt::Debug for ServedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServedCertificate(..)")
    }
}
