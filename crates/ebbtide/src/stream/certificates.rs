//! The authorities and certificates of TLS, for DTLS.

use super::tls::{Identity, TlsError, Trust, name_in, provider};
use super::tls_server::{Clients, TlsServer};
use crate::net::dtls::config::{Certificates, DtlsBind};
use ebbtide_dtls::{
    CertificateError, CertificateVerifier, CertifiedKey, ClientCertificates, ServerCertificates,
    SigningKey, Verified,
};
#[cfg(feature = "dtls13")]
use ebbtide_dtls13::{Certificate, ServedCertificate};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{self, Error, RootCertStore};

impl Certificates {
    /// Accepts the servers that `trust` accepts, and shows `identity` to those that request a
    /// certificate. The key of `identity` must be on the curve P-256.
    ///
    /// # Errors
    ///
    /// [`TlsError::NotForDtls`] for other keys, and errors of the authorities.
    pub fn new(trust: &Trust, identity: Option<&Identity>) -> Result<Self, TlsError> {
        let own = identity.map(Identity::for_dtls).transpose()?;
        let servers = match trust.is_system() {
            // The system's authorities are many, so they are read when they are first needed.
            true => Servers::System(OnceLock::new()),
            false => Servers::trusted_by(trust)?,
        };
        Ok(Self {
            verifier: Arc::new(servers),
            own,
            saved: None,
            #[cfg(feature = "dtls13")]
            own13: identity.and_then(Identity::for_dtls13),
        })
    }
}

impl DtlsBind {
    /// Serves at `address` over DTLS with the certificate of `tls`, to clients whose certificates `tls`
    /// accepts. A certificate that is replaced in `tls` is replaced here as well. Its key must be on the
    /// curve P-256.
    ///
    /// # Errors
    ///
    /// [`TlsError::NotForDtls`] for other keys, and errors of the authorities.
    pub fn with_certificates(
        address: impl Into<SocketAddr>,
        tls: &TlsServer,
    ) -> Result<Self, TlsError> {
        Self::at(address.into()).and_certificates(tls)
    }

    /// Also serves clients with certificates, as [`Self::with_certificates`] does.
    ///
    /// # Errors
    ///
    /// As [`Self::with_certificates`].
    pub fn and_certificates(mut self, tls: &TlsServer) -> Result<Self, TlsError> {
        if tls.shown_over_dtls().is_none() {
            return Err(TlsError::NotForDtls);
        }
        let clients = match tls.clients() {
            Clients::None => ClientCertificates::None,
            Clients::Optional(roots) => ClientCertificates::Optional(Devices::of(tls, roots)?),
            Clients::Required(roots) => ClientCertificates::Required(Devices::of(tls, roots)?),
        };
        #[cfg(feature = "dtls13")]
        {
            let tls = tls.clone();
            self.served13 = Some(ServedCertificate::new(move || tls.shown_over_dtls13()));
        }
        let tls = tls.clone();
        let own = Arc::new(move || tls.shown_over_dtls());
        self.certificates = Some(ServerCertificates { own, clients });
        Ok(self)
    }
}

impl Identity {
    /// The certificate and key as DTLS shows them.
    pub(super) fn for_dtls(&self) -> Result<Arc<CertifiedKey>, TlsError> {
        let key = SigningKey::from_der(self.key_der()).ok_or(TlsError::NotForDtls)?;
        CertifiedKey::new(self.chain(), key).map(Arc::new).ok_or(TlsError::NotForDtls)
    }

    /// The certificate for DTLS 1.3, whose library shows one certificate without a chain.
    #[cfg(feature = "dtls13")]
    pub(super) fn for_dtls13(&self) -> Option<Certificate> {
        let [certificate] = self.chain() else { return None };
        Certificate::new(certificate.to_vec(), self.key_der().to_vec())
    }
}

/// Verifies the certificates of servers.
enum Servers {
    System(OnceLock<Option<Arc<WebPkiServerVerifier>>>),
    Authorities(Arc<WebPkiServerVerifier>),
    Anyone,
}

impl Servers {
    fn trusted_by(trust: &Trust) -> Result<Self, TlsError> {
        if trust.is_anyone() {
            return Ok(Self::Anyone);
        }
        server_verifier(trust).map(Self::Authorities)
    }

    fn inner(&self) -> Result<Option<&Arc<WebPkiServerVerifier>>, CertificateError> {
        match self {
            Self::Anyone => Ok(None),
            Self::Authorities(verifier) => Ok(Some(verifier)),
            Self::System(verifier) => {
                let read = || match server_verifier(&Trust::system()) {
                    Ok(verifier) => Some(verifier),
                    Err(error) => {
                        tracing::warn!(%error, "no authorities for DTLS");
                        None
                    }
                };
                let verifier = verifier.get_or_init(read).as_ref();
                verifier.map(Some).ok_or(CertificateError::UnknownAuthority)
            }
        }
    }
}

fn server_verifier(trust: &Trust) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let roots = Arc::new(trust.roots()?);
    let builder = WebPkiServerVerifier::builder_with_provider(roots, provider());
    builder.build().map_err(|_| TlsError::NoCertificate)
}

impl CertificateVerifier for Servers {
    fn verify(&self, chain: &[&[u8]], name: Option<&str>) -> Result<Verified, CertificateError> {
        let (own, others) = split(chain)?;
        if let Some(verifier) = self.inner()? {
            let name = ServerName::try_from(name.unwrap_or_default())
                .map_err(|_| CertificateError::WrongName)?;
            let verified = verifier.verify_server_cert(&own, &others, &name, &[], UnixTime::now());
            verified.map_err(|error| refusal(&error))?;
            return verified_name(&own);
        }
        // Its name is not proved.
        Ok(Verified { identity: Vec::new(), ..verified_name(&own)? })
    }
}

/// Verifies the certificates of clients by the authorities that the server has at that time.
struct Devices {
    tls: TlsServer,
    current: RwLock<CurrentVerifier>,
}

/// A verifier, and the authorities that it knows.
#[derive(Clone)]
struct CurrentVerifier {
    roots: Arc<RootCertStore>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl CurrentVerifier {
    fn new(roots: Arc<RootCertStore>) -> Result<Self, TlsError> {
        let builder = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider());
        let verifier = builder.build().map_err(|_| TlsError::NoCertificate)?;
        Ok(Self { roots, verifier })
    }
}

impl Devices {
    fn of(tls: &TlsServer, roots: Arc<RootCertStore>) -> Result<Arc<Self>, TlsError> {
        let current = RwLock::new(CurrentVerifier::new(roots)?);
        Ok(Arc::new(Self { tls: tls.clone(), current }))
    }

    fn verifier(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        let clients = self.tls.clients();
        let roots = clients.roots()?;
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        if Arc::ptr_eq(&current.roots, roots) {
            return Some(current.verifier);
        }
        let new = CurrentVerifier::new(roots.clone()).ok()?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = new.clone();
        Some(new.verifier)
    }
}

impl CertificateVerifier for Devices {
    fn verify(&self, chain: &[&[u8]], _: Option<&str>) -> Result<Verified, CertificateError> {
        let (own, others) = split(chain)?;
        let verifier = self.verifier().ok_or(CertificateError::UnknownAuthority)?;
        let accepted = verifier.verify_client_cert(&own, &others, UnixTime::now());
        accepted.map_err(|error| refusal(&error))?;
        verified_name(&own)
    }
}

type Chain<'c> = (CertificateDer<'c>, Vec<CertificateDer<'c>>);

fn split<'c>(chain: &[&'c [u8]]) -> Result<Chain<'c>, CertificateError> {
    let (own, others) = chain.split_first().ok_or(CertificateError::Missing)?;
    Ok((CertificateDer::from(*own), others.iter().map(|other| (*other).into()).collect()))
}

fn verified_name(own: &CertificateDer<'_>) -> Result<Verified, CertificateError> {
    let parsed = webpki::EndEntityCert::try_from(own).map_err(|_| CertificateError::Malformed)?;
    let identity = name_in(&parsed).unwrap_or_default();
    Ok(Verified { public_key: parsed.subject_public_key_info().to_vec(), identity })
}

/// Why rustls refuses a certificate. Its details, such as names and times, go to the log.
fn refusal(error: &Error) -> CertificateError {
    use rustls::CertificateError as Reason;
    tracing::debug!(%error, "certificate refused");
    let Error::InvalidCertificate(reason) = error else { return CertificateError::Other };
    match reason {
        Reason::BadEncoding => CertificateError::Malformed,
        Reason::Expired | Reason::ExpiredContext { .. } => CertificateError::Expired,
        Reason::NotValidYet | Reason::NotValidYetContext { .. } => CertificateError::NotValidYet,
        Reason::Revoked => CertificateError::Revoked,
        Reason::UnknownIssuer => CertificateError::UnknownAuthority,
        Reason::BadSignature => CertificateError::BadSignature,
        Reason::NotValidForName | Reason::NotValidForNameContext { .. } => {
            CertificateError::WrongName
        }
        Reason::InvalidPurpose | Reason::InvalidPurposeContext { .. } => {
            CertificateError::WrongPurpose
        }
        _ => CertificateError::Other,
    }
}
