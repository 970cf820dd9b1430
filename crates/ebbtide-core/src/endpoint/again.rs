//! Requests that are sent again under the same token (RFC 7641 sections 3.3.1 and 3.6).

use super::send::NewMessage;
use super::types::{Reliability, SendError};
use super::{Endpoint, Outcome};
use crate::exchange::ExchangeId;
use crate::exchange::table::Purpose;
use crate::time::Instant;
use crate::wire::Content;

impl Endpoint {
    /// Replaces an open exchange by a new request with the same token, to renew the registration
    /// of an observation or to end it. The old exchange ends without an event, and notifications
    /// are reported for the new one. If the old exchange has already ended, nothing is sent and
    /// the result is [`SendError::TooManyExchanges`]; see [`request`](Self::request).
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then. The old exchange has ended in this case as well,
    /// unless the peer's queue was full or the message was too long.
    pub fn request_again(
        &mut self,
        now: Instant,
        old: ExchangeId,
        content: &Content<'_>,
        reliability: Reliability,
    ) -> Result<ExchangeId, SendError> {
        if !content.code.is_request() {
            return Err(SendError::WrongCode(content.code));
        }
        let now = self.advance(now);
        let index = self.table.find(old).ok_or(SendError::TooManyExchanges)?;
        let (to, token, peer) = {
            let exchange = self.table.get(index);
            (exchange.remote, exchange.token, exchange.peer)
        };
        if self.peers.get(peer).queued >= self.config.limits.queue_per_peer {
            self.counters.rare().queue_full += 1;
            return Err(SendError::QueueFull);
        }
        self.check_length(content, &[])?;
        self.end(now, index, Outcome::Cancelled, None);
        let purpose = Purpose::Request;
        self.start(now, &NewMessage { to, content, reliability, purpose, token: token.as_slice() })
    }
}
