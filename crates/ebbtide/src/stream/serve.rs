//! The interface through which a connection's task passes on requests and due notifications.

use super::link::Link;
use crate::net::clock::Clock;
use crate::refusals::Reason;
use ebbtide_core::session::{BlockSizes, Due};
use ebbtide_core::stream::Incoming;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::net::IpAddr;
use std::sync::Arc;

/// The service for the requests that arrive over connections, and the clock of its state.
#[derive(Clone, Debug)]
pub(crate) struct Answerer {
    pub(crate) service: Arc<dyn Serve>,
    pub(crate) clock: Clock,
}

/// Answers the requests that arrive over a connection.
pub(crate) trait Serve: core::fmt::Debug + Send + Sync {
    /// Counts a connection that was refused.
    fn refused(&self, why: Reason, from: IpAddr);

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
