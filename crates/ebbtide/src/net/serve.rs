//! The interface through which a socket's driver passes on requests and due notifications.

use super::shared::{Shared, State};
use ebbtide_core::endpoint::Incoming;
use ebbtide_core::session::Due;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, MutexGuard};

/// A request that arrived at a socket.
pub(crate) struct Request<'d> {
    pub(crate) incoming: Incoming,
    pub(crate) message: Message<'d>,
    /// Our address to which it was sent.
    pub(crate) to: Option<IpAddr>,
    /// Whether its remote was vouched for, if that was required; otherwise it must not be
    /// processed.
    pub(crate) vouched: bool,
}

/// Answers the requests that arrive at a socket.
pub(crate) trait Serve: core::fmt::Debug + Send + Sync {
    /// Whether the remote's address counts as verified, asked while many messages are remembered.
    fn vouches_for(&self, now: Instant, remote: SocketAddr, message: &Message<'_>) -> bool;

    /// Answers a request, or begins to.
    fn serve<'s>(
        &self,
        shared: &'s Arc<Shared>,
        state: MutexGuard<'s, State>,
        now: Instant,
        request: Request<'_>,
    ) -> MutexGuard<'s, State>;

    /// Creates and sends a notification, or begins to. The state is not locked.
    fn notify(&self, shared: &Arc<Shared>, now: Instant, due: Due);
}
