//! Raw public keys (RFC 7250) for DTLS: keys without certificates, which the peers know beforehand.

use super::tls::TlsError;
use crate::net::dtls::config::{Certificates, DtlsBind};
use core::fmt;
use ebbtide_dtls::{
    CertifiedKey, ClientCertificates, Fingerprint, ServerCertificates, SigningKey, TrustedKeys,
};
use std::net::SocketAddr;
use std::sync::Arc;
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
        Self::at(address.into()).and_raw_key(own, clients)
    }

    /// Also serves clients that know the server by its raw public key, as [`Self::with_raw_key`] does. It takes the
    /// place of certificates.
    #[must_use]
    pub fn and_raw_key(mut self, own: &RawKey, clients: impl Into<Option<TrustedKeys>>) -> Self {
        let clients = match clients.into() {
            Some(trusted) => ClientCertificates::Required(Arc::new(trusted)),
            None => ClientCertificates::None,
        };
        let own = own.0.clone();
        let own = Arc::new(move || Some(own.clone()));
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
