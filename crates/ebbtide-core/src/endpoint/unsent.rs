//! Transmissions that a driver knows more about than silence would tell.

use super::waits::Wait;
use super::{Endpoint, context};
use crate::exchange::ExchangeId;
use crate::exchange::table::{Answers, ExchangeState, Purpose, TimerReason};
use crate::time::{Instant, Micros};

/// The pause after a transmission that did not leave, as a part of the patience: 2.8 s with the default parameters.
const PAUSE: (u32, u32) = (1, 16);

impl Endpoint {
    /// Reports that the last transmission of an exchange has not left this host, for example
    /// because its link is down. It does not count as one: it is made again after a pause, a
    /// request until MAX_TRANSMIT_SPAN is over (RFC 7252 section 4.8.2), a response or notification
    /// for as long as copies may leave (EXCHANGE_LIFETIME). Ended exchanges are ignored.
    pub fn handle_unsent(&mut self, now: Instant, exchange: ExchangeId) {
        let now = self.advance(now);
        let Some(index) = self.table.find(exchange) else { return };
        let exchange = self.table.get(index);
        if exchange.state != ExchangeState::Open || !exchange.confirmable {
            return;
        }
        let peer = self.peers.get(exchange.peer);
        let control = &self.controls[peer.control()];
        let span = self.config.patience(control);
        let longest = span.scale(PAUSE.0, PAUSE.1);
        let since = now.micros_since(exchange.first);
        if longest == Micros::ZERO {
            return;
        }
        if exchange.purpose == Purpose::Request && since >= span {
            // Its timeout is the last one.
            let exchange = self.table.get_mut(index);
            exchange.max_transmissions = exchange.transmissions;
            return;
        }
        // Messages that failed together are not repeated together.
        let shortest = longest.scale(1000, self.config.params.ack_random_permille.max(1000));
        let cx = &mut context(now, &self.config, control, &mut *self.rng);
        let pause = cx.uniform(shortest, longest);
        let exchange = self.table.get_mut(index);
        // Controls back off at each transmission, but not for those that have not left.
        let unsent = &mut self.rare.get_or_insert_default().unsent;
        exchange.slot = *unsent.entry(index).or_insert(exchange.slot);
        if exchange.transmissions > 1 {
            exchange.transmissions -= 1;
            exchange.sent.truncate(exchange.transmissions.into());
        }
        exchange.due = TimerReason::Repeat;
        self.timers.arm(index, now + pause);
        self.waits(now, index, Wait::Unsent, Some(now + pause));
    }

    /// Sends the next copy of an open exchange now instead of after its timeout: the driver knows
    /// that the path to the peer has changed, as when a DTLS session moves to a new address.
    /// Nothing leaves if the copies are used up.
    pub fn repeat_now(&mut self, now: Instant, exchange: ExchangeId) {
        let now = self.advance(now);
        let Some(index) = self.table.find(exchange) else { return };
        let exchange = self.table.get_mut(index);
        let unanswered = exchange.effort().unanswered();
        let has_copies = unanswered <= self.config.params.max_retransmit.into()
            && exchange.transmissions < exchange.max_transmissions;
        if exchange.state == ExchangeState::Open && exchange.confirmable && has_copies {
            exchange.due = TimerReason::Repeat;
            self.timers.arm(index, now);
        }
    }

    /// Whether a peer that does not know this exchange's earlier messages any more could take a
    /// copy for another request and do it twice: the request is not idempotent, and it has been
    /// transmitted.
    #[must_use]
    pub fn may_be_done_twice(&self, exchange: ExchangeId) -> bool {
        let Some(index) = self.table.find(exchange) else { return false };
        let exchange = self.table.get(index);
        // A registration is a GET or a FETCH; with OSCORE its method is hidden.
        let is_idempotent = exchange.idempotent || exchange.answers == Answers::Observed;
        exchange.purpose == Purpose::Request
            && !is_idempotent
            && exchange.state != ExchangeState::Queued
    }
}
