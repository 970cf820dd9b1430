//! One line a minute about the limits that were met.

use super::service::Inner;
use std::sync::Weak;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(60);

/// Writes the line for as long as the server lives, which this task does not keep alive.
pub(super) async fn report(inner: Weak<Inner>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(inner) = inner.upgrade() else { return };
        if let Some(refused) = inner.refusals.report() {
            tracing::warn!(target: "ebbtide::limits", %refused, "refused in the last minute");
        }
    }
}
