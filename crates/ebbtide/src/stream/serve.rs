//! What a connection's task hands out: requests, and notifications that are due.

use super::link::Link;
use crate::refusals::Reason;
use ebbtide_core::session::{BlockSizes, Due};
use ebbtide_core::stream::Incoming;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::net::IpAddr;
use std::sync::Arc;

/// What answers the requests that come over a connection.
pub(crate) trait Serve: core::fmt::Debug + Send + Sync {
    /// Counts a connection that was refused.
    fn refused(&self, why: Reason, from: IpAddr);

    /// Answers a request, or starts to.
    fn serve(
        &self,
        link: &Arc<Link>,
        now: Instant,
        request: (Incoming, Message<'_>),
        sizes: BlockSizes,
    );

    /// Makes and sends a notification, or starts to.
    fn notify(&self, link: &Arc<Link>, now: Instant, due: Due);
}
