//! Tasks that wait until an endpoint has room for what they send.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use tokio::sync::oneshot;

/// Who waits, first come, first served.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    by_scope: BTreeMap<SocketAddr, VecDeque<oneshot::Sender<()>>>,
}

impl Waiting {
    /// Waits for the end of an exchange with a scope.
    pub(crate) fn wait(&mut self, scope: SocketAddr) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.by_scope.entry(scope).or_default().push_back(sender);
        receiver
    }

    /// An exchange has ended: one that waits for it tries again.
    #[inline]
    pub(crate) fn room(&mut self, scope: SocketAddr) {
        if self.by_scope.is_empty() {
            return;
        }
        let Some(waiting) = self.by_scope.get_mut(&scope) else { return };
        while let Some(next) = waiting.pop_front() {
            // It may not wait any more.
            if next.send(()).is_ok() {
                break;
            }
        }
        if waiting.is_empty() {
            self.by_scope.remove(&scope);
        }
    }
}
