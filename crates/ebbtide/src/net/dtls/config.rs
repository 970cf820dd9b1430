//! Settings of DTLS.

use core::fmt;
#[cfg(feature = "dtls13")]
use ebbtide_dtls::CertificateType;
use ebbtide_dtls::{
    CertificateVerifier, CertifiedKey, Credentials, Psk, PskLookup, SavedSession,
    ServerCertificates,
};
#[cfg(feature = "dtls13")]
use ebbtide_dtls13::{Certificate, Dtls13Config, ServedCertificate};
#[cfg(feature = "dtls13")]
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// The DTLS settings of clients and servers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DtlsConfig {
    /// A client's identity and key; the same for all servers.
    pub credentials: Option<Credentials>,
    /// A client's trust in servers with certificates, and its own; not used if there are
    /// [`credentials`](Self::credentials).
    pub certificates: Option<Certificates>,
    /// A client's settings. By default a client has no connection ID of its own, since it has one
    /// session with each server from a socket of its own. It uses the server's connection ID in
    /// its records.
    pub client: ebbtide_dtls::Config,
    /// A server's settings. By default a server issues connection IDs of six bytes.
    pub server: ebbtide_dtls::Config,
    /// Receives the secrets of each session.
    pub key_log: Option<KeyLogger>,
    /// DTLS 1.3, for handshakes with certificates; `None`, the default, is DTLS 1.2 alone. A server then
    /// serves both versions, and the ClientHello decides. A client speaks DTLS 1.3 alone with servers that
    /// it knows by certificates.
    #[cfg(feature = "dtls13")]
    pub dtls13: Option<Dtls13Config>,
}

impl Default for DtlsConfig {
    fn default() -> Self {
        let server = ebbtide_dtls::Config::default();
        let client = ebbtide_dtls::Config { cid_length: Some(0), ..server.clone() };
        Self {
            credentials: None,
            certificates: None,
            client,
            server,
            key_log: None,
            #[cfg(feature = "dtls13")]
            dtls13: None,
        }
    }
}

/// The servers that a client accepts by their certificates or raw public keys, and its own one. It is created from
/// the authorities and the certificate of TLS, or from keys, with the feature `dtls-cert`.
#[derive(Clone)]
pub struct Certificates {
    pub(crate) verifier: Arc<dyn CertificateVerifier>,
    pub(crate) own: Option<Arc<CertifiedKey>>,
    pub(crate) saved: Option<SavedSession>,
    #[cfg(feature = "dtls13")]
    pub(crate) own13: Option<Certificate>,
}

impl Certificates {
    /// Resumes this session with the first server that knows it.
    #[must_use]
    pub fn resuming(self, saved: SavedSession) -> Self {
        Self { saved: Some(saved), ..self }
    }

    /// The certificate that a client shows over DTLS 1.3.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be shown.
    #[cfg(feature = "dtls13")]
    pub(crate) fn for_v13(&self) -> io::Result<Option<Certificate>> {
        if !self.verifier.types().contains(&CertificateType::X509) {
            let why = "raw public keys cannot be shown over DTLS 1.3: use DTLS 1.2";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        if self.own.is_some() && self.own13.is_none() {
            return Err(unsuitable("the certificate of a client"));
        }
        Ok(self.own13.clone())
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("own", &self.own).finish_non_exhaustive()
    }
}

/// A socket of a server that speaks DTLS, with the keys of its clients, its certificate, or both.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DtlsBind {
    /// The address of its socket.
    pub address: SocketAddr,
    /// The keys of its clients.
    pub keys: Option<Keys>,
    pub(crate) certificates: Option<ServerCertificates>,
    #[cfg(feature = "dtls13")]
    pub(crate) served13: Option<ServedCertificate>,
}

impl DtlsBind {
    /// Serves at `address` the clients whose keys `keys` knows.
    pub fn new(
        address: impl Into<SocketAddr>,
        keys: impl Fn(&[u8]) -> Option<Psk> + Send + Sync + 'static,
    ) -> Self {
        let keys = Some(Keys { first: Arc::new(keys), other: None });
        Self { keys, ..Self::at(address.into()) }
    }

    /// Also accepts a second key of an identity, which is tried if the client does not have the
    /// first one: while the keys of devices are replaced.
    #[must_use]
    pub fn and_other_keys(
        mut self,
        keys: impl Fn(&[u8]) -> Option<Psk> + Send + Sync + 'static,
    ) -> Self {
        if let Some(known) = &mut self.keys {
            known.other = Some(Arc::new(keys));
        }
        self
    }

    pub(crate) const fn at(address: SocketAddr) -> Self {
        Self {
            address,
            keys: None,
            certificates: None,
            #[cfg(feature = "dtls13")]
            served13: None,
        }
    }

    /// The certificate for DTLS 1.3 and the verifier of those of clients, if there are certificates.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be used with DTLS 1.3.
    #[cfg(feature = "dtls13")]
    pub(crate) fn for_v13(&self) -> io::Result<Option<(ServedCertificate, Clients13)>> {
        use ebbtide_dtls::ClientCertificates;
        let (Some(served), Some(certificates)) = (&self.served13, &self.certificates) else {
            return Ok(None);
        };
        if served.current().is_none() {
            return Err(unsuitable("the certificate of a server"));
        }
        let clients = match &certificates.clients {
            ClientCertificates::None => None,
            ClientCertificates::Required(verifier) => Some(Arc::clone(verifier)),
            ClientCertificates::Optional(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a server of DTLS 1.3 either requires certificates of clients or requests none: \
                     use require_client_certificates",
                ));
            }
        };
        Ok(Some((served.clone(), clients)))
    }
}

/// The verifier of the certificates of clients; `None` if the server requests none.
#[cfg(feature = "dtls13")]
type Clients13 = Option<Arc<dyn CertificateVerifier>>;

#[cfg(feature = "dtls13")]
fn unsuitable(what: &str) -> io::Error {
    let text = format!(
        "{what} cannot be shown over DTLS 1.3: it must be issued by an authority that the peer trusts \
         itself, without certificates between them in the file, and have a key on P-256 or P-384"
    );
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Looks up pre-shared keys by identity. The function is called while a socket is locked, so it
/// must return quickly.
#[derive(Clone)]
pub struct Keys {
    first: Arc<LookUp>,
    other: Option<Arc<LookUp>>,
}

type LookUp = dyn Fn(&[u8]) -> Option<Psk> + Send + Sync;

impl PskLookup for Keys {
    fn key(&mut self, identity: &[u8]) -> Option<Psk> {
        (self.first)(identity)
    }

    fn other_key(&mut self, identity: &[u8]) -> Option<Psk> {
        self.other.as_ref().and_then(|keys| keys(identity))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

/// Receives the secrets of sessions as lines of an NSS key log, with which Wireshark decrypts a
/// capture. The lines are as secret as the data that they decrypt.
#[derive(Clone)]
pub struct KeyLogger(Arc<dyn Fn(&str) + Send + Sync>);

impl KeyLogger {
    /// Calls `log` with each line, without a line ending. It is called while a socket is locked,
    /// so it must return quickly.
    pub fn new(log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(log))
    }

    pub(super) fn log(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for KeyLogger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLogger(..)")
    }
}
