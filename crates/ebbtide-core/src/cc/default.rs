//! `default` and `default-b`: the control that RFC 7252 specifies. It learns nothing.

use super::{
    Admission, CongestionControl, Context, Load, OutgoingMessage, Sample, Slot, Transmission,
    probing_instant,
};
use crate::time::Micros;

/// Binary exponential backoff from a random initial timeout (RFC 7252 section 4.2).
///
/// The initial timeout is uniform in `[ACK_TIMEOUT, ACK_TIMEOUT * ACK_RANDOM_FACTOR]`, drawn once
/// per exchange; every expiry doubles it, up to the `bound` if one is set (RFC 7252 has none). No
/// state survives the exchange, so the type has no fields. `default-b` is the same with
/// ACK_TIMEOUT = 1 s (SOCNE14's CoAP_B).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Default;

impl CongestionControl for Default {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        admit_non_at_probing_rate(message, load, cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        if transmission.ordinal == 0 { initial_timeout(cx) } else { doubled(slot.armed, cx) }
    }

    fn on_feedback(&mut self, _slot: &Slot, _sample: &Sample, _cx: &mut Context<'_>) {}
}

/// A newly drawn initial timeout (RFC 7252 section 4.2).
pub(super) fn initial_timeout(cx: &mut Context<'_>) -> Micros {
    let base = cx.settings.ack_timeout(cx.params);
    cx.uniform(base, base.scale(cx.params.ack_random_permille, 1000))
}

/// The timeout after `armed` expired (RFC 7252 section 4.2: "the timeout is doubled").
pub(super) fn doubled(armed: Micros, cx: &mut Context<'_>) -> Micros {
    cx.bounded(armed.scale(2, 1), Micros::ZERO)
}

/// PROBING_RATE (RFC 7252 section 4.7): Non-confirmable messages to a peer that does not respond
/// leave at this many bytes a second on average.
pub(super) fn admit_non_at_probing_rate(
    message: &OutgoingMessage,
    load: &Load,
    cx: &Context<'_>,
) -> Admission {
    if !message.confirmable && load.unanswered_bytes > 0 {
        let earliest = probing_instant(load, cx.params);
        if cx.now < earliest {
            return Admission::NotBefore(earliest);
        }
    }
    Admission::Send
}
