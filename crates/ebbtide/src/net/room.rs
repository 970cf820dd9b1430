//! Tasks that wait until an endpoint has room for what they send.

use ebbtide_core::PeerId;
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::oneshot;

/// The waiting tasks, served in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    by_scope: BTreeMap<PeerId, VecDeque<oneshot::Sender<()>>>,
}

impl Waiting {
    /// Waits for the end of an exchange with a scope.
    pub(crate) fn wait(&mut self, scope: PeerId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.by_scope.entry(scope).or_default().push_back(sender);
        receiver
    }

    /// An exchange has ended, so one task that waits for this tries again.
    #[inline]
    pub(crate) fn room(&mut self, scope: PeerId) {
        if self.by_scope.is_empty() {
            return;
        }
        let Some(waiting) = self.by_scope.get_mut(&scope) else { return };
        while let Some(next) = waiting.pop_front() {
            // The task may no longer be waiting.
            if next.send(()).is_ok() {
                break;
            }
        }
        if waiting.is_empty() {
            self.by_scope.remove(&scope);
        }
    }
}
