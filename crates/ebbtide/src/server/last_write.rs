//! The last time that a state is stored, which the end of a server waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct LastWrite {
    is_asked_for: AtomicBool,
    asked: Notify,
    finished: Notify,
}

impl LastWrite {
    /// Asks for it, and waits until it is done.
    pub(super) async fn done(&self) {
        self.is_asked_for.store(true, Ordering::SeqCst);
        self.asked.notify_one();
        self.finished.notified().await;
    }

    pub(super) fn is_asked(&self) -> bool {
        self.is_asked_for.load(Ordering::SeqCst)
    }

    /// Waits until it is asked for.
    pub(super) async fn asked(&self) {
        self.asked.notified().await;
    }

    pub(super) fn finish(&self) {
        self.finished.notify_one();
    }
}
