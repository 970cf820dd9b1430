//! What a socket's driver hands out: requests, and notifications that are due.

use super::shared::{Shared, State};
use super::socket::Datagram;
use ebbtide_core::endpoint::Incoming;
use ebbtide_core::session::Due;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::sync::{Arc, MutexGuard};

/// What answers the requests that come by a socket.
pub(crate) trait Serve: core::fmt::Debug + Send + Sync {
    /// Answers a request, or starts to.
    fn serve<'s>(
        &self,
        shared: &'s Arc<Shared>,
        state: MutexGuard<'s, State>,
        now: Instant,
        request: (Incoming, Message<'_>),
        datagram: Datagram<'_>,
    ) -> MutexGuard<'s, State>;

    /// Makes and sends a notification, or starts to. The state is not locked.
    fn notify(&self, shared: &Arc<Shared>, now: Instant, due: Due);
}
