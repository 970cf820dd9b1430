//! A connection among those that share limits.

use super::link::Link;
use core::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::Notify;

/// A counted connection, which is being established or open.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) number: u64,
    pub(crate) from: IpAddr,
    /// When its peer was last active, as a number that only grows.
    used: AtomicU64,
    /// Set once it is established.
    link: OnceLock<Weak<Link>>,
    /// Whether it must close; a handshake is notified at once.
    gone: AtomicBool,
    dismissed: Notify,
}

impl Member {
    /// A connection from the host to which `from` belongs.
    pub(super) fn new(number: u64, from: IpAddr) -> Self {
        Self {
            number,
            from,
            used: AtomicU64::default(),
            link: OnceLock::new(),
            gone: AtomicBool::new(false),
            dismissed: Notify::new(),
        }
    }

    /// When its peer was last active.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Records that its peer was active.
    pub(crate) fn use_at(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }

    pub(crate) fn establish(&self, link: &Arc<Link>) {
        let _ = self.link.set(Arc::downgrade(link));
        if self.gone.load(Ordering::SeqCst) {
            // It was told to close between its handshake and now.
            self.dismiss();
        }
    }

    #[cfg(any(feature = "tls", feature = "ws"))]
    pub(crate) async fn dismissed(&self) {
        self.dismissed.notified().await;
    }

    /// Ends the connection, with a Release if the peer accepts it.
    pub(crate) fn dismiss(&self) {
        self.gone.store(true, Ordering::SeqCst);
        match self.link.get().and_then(Weak::upgrade) {
            None => self.dismissed.notify_one(),
            Some(link) => link.with(|state, now| {
                if state.connection.output_len() == 0 {
                    state.connection.abort(now, "the server is full");
                } else {
                    state.connection.handle_loss(now);
                }
            }),
        }
    }
}
