//! Events of crate `tracing` that say why a message waits, with the feature `tracing`.

use super::Endpoint;
use crate::time::Instant;

/// Why a message waits.
#[derive(Copy, Clone, Debug)]
pub(super) enum Wait {
    /// As many exchanges are open as congestion control allows.
    Places,
    /// Congestion control paces messages.
    Pace,
    /// A probe precedes the message or its copy.
    Probe,
    /// All message IDs were used within EXCHANGE_LIFETIME.
    MessageId,
    /// The timeout of congestion control.
    Timeout,
    /// The same, extended so that the peer is not given up too soon.
    Patience,
    /// The driver could not send it.
    Unsent,
    /// It has arrived, or is Non-confirmable, and its answer is due.
    Answer,
}

impl Endpoint {
    /// Reports that an exchange waits. `until` is the instant at which that ends without an event, if there is one.
    #[cfg(feature = "tracing")]
    pub(super) fn waits(&self, now: Instant, index: u32, why: Wait, until: Option<Instant>) {
        let reason = match why {
            Wait::Places => "as many exchanges are open as congestion control allows (NSTART)",
            Wait::Pace => "congestion control paces messages to this peer",
            Wait::Probe => "a probe has to be answered first",
            Wait::MessageId => "every message ID was used within EXCHANGE_LIFETIME",
            Wait::Timeout => "no answer yet; congestion control chose this timeout",
            Wait::Patience => "no answer yet; the timeout is extended to MAX_TRANSMIT_SPAN",
            Wait::Unsent => "the message could not be sent",
            Wait::Answer => "nothing is sent any more; the answer is due",
        };
        let exchange = self.table.get(index);
        tracing::trace!(
            target: "ebbtide::wait",
            peer = %exchange.remote,
            exchange = index,
            sent = exchange.transmissions,
            span = until.map(|until| tracing::field::debug(until.saturating_since(now))),
            reason,
            "waits"
        );
    }

    #[cfg(not(feature = "tracing"))]
    #[inline(always)]
    pub(super) const fn waits(&self, _: Instant, _: u32, _: Wait, _: Option<Instant>) {}
}
