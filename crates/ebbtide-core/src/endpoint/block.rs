//! Requests that carry or request Non-confirmable blocks (RFC 9177).

use super::send::NewMessage;
use super::types::{Reliability, SendError};
use super::{Endpoint, ExchangeState};
use crate::cc::Load;
use crate::exchange::ExchangeId;
use crate::exchange::table::{Answers, Purpose};
use crate::peer::PeerId;
use crate::q_block::QBlockParameters;
use crate::time::Instant;
use crate::wire::Content;

impl Endpoint {
    /// Sends a Non-confirmable request at once, outside of congestion control: RFC 9177 defines
    /// congestion control of its own for blocks, and the caller must obey it (see
    /// [`q_block`](crate::q_block)). Any number of responses may arrive, each as
    /// [`Received::Notification`](super::Received::Notification), until the exchange is cancelled,
    /// reset, or fails because nothing arrived for `response_timeout`.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then. [`SendError::QueueFull`] if all message IDs for this
    /// peer have been used within EXCHANGE_LIFETIME.
    pub fn request_block(
        &mut self,
        now: Instant,
        to: PeerId,
        content: &Content<'_>,
    ) -> Result<ExchangeId, SendError> {
        if !content.code.is_request() {
            return Err(SendError::WrongCode(content.code));
        }
        let now = self.advance(now);
        let length = self.check_length(content, &[])?;
        let peer = self.peer(now, to)?;
        let Ok(id) = self.fresh_id(now, peer) else {
            self.counters.rare().queue_full += 1;
            return Err(SendError::QueueFull);
        };
        let message = NewMessage {
            to,
            content,
            reliability: Reliability::NonConfirmable,
            purpose: Purpose::Request,
            token: &[],
        };
        let index = self.accept(now, peer, &message, length)?;
        let exchange = self.table.get_mut(index);
        exchange.answers = Answers::Many;
        exchange.depart_as(now, id);
        self.table.remember_id(index);
        self.depart_non(now, index);
        Ok(self.table.name(index))
    }

    /// The instant until which PROBING_RATE forbids another body to this remote, because it has
    /// not answered the previous one; at most NON_PROBING_WAIT after that one was sent (RFC 9177
    /// section 7.2). `None` if it has answered.
    #[must_use]
    pub fn silent_until(&self, remote: PeerId, params: &QBlockParameters) -> Option<Instant> {
        let peer = self.peers.get(self.peers.find(self.config.scope.key(remote))?);
        let Load { unanswered_bytes, unanswered_since, .. } = peer.load();
        let wait = params.probing_time(usize::try_from(unanswered_bytes).unwrap_or(usize::MAX));
        (unanswered_bytes > 0).then(|| unanswered_since + wait)
    }

    /// A response arrived to a request that may have several responses; the request keeps waiting.
    pub(super) fn answer_again(&mut self, now: Instant, index: u32) {
        debug_assert_eq!(self.table.get(index).state, ExchangeState::Waiting);
        self.timers.arm(index, now + self.config.params_of_path().response_wait());
    }
}
