//! What a socket's driver hands out: requests, and notifications that are due.

use super::shared::{Shared, State};
use ebbtide_core::endpoint::Incoming;
use ebbtide_core::session::Due;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, MutexGuard};

/// A request that came by a socket.
pub(crate) struct Request<'d> {
    pub(crate) incoming: Incoming,
    pub(crate) message: Message<'d>,
    /// Our address that it came to.
    pub(crate) to: Option<IpAddr>,
    /// Whether its remote was vouched for, if that was asked; otherwise it must not be processed.
    pub(crate) vouched: bool,
}

/// What answers the requests that come by a socket.
pub(crate) trait Serve: core::fmt::Debug + Send + Sync {
    /// Whether the remote of a request may be believed to be there, while much is remembered.
    fn vouches_for(&self, now: Instant, remote: SocketAddr, message: &Message<'_>) -> bool;

    /// Answers a request, or starts to.
    fn serve<'s>(
        &self,
        shared: &'s Arc<Shared>,
        state: MutexGuard<'s, State>,
        now: Instant,
        request: &Request<'_>,
    ) -> MutexGuard<'s, State>;

    /// Makes and sends a notification, or starts to. The state is not locked.
    fn notify(&self, shared: &Arc<Shared>, now: Instant, due: Due);
}
