//! The interface through which a socket's driver passes on requests and due notifications.

use super::shared::Shared;
use crate::refusals::Reason;
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::{Incoming, Remember};
use ebbtide_core::session::Due;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A request that arrived at a socket.
pub(crate) struct ArrivedRequest<'d> {
    pub(crate) incoming: Incoming,
    pub(crate) message: Message<'d>,
    /// The sender's address.
    pub(crate) from: SocketAddr,
    /// Our address to which it was sent.
    pub(crate) to: Option<IpAddr>,
    /// Whether it is remembered, if it has to be; otherwise it must not be processed.
    pub(crate) vouched: bool,
}

/// Answers the requests that arrive at a socket.
pub(crate) trait Serve: core::fmt::Debug + Send + Sync {
    /// A socket was opened, perhaps in place of an earlier one with its number.
    fn opened(&self, shared: &Arc<Shared>);

    /// How a request that must not be processed twice is remembered; `much` states whether many messages
    /// are remembered already.
    fn remember(&self, now: Instant, remote: PeerId, message: &Message<'_>, much: bool)
    -> Remember;

    /// Counts a refusal of the message layer.
    fn refused(&self, now: Instant, why: Reason, remote: PeerId);

    /// Answers a request, or begins to. The state is not locked.
    fn serve(&self, shared: &Arc<Shared>, now: Instant, request: &ArrivedRequest<'_>);

    /// Creates and sends a notification, or begins to. The state is not locked.
    fn notify(&self, shared: &Arc<Shared>, now: Instant, due: Due);
}
