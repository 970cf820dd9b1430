//! The pace of Non-confirmable messages.

use super::interface::{Admission, Context};
use super::traffic::{Load, OutgoingMessage};
use crate::params::Parameters;
use crate::time::{Instant, Micros, divide};

/// Decides whether a Non-confirmable message may leave at a rate of one message per `interval`.
/// Every eighth message is sent as Confirmable to measure the path: this is the leaky bucket of
/// SOCNE14, and it satisfies "two of any sixteen" of cocoa-03 as well. PROBING_RATE is always
/// allowed (RFC 7252 section 4.7).
pub(crate) fn admit_non_at_interval(
    message: &OutgoingMessage,
    load: &Load,
    interval: Micros,
    cx: &Context<'_>,
) -> Admission {
    const CONFIRMABLE_EVERY: u8 = 8;
    if message.confirmable {
        return Admission::Send;
    }
    if let Some(last) = load.last_non {
        let mut earliest = last + interval;
        // Without unanswered bytes, PROBING_RATE has no starting point.
        if load.unanswered_bytes > 0 {
            earliest = earliest.min(probing_instant(load, cx.params));
        }
        if cx.now < earliest {
            return Admission::NotBefore(earliest);
        }
    }
    if load.nons_since_con >= CONFIRMABLE_EVERY - 1 && load.open < cx.settings.places(cx.params) {
        return Admission::SendAsConfirmable;
    }
    Admission::Send
}

/// The instant at which the bytes sent since the peer last responded average PROBING_RATE (RFC
/// 7252 section 4.7).
pub(crate) fn probing_instant(load: &Load, params: &Parameters) -> Instant {
    let rate = u64::from(params.probing_rate.max(1));
    let nanos = divide(u64::from(load.unanswered_bytes).saturating_mul(1_000_000_000), rate);
    Instant::from_nanos(load.unanswered_since.as_nanos().saturating_add(nanos))
}
