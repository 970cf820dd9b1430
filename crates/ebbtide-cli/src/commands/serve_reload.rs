//! SIGHUP: keys, certificates and authorities are read again, and the folder of files is opened
//! again. A file that is wrong changes nothing, and no server ends.

use super::serve_files::Folder;
use crate::client::psk::{self, ReloadedKeys};
use crate::client::tls;
use ebbtide::dtls::SessionPeer;
use ebbtide::server::ServerHandle;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// How often everything was read again, by outcome.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    done: AtomicU64,
    failed: AtomicU64,
}

impl Reloads {
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn count(&self, is_done: bool) {
        let counter = if is_done { &self.done } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Files that are read again.
pub(crate) struct Reloadable {
    pub(crate) keys: Option<psk::KeyFile>,
    pub(crate) tls: Option<Arc<tls::Served>>,
    pub(crate) raw: Option<Arc<tls::ServedRawKeys>>,
    pub(crate) folder: Option<Folder>,
    pub(crate) server: ServerHandle,
}

impl Reloadable {
    /// Reads everything again at each SIGHUP, which ends a process that does not ask for it. Must be called within a
    /// tokio runtime.
    pub(crate) fn at_hangup(self, reloads: Arc<Reloads>) -> io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                reloads.count(self.reload());
            }
        });
        Ok(())
    }

    /// Returns false if something is wrong, and stays as it was.
    fn reload(&self) -> bool {
        let keys = match self.keys.as_ref().map(psk::KeyFile::reload) {
            None => true,
            Some(Ok(ReloadedKeys { identities, revoked })) => {
                tracing::info!(
                    target: "ebbtide::reload",
                    identities, revoked = revoked.len(), "--psk-file: read again"
                );
                if !revoked.is_empty() {
                    let is_kept = |peer: SessionPeer<'_>| {
                        peer.certificate.is_some() || !revoked.contains(peer.identity)
                    };
                    self.server.end_sessions(is_kept);
                }
                true
            }
            Some(Err(error)) => {
                tracing::error!(target: "ebbtide::reload", "--psk-file: {error}; the old keys remain in use");
                false
            }
        };
        let tls = match self.tls.as_ref().map(|tls| tls.reload()) {
            None => true,
            Some(Ok(clients)) => {
                if clients == tls::Authorities::Replaced {
                    // Clients of authorities that remain make other sessions.
                    self.server.end_sessions(|peer: SessionPeer<'_>| peer.certificate.is_none());
                }
                tracing::info!(target: "ebbtide::reload", "--cert, --key and --client-ca: read again");
                true
            }
            Some(Err(error)) => {
                tracing::error!(target: "ebbtide::reload", "{error}; the old certificate and authorities remain in use");
                false
            }
        };
        let raw = match self.raw.as_ref().map(|raw| (raw, raw.reload())) {
            None => true,
            Some((raw, Ok(()))) => {
                self.server.end_sessions(|peer: SessionPeer<'_>| raw.keys().serves(peer));
                tracing::info!(target: "ebbtide::reload", "--raw-key and --peer-keys: read again");
                true
            }
            Some((_, Err(error))) => {
                tracing::error!(target: "ebbtide::reload", "{error}; the old raw keys remain in use");
                false
            }
        };
        let folder = match self.folder.as_ref().map(Folder::reopen) {
            None | Some(Ok(())) => true,
            Some(Err(error)) => {
                tracing::error!(target: "ebbtide::reload", "--dir {error}; the old folder remains in use");
                false
            }
        };
        keys && tls && raw && folder
    }
}
