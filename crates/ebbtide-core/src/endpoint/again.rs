//! Requests that are said again under the token that they had (RFC 7641 sections 3.3.1 and 3.6).

use super::types::{Reliability, SendError};
use super::{Endpoint, Outcome};
use crate::exchange::ExchangeId;
use crate::exchange::table::Purpose;
use crate::time::Instant;
use crate::wire::Content;

impl Endpoint {
    /// Sends a request with the token of an exchange that is open, and in its place: to renew the
    /// registration of an observation, or to end it. The old exchange is over without an event, and
    /// notifications come to the new one. If the old one is over already this is
    /// [`request`](Self::request) to nobody: [`SendError::TooManyExchanges`] is returned.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then. Unless there is no room for it in the peer's queue, or the
    /// message is too long, the old exchange is over in this case, too.
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
            self.counters.queue_full += 1;
            return Err(SendError::QueueFull);
        }
        self.check_length(content)?;
        self.end(now, index, Outcome::Cancelled, None);
        self.start(now, to, content, reliability, (Purpose::Request, token))
    }
}
