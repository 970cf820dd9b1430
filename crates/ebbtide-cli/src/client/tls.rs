//! Certificates and keys on the command line.

use super::private_file;
use crate::failure::Failure;
use clap::Args;
use ebbtide::dtls::{Certificates, RawKey, RawKeyServer, TrustedKeys, trusted_keys};
use ebbtide::stream::{Identity, TlsServer, Trust};
use ebbtide::{ClientConfig, Scheme};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Trust in servers, and our own certificate, with coaps, coaps+tcp and coaps+ws
#[derive(Args, Debug, Clone)]
pub(crate) struct TlsArgs {
    /// Trust servers with a certificate of the authorities in this PEM file, instead of the
    /// system's
    #[arg(long, visible_alias = "cafile", value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca: Option<PathBuf>,
    /// Our certificate and the chain to its authority, PEM, for servers that ask for one
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The certificate's private key, PEM; for coaps on the curve P-256
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Trust the servers of coaps with these raw public keys (RFC 7250) instead of certificates: PEM, and lines
    /// "[NAME] ni:///sha-256;HASH"
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ca", "cert", "insecure"])]
    pub(crate) peer_keys: Option<PathBuf>,
    /// Our private key on the curve P-256, PEM, for servers of coaps that ask for a raw public key
    #[arg(long, value_name = "FILE", requires = "peer_keys")]
    pub(crate) raw_key: Option<PathBuf>,
    /// Dangerous: accept the certificate of any server
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Speak DTLS 1.3 instead of 1.2 with servers of coaps that show a certificate
    #[cfg(feature = "dtls13")]
    #[arg(long)]
    pub(crate) dtls13: bool,
    #[command(flatten)]
    pub(crate) psk: super::psk::PskArgs,
}

impl TlsArgs {
    /// Refuses keys and certificates that messages of this scheme would not use: who gives them believes that
    /// the messages are encrypted.
    pub(crate) fn check_scheme(&self, scheme: Scheme) -> Result<(), Failure> {
        if self.psk.has_identity() && scheme != Scheme::Coaps {
            return Err(Failure::usage(format_args!(
                "--identity, --psk and --psk-file are for coaps://, not for {scheme}://"
            )));
        }
        if self.peer_keys.is_some() && scheme != Scheme::Coaps {
            return Err(Failure::usage(format_args!(
                "--peer-keys and --raw-key are for coaps://, not for {scheme}://"
            )));
        }
        let given = [
            ("--ca", self.ca.is_some()),
            ("--cert", self.cert.is_some()),
            ("--insecure", self.insecure),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given && !scheme.is_secure()) {
            Some((option, _)) => Err(Failure::usage(format_args!(
                "{option} is for coaps://, coaps+tcp:// and coaps+ws://, not for {scheme}://"
            ))),
            None => Ok(()),
        }
    }

    /// Applies them to a client's configuration.
    pub(crate) fn apply(&self, config: ClientConfig) -> Result<ClientConfig, Failure> {
        let trust = match &self.ca {
            Some(path) => {
                let trust = Trust::authorities(&read("--ca", path)?);
                trust.map_err(|error| wrong("--ca", path, &error))?
            }
            None if self.insecure => Trust::dangerously_anyone(),
            None => Trust::default(),
        };
        let identity = identity(self.cert.as_deref(), self.key.as_deref())?;
        // TLS accepts other keys than DTLS, and an identity with a key needs no certificate.
        let certificates = match &self.peer_keys {
            Some(path) => {
                let own = self.raw_key.as_deref().map(raw_key).transpose()?;
                Some(Certificates::raw_keys(peer_keys(path)?, own.as_ref()))
            }
            None => Certificates::new(&trust, identity.as_ref()).ok(),
        };
        #[cfg(feature = "dtls13")]
        self.psk.check_key_log(self.dtls13)?;
        let config = self.psk.apply(config)?;
        #[cfg(feature = "dtls13")]
        let config = config.dtls13(self.dtls13.then(ebbtide::dtls::Dtls13Config::default));
        Ok(config.trust(trust).identity(identity).certificates(certificates))
    }
}

/// The certificate and key given by `--cert` and `--key`.
pub(crate) fn identity(
    cert: Option<&Path>,
    key: Option<&Path>,
) -> Result<Option<Identity>, Failure> {
    let (Some(cert), Some(key)) = (cert, key) else { return Ok(None) };
    let identity = Identity::from_pem(&read("--cert", cert)?, &read_key(key)?);
    identity.map(Some).map_err(|error| {
        let (cert, key) = (cert.display(), key.display());
        Failure::usage(format_args!("--cert {cert} --key {key}: {error}"))
    })
}

/// The key given by `--raw-key`.
pub(crate) fn raw_key(path: &Path) -> Result<RawKey, Failure> {
    let pem = private_file::read(path).map_err(|error| wrong("--raw-key", path, &error))?;
    RawKey::from_pem(&pem).map_err(|error| wrong("--raw-key", path, &error))
}

/// The keys given by `--peer-keys`.
pub(crate) fn peer_keys(path: &Path) -> Result<TrustedKeys, Failure> {
    let text = read("--peer-keys", path)?;
    let trusted = trusted_keys(&String::from_utf8_lossy(&text));
    trusted.map_err(|error| wrong("--peer-keys", path, &error))
}

/// A server's raw keys, with the files that they were read from.
#[derive(Debug)]
pub(crate) struct ServedRawKeys {
    keys: RawKeyServer,
    own: PathBuf,
    clients: Option<PathBuf>,
}

impl ServedRawKeys {
    /// The key in `--raw-key`; clients need one of `--peer-keys`.
    pub(crate) fn read(own: &Path, clients: Option<&Path>) -> Result<Self, Failure> {
        let keys = RawKeyServer::new(&raw_key(own)?, clients.map(peer_keys).transpose()?);
        Ok(Self { keys, own: own.into(), clients: clients.map(Path::to_owned) })
    }

    pub(crate) const fn keys(&self) -> &RawKeyServer {
        &self.keys
    }

    /// Reads the keys again.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them cannot be used. Nothing has changed then.
    pub(crate) fn reload(&self) -> Result<(), String> {
        let own = raw_key(&self.own).map_err(text)?;
        if let Some(path) = &self.clients {
            self.keys.set_clients(peer_keys(path).map_err(text)?);
        }
        self.keys.set_key(&own);
        Ok(())
    }
}

fn text(failure: Failure) -> String {
    match failure {
        Failure::Usage(text) | Failure::Work(text) => text,
        Failure::Exit(_) | Failure::OutputClosed => String::new(),
    }
}

/// Whether the authorities of clients are others than before.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Authorities {
    Kept,
    Replaced,
}

/// A server's certificate, with the files that it was read from.
pub(crate) struct Served {
    server: TlsServer,
    cert: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    /// The end of the certificate in seconds since 1970; 0 if it names none.
    not_after: AtomicU64,
}

impl Served {
    /// The certificate in `--cert` and `--key`; clients need one of an authority in `--client-ca`.
    pub(crate) fn read(
        cert: Option<&Path>,
        key: Option<&Path>,
        ca: Option<&Path>,
    ) -> Result<Option<Self>, Failure> {
        let (Some(cert), Some(key)) = (cert, key) else { return Ok(None) };
        let Some(own) = identity(Some(cert), Some(key))? else { return Ok(None) };
        let not_after = own.not_after().unwrap_or_default().into();
        let mut server = TlsServer::new(own);
        if let Some(path) = ca {
            server = authorities(path).and_then(|trust| {
                let required = server.require_client_certificates(&trust);
                required.map_err(|error| wrong("--client-ca", path, &error))
            })?;
        }
        let client_ca = ca.map(Path::to_owned);
        Ok(Some(Self { server, cert: cert.into(), key: key.into(), client_ca, not_after }))
    }

    /// The end of the certificate in seconds since 1970, if it names one.
    pub(crate) fn not_after(&self) -> Option<u64> {
        Some(self.not_after.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
    }

    pub(crate) fn server(&self) -> &TlsServer {
        &self.server
    }

    /// Reads the certificate and the authorities of clients again, for connections that begin later.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them cannot be used. Nothing has changed then.
    pub(crate) fn reload(&self) -> Result<Authorities, String> {
        let own = identity(Some(&self.cert), Some(&self.key)).map_err(text)?;
        let clients = self.client_ca.as_deref().map(authorities).transpose().map_err(text)?;
        let cert = self.cert.display();
        let mut authorities = Authorities::Kept;
        if let (Some(path), Some(clients)) = (&self.client_ca, &clients) {
            let set = self.server.set_client_authorities(clients);
            if set.map_err(|error| format!("--client-ca {}: {error}", path.display()))? {
                authorities = Authorities::Replaced;
            }
        }
        if let Some(own) = own {
            self.server.set_identity(&own).map_err(|error| format!("--cert {cert}: {error}"))?;
            self.not_after.store(own.not_after().unwrap_or_default(), Ordering::Relaxed);
        }
        Ok(authorities)
    }
}

fn authorities(path: &Path) -> Result<Trust, Failure> {
    let trust = Trust::authorities(&read("--client-ca", path)?);
    trust.map_err(|error| wrong("--client-ca", path, &error))
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| wrong(option, path, &error))
}

fn read_key(path: &Path) -> Result<Vec<u8>, Failure> {
    private_file::read(path).map_err(|error| wrong("--key", path, &error))
}

fn wrong(option: &str, path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format_args!("{option} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(ca: &Path) -> String {
        let args = TlsArgs {
            ca: Some(ca.into()),
            cert: None,
            key: None,
            peer_keys: None,
            raw_key: None,
            insecure: false,
            #[cfg(feature = "dtls13")]
            dtls13: false,
            psk: super::super::psk::PskArgs::default(),
        };
        format!("{:?}", args.apply(ClientConfig::new()).unwrap_err())
    }

    #[test]
    fn an_authority_that_cannot_be_used_is_named_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.pem");
        assert!(said(&missing).contains("--ca") && said(&missing).contains("missing.pem"));
        assert!(said(&missing).contains("No such file"), "{}", said(&missing));
        for (name, text) in [("empty.pem", ""), ("text.pem", "not a certificate")] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            assert!(said(&path).contains(name), "{}", said(&path));
            assert!(said(&path).contains("certificate"), "{}", said(&path));
        }
    }
}
