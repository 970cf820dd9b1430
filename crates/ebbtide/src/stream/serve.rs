//! The interface through which a connection's task passes on requests and due notifications.

use super::link::Link;
use ebbtide_core::session::{BlockSizes, Due};
use ebbtide_core::stream::Incoming;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::sync::Arc;

/// Answers the requests that arrive over a connection.
pub(crate) trait Serve: core::fmt::Debug + Send + Sync {
    /// Answers a request, or begins to.
    fn serve(
        &self,
        link: &Arc<Link>,
        now: Instant,
        request: (Incoming, Message<'_>),
        sizes: BlockSizes,
    );

    /// Creates and sends a notification, or begins to.
    fn notify(&self, link: &Arc<Link>, now: Instant, due: Due);
}
