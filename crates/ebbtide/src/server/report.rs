//! Logs one line a minute about limits that were reached.

use super::service::Inner;
use std::sync::Weak;
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
