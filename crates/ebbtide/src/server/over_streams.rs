//! Requests that arrive over connections (RFC 8323).

use super::inner::Service;
use crate::refusals::{Class, Reason};
use crate::stream::{Link, Serve};
use ebbtide_core::session::server::RequestSlot;
use ebbtide_core::session::{BlockSizes, Due};
use ebbtide_core::stream::Incoming;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::net::IpAddr;
use std::sync::Arc;
use tracing::Span;

impl Serve for Service {
    fn refused(&self, why: Reason, from: IpAddr) {
        self.inner.refusals.count(why, Class::of_address(from, true), from);
    }

    fn serve(
        &self,
        link: &Arc<Link>,
        now: Instant,
        incoming: Incoming,
        message: Message<'_>,
        sizes: BlockSizes,
    ) {
        #[cfg(feature = "edhoc")]
        if let Some(edhoc) = &self.config().edhoc
            && crate::edhoc::is_handshake(&message)
        {
            return self.shake_hands_over(edhoc, link, now, incoming, message, sizes);
        }
        if self.claims_protection(&message) || self.config().oscore_required {
            return self.serve_protected_over(link, now, incoming, message, sizes);
        }
        let mut place = RequestSlot::new();
        let received = place.stream(incoming, link.remote, message, sizes);
        self.process(link, now, received, None, &Span::none());
    }

    fn notify(&self, link: &Arc<Link>, now: Instant, due: Due) {
        self.notify_one(link, now, due);
    }
}
