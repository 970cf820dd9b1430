//! The certificate and the keys of a server's own addresses.

use super::serve_binds::Binds;
use super::serve_reload::{Reloadable, Reloads};
use crate::client::{psk, tls};
use crate::failure::Failure;
use clap::Args;
use ebbtide::dtls::DtlsBind;
use ebbtide::stream::TlsServer;
use ebbtide::{Server, ServerConfig};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Security of this program's own addresses
#[derive(Args, Debug)]
pub(crate) struct SecurityArgs {
    /// The certificate for TLS and DTLS and the chain to its authority, PEM. Read again at SIGHUP. Without
    /// --bind, port 5684 is served as well
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The certificate's private key, PEM; for DTLS on the curve P-256
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Refuse clients over TLS and DTLS without a certificate of the authorities in this PEM file
    /// (clients with a pre-shared key excepted)
    #[arg(long, visible_aliases = ["cafile", "ca"], value_name = "FILE", requires = "cert")]
    client_ca: Option<PathBuf>,
    /// Our private key on the curve P-256, PEM, for clients over DTLS that know us by the raw public key (RFC
    /// 7250) instead of a certificate. Read again at SIGHUP. Without --bind, port 5684 is served as well
    #[arg(long, value_name = "FILE", conflicts_with = "cert")]
    raw_key: Option<PathBuf>,
    /// Refuse clients without one of these raw public keys: PEM, and lines "[NAME] ni:///sha-256;HASH"
    /// (clients with a pre-shared key excepted). Read again at SIGHUP
    #[arg(long, value_name = "FILE", requires = "raw_key")]
    peer_keys: Option<PathBuf>,
    /// The pre-shared keys of clients over DTLS: lines IDENTITY:KEY, with the key as text or as 0x
    /// and hexadecimal digits; an identity may contain colons, a key may not. Read again at
    /// SIGHUP. Needs a --bind coaps://ADDR; without any --bind, port 5684 is served as well
    #[arg(long, value_name = "FILE")]
    psk_file: Option<PathBuf>,
}

/// The contents of the files.
pub(crate) struct ServedSecurity {
    pub(crate) tls: Option<Arc<tls::Served>>,
    keys: Option<psk::KeyFile>,
    raw: Option<Arc<tls::ServedRawKeys>>,
}

impl SecurityArgs {
    /// Reads the files.
    pub(crate) fn read(&self) -> Result<ServedSecurity, Failure> {
        let (cert, key) = (self.cert.as_deref(), self.key.as_deref());
        let tls = tls::Served::read(cert, key, self.client_ca.as_deref())?.map(Arc::new);
        let keys = self.psk_file.as_deref().map(psk::KeyFile::read).transpose()?;
        let raw = |own| tls::ServedRawKeys::read(own, self.peer_keys.as_deref()).map(Arc::new);
        let raw = self.raw_key.as_deref().map(raw).transpose()?;
        Ok(ServedSecurity { tls, keys, raw })
    }
}

impl ServedSecurity {
    fn server(&self) -> Option<&TlsServer> {
        self.tls.as_deref().map(tls::Served::server)
    }

    /// The addresses that `--bind` names, and those without one.
    pub(crate) async fn binds(&self, texts: &[String]) -> Result<Binds, Failure> {
        let has_keys = self.keys.is_some() || self.raw.is_some();
        Binds::read(texts, self.server(), has_keys).await
    }

    /// Serves the addresses for DTLS.
    pub(crate) fn apply(
        &self,
        config: ServerConfig,
        binds: &Binds,
    ) -> Result<ServerConfig, Failure> {
        let secured = |address: &SocketAddr| self.secured(*address);
        binds.dtls.iter().map(secured).try_fold(config, |config, bind| Ok(config.bind_dtls(bind?)))
    }

    /// A socket over DTLS with the keys, the certificate, or both.
    fn secured(&self, address: SocketAddr) -> Result<DtlsBind, Failure> {
        if let Some(raw) = &self.raw {
            let bind = self.keys.clone().map(|keys| keys.serve_at(address));
            return Ok(match bind {
                Some(bind) => bind.and_raw_keys(raw.keys()),
                None => DtlsBind::with_raw_keys(address, raw.keys()),
            });
        }
        let bind = match (&self.keys, self.server()) {
            (Some(keys), None) => return Ok(keys.clone().serve_at(address)),
            (Some(keys), Some(tls)) => keys.clone().serve_at(address).and_certificates(tls),
            (None, Some(tls)) => DtlsBind::with_certificates(address, tls),
            (None, None) => {
                let why = format_args!(
                    "--bind coaps://{address}: DTLS needs --psk-file FILE, --raw-key FILE, or --cert FILE and --key FILE"
                );
                return Err(Failure::usage(why));
            }
        };
        bind.map_err(|error| Failure::usage(format_args!("--cert: {error}")))
    }

    /// Reads the files again at each SIGHUP, and the folder as well, if there is one.
    pub(crate) fn at_hangup(
        &self,
        server: &Server,
        folder: Option<super::serve_files::Folder>,
    ) -> io::Result<Arc<Reloads>> {
        let reloads = Arc::new(Reloads::default());
        let (keys, tls, raw) = (self.keys.clone(), self.tls.clone(), self.raw.clone());
        Reloadable { keys, tls, raw, folder, server: server.handle() }
            .at_hangup(reloads.clone())?;
        Ok(reloads)
    }
}
