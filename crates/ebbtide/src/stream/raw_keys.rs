//! Raw public keys (RFC 7250) for DTLS: keys without certificates, which the peers know beforehand.

use super::tls::TlsError;
use crate::net::dtls::config::{Certificates, DtlsBind};
use core::fmt;
use ebbtide_dtls::{
    CertificateError, CertificateType, CertificateVerifier, CertifiedKey, ClientCertificates,
    Fingerprint, ServerCertificates, SessionPeer, SigningKey, TrustedKeys, Verified,
};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};

/// Our own key pair on the curve P-256, whose public key is shown without a certificate (RFC 7250).
#[derive(Clone)]
pub struct RawKey(Arc<CertifiedKey>);

impl fmt::Debug for RawKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawKey({})", self.fingerprint())
    }
}

impl RawKey {
    /// Reads a private key as PEM.
    ///
    /// # Errors
    ///
    /// [`TlsError::NoKey`] if there is none, and [`TlsError::NotForDtls`] if it is not on the curve P-256.
    pub fn from_pem(pem: &[u8]) -> Result<Self, TlsError> {
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| TlsError::NoKey)?;
        let key = SigningKey::from_der(key.secret_der()).ok_or(TlsError::NotForDtls)?;
        Ok(Self(Arc::new(CertifiedKey::raw(key))))
    }

    /// The public key as SubjectPublicKeyInfo, in DER.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        self.0.public_key()
    }

    /// The fingerprint by which peers know the key.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.public_key())
    }
}

/// Reads the keys that are trusted from a text: public keys as PEM, and lines of a fingerprint with the identity of its
/// owner before it or none. An owner without an identity is known by the fingerprint. Empty lines and those that begin
/// with `#` are left out.
///
/// # Errors
///
/// [`TlsError::NoPublicKey`] if there is none, or a line is something else.
pub fn trusted_keys(text: &str) -> Result<TrustedKeys, TlsError> {
    let mut trusted = TrustedKeys::new();
    for key in SubjectPublicKeyInfoDer::pem_slice_iter(text.as_bytes()) {
        let fingerprint = Fingerprint::of(&key.map_err(|_| TlsError::NoPublicKey)?);
        trusted = trusted.and(fingerprint, fingerprint.to_string());
    }
    let mut is_pem = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("-----") {
            is_pem = line.starts_with("-----BEGIN");
        } else if !is_pem && !line.is_empty() && !line.starts_with('#') {
            let (identity, text) = match line.rsplit_once(char::is_whitespace) {
                Some((identity, text)) => (identity.trim(), text),
                None => (line, line),
            };
            let fingerprint = text.parse().map_err(|_| TlsError::NoPublicKey)?;
            trusted = trusted.and(fingerprint, identity);
        }
    }
    if trusted.is_empty() { Err(TlsError::NoPublicKey) } else { Ok(trusted) }
}

/// Keys that can be replaced.
#[derive(Debug)]
struct ReplaceableKeys(RwLock<TrustedKeys>);

impl CertificateVerifier for ReplaceableKeys {
    fn verify(&self, _: &[&[u8]], _: Option<&str>) -> Result<Verified, CertificateError> {
        Err(CertificateError::UnsupportedType)
    }

    fn types(&self) -> &[CertificateType] {
        &[CertificateType::RawPublicKey]
    }

    fn verify_key(&self, key: &[u8], name: Option<&str>) -> Result<Verified, CertificateError> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).verify_key(key, name)
    }
}

/// A server's raw key, and those of its clients if it accepts no others. They can be replaced while it serves. Clones
/// have the same keys.
#[derive(Clone, Debug)]
pub struct RawKeyServer {
    own: Arc<RwLock<RawKey>>,
    clients: Option<Arc<ReplaceableKeys>>,
}

impl RawKeyServer {
    /// Shows `own`. With `clients` it accepts only those with one of these keys.
    pub fn new(own: &RawKey, clients: impl Into<Option<TrustedKeys>>) -> Self {
        let replaceable = |trusted| Arc::new(ReplaceableKeys(RwLock::new(trusted)));
        Self { own: Arc::new(RwLock::new(own.clone())), clients: clients.into().map(replaceable) }
    }

    /// Shows another key in handshakes that begin later.
    pub fn set_key(&self, own: &RawKey) {
        *self.own.write().unwrap_or_else(PoisonError::into_inner) = own.clone();
    }

    /// Accepts these keys of clients instead of those before, in new sessions and in those that are
    /// resumed. Established sessions go on:
    /// [`ServerHandle::end_sessions`](crate::server::ServerHandle::end_sessions) with
    /// [`Self::serves`] ends those of removed keys. Does nothing at a server that was made without
    /// keys of clients.
    pub fn set_clients(&self, clients: TrustedKeys) {
        if let Some(keys) = &self.clients {
            *keys.0.write().unwrap_or_else(PoisonError::into_inner) = clients;
        }
    }

    /// Whether a peer would be known by the same identity now; true for one that has shown no raw key.
    #[must_use]
    pub fn serves(&self, peer: SessionPeer<'_>) -> bool {
        match (peer.certificate, &self.clients) {
            (Some(key), Some(clients))
                if peer.certificate_type == CertificateType::RawPublicKey =>
            {
                clients.verify_key(key, None).is_ok_and(|known| known.identity == peer.identity)
            }
            _ => true,
        }
    }
}

impl Certificates {
    /// Accepts servers by their raw public keys instead of certificates, and shows `own` to those that request a
    /// key of the client. The name of a server does not count.
    pub fn raw_keys(servers: TrustedKeys, own: Option<&RawKey>) -> Self {
        Self {
            verifier: Arc::new(servers),
            own: own.map(|own| own.0.clone()),
            saved: None,
            #[cfg(feature = "dtls13")]
            own13: None,
        }
    }
}

impl DtlsBind {
    /// Serves at `address` over DTLS with a raw public key instead of a certificate. With `clients` it accepts only
    /// those with one of these keys.
    pub fn with_raw_key(
        address: impl Into<SocketAddr>,
        own: &RawKey,
        clients: impl Into<Option<TrustedKeys>>,
    ) -> Self {
        Self::with_raw_keys(address, &RawKeyServer::new(own, clients))
    }

    /// As [`Self::with_raw_key`], with keys that can be replaced.
    pub fn with_raw_keys(address: impl Into<SocketAddr>, keys: &RawKeyServer) -> Self {
        Self::at(address.into()).and_raw_keys(keys)
    }

    /// Also serves clients that know the server by its raw public key, as [`Self::with_raw_key`] does. It takes the
    /// place of certificates.
    #[must_use]
    pub fn and_raw_key(self, own: &RawKey, clients: impl Into<Option<TrustedKeys>>) -> Self {
        self.and_raw_keys(&RawKeyServer::new(own, clients))
    }

    /// As [`Self::and_raw_key`], with keys that can be replaced.
    #[must_use]
    pub fn and_raw_keys(mut self, keys: &RawKeyServer) -> Self {
        let clients = match &keys.clients {
            Some(trusted) => ClientCertificates::Required(trusted.clone()),
            None => ClientCertificates::None,
        };
        let own = keys.own.clone();
        let own =
            Arc::new(move || Some(own.read().unwrap_or_else(PoisonError::into_inner).0.clone()));
        self.certificates = Some(ServerCertificates { own, clients });
        #[cfg(feature = "dtls13")]
        {
            self.served13 = None;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::PublicKeyData;

    #[test]
    fn keys_are_read_as_pem_and_as_fingerprints_with_and_without_names() {
        let pairs = [0; 3].map(|_| rcgen::KeyPair::generate().unwrap_or_else(|_| unreachable!()));
        let [one, two, three] = &pairs;
        let fingerprint = |pair: &rcgen::KeyPair| Fingerprint::of(&pair.subject_public_key_info());
        let own = RawKey::from_pem(one.serialize_pem().as_bytes());
        assert_eq!(own.map(|own| own.fingerprint()).ok(), Some(fingerprint(one)));
        let text = format!(
            "# devices\n{}\nlamp 7\t{}\n\n{}\n",
            one.public_key_pem(),
            fingerprint(two),
            fingerprint(three)
        );
        let read = trusted_keys(&text).map(|trusted| format!("{trusted:?}")).unwrap_or_default();
        let identity = |text: String| format!("{:?}", text.into_bytes());
        for (pair, name) in [
            (one, fingerprint(one).to_string()),
            (two, "lamp 7".to_owned()),
            (three, fingerprint(three).to_string()),
        ] {
            let entry = format!("{}: {}", fingerprint(pair), identity(name));
            assert!(read.contains(&entry), "{entry} is not in {read}");
        }
        for wrong in ["", "# none", "lamp", "lamp ni:///sha-256;AAAA", &one.serialize_pem()] {
            assert!(matches!(trusted_keys(wrong), Err(TlsError::NoPublicKey)), "{wrong}");
        }
        assert!(matches!(RawKey::from_pem(b""), Err(TlsError::NoKey)));
    }
}
