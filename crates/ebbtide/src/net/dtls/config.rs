//! Settings of DTLS.

use core::fmt;
use ebbtide_dtls::{
    CertificateVerifier, CertifiedKey, Credentials, Psk, PskLookup, SavedSession,
    ServerCertificates,
};
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
}

impl Default for DtlsConfig {
    fn default() -> Self {
        let server = ebbtide_dtls::Config::default();
        let client = ebbtide_dtls::Config { cid_length: Some(0), ..server.clone() };
        Self { credentials: None, certificates: None, client, server, key_log: None }
    }
}

/// The servers that a client accepts by their certificates, and its own certificate. It is created from
/// the authorities and the certificate of TLS, with the feature `dtls-cert`.
#[derive(Clone)]
pub struct Certificates {
    pub(crate) verifier: Arc<dyn CertificateVerifier>,
    pub(crate) own: Option<Arc<CertifiedKey>>,
    pub(crate) saved: Option<SavedSession>,
}

impl Certificates {
    /// Resumes this session with the first server that knows it.
    #[must_use]
    pub fn resuming(self, saved: SavedSession) -> Self {
        Self { saved: Some(saved), ..self }
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
}

impl DtlsBind {
    /// Serves at `address` the clients whose keys `keys` knows.
    pub fn new(
        address: impl Into<SocketAddr>,
        keys: impl Fn(&[u8]) -> Option<Psk> + Send + Sync + 'static,
    ) -> Self {
        let keys = Some(Keys(Arc::new(keys)));
        Self { address: address.into(), keys, certificates: None }
    }
}

/// Looks up pre-shared keys by identity. The function is called while a socket is locked, so it
/// must return quickly.
#[derive(Clone)]
pub struct Keys(Arc<LookUp>);

type LookUp = dyn Fn(&[u8]) -> Option<Psk> + Send + Sync;

impl PskLookup for Keys {
    fn key(&mut self, identity: &[u8]) -> Option<Psk> {
        (self.0)(identity)
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
