//! Reports of a server: its metrics, and in the log a line a minute about limits that were reached.

use super::inner::Inner;
use crate::answered::AnswerCounts;
use crate::metrics::{Load, Reports};
use crate::refusals::RefusalCounts;
use ebbtide_core::session::server::Refusals;
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(60);

/// Writes the line until the server is dropped. The weak reference does not keep the server alive.
pub(super) async fn report(inner: Weak<Inner>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(inner) = inner.upgrade() else { return };
        if let Some(refused) = inner.refusals.report() {
            tracing::warn!(target: "ebbtide::limits", %refused, "refused in the last minute");
        }
    }
}

impl Reports for Inner {
    fn load(&self) -> Load {
        let held = self.session.load(self.clock.now());
        Load {
            working: self.working.load(Ordering::Relaxed),
            block_bytes: held.block_bytes,
            uploads: held.uploads,
            downloads: held.downloads,
        }
    }

    fn refusals(&self) -> Refusals {
        let mut refusals = self.session.refusals();
        refusals.overloaded = self.overloaded.load(Ordering::Relaxed);
        refusals.handler_panics = self.handler_panics.load(Ordering::Relaxed);
        refusals
    }

    fn refused(&self) -> RefusalCounts {
        self.refusals.counts()
    }

    fn answered(&self) -> AnswerCounts {
        self.answered.counts()
    }

    fn state_errors(&self) -> u64 {
        self.state_errors.load(Ordering::Relaxed)
    }

    fn is_ending(&self) -> bool {
        self.refuses_for.load(Ordering::Relaxed) > 0
    }
}
