//! Certificates and keys on the command line.

use crate::failure::Failure;
use clap::Args;
use ebbtide::Config;
use ebbtide::dtls::Certificates;
use ebbtide::stream::{Identity, TlsServer, Trust};
use std::path::{Path, PathBuf};

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
    /// Dangerous: accept the certificate of any server
    #[arg(long)]
    pub(crate) insecure: bool,
    #[command(flatten)]
    pub(crate) psk: super::psk::PskArgs,
}

impl TlsArgs {
    /// Applies them to a client's configuration.
    pub(crate) fn apply(&self, config: &mut Config) -> Result<(), Failure> {
        if let Some(path) = &self.ca {
            let trust = Trust::authorities(&read("--ca", path)?);
            config.stream.trust = trust.map_err(|error| wrong("--ca", path, &error))?;
        } else if self.insecure {
            config.stream.trust = Trust::dangerously_anyone();
        }
        self.psk.apply(config)?;
        config.stream.identity = identity(self.cert.as_deref(), self.key.as_deref())?;
        let certificates = Certificates::new(&config.stream.trust, config.stream.identity.as_ref());
        // TLS accepts other keys than DTLS, and an identity with a key needs no certificate.
        config.dtls.certificates = certificates.ok();
        Ok(())
    }
}

/// The certificate and key given by `--cert` and `--key`.
pub(crate) fn identity(
    cert: Option<&Path>,
    key: Option<&Path>,
) -> Result<Option<Identity>, Failure> {
    let (Some(cert), Some(key)) = (cert, key) else { return Ok(None) };
    let identity = Identity::from_pem(&read("--cert", cert)?, &read("--key", key)?);
    identity.map(Some).map_err(|error| {
        let (cert, key) = (cert.display(), key.display());
        Failure::usage(format_args!("--cert {cert} --key {key}: {error}"))
    })
}

/// A server's certificate, and the authorities of its clients' given by `--ca`.
pub(crate) fn server(
    cert: Option<&Path>,
    key: Option<&Path>,
    ca: Option<&Path>,
) -> Result<Option<TlsServer>, Failure> {
    let Some(identity) = identity(cert, key)? else { return Ok(None) };
    let tls = TlsServer::new(identity);
    let Some(path) = ca else { return Ok(Some(tls)) };
    let required = Trust::authorities(&read("--ca", path)?)
        .and_then(|authorities| tls.require_client_certificates(&authorities));
    required.map(Some).map_err(|error| wrong("--ca", path, &error))
}

fn read(option: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| wrong(option, path, &error))
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
            insecure: false,
            psk: super::super::psk::PskArgs::default(),
        };
        format!("{:?}", args.apply(&mut Config::default()).unwrap_err())
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
