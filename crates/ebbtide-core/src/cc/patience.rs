//! The minimum patience: no exchange is given up sooner than under RFC 7252.

use super::{Context, Settings, Shell};
use crate::params::Parameters;
use crate::time::{Duration, Micros};

/// The maximum number of retransmissions from which the minimum is computed: RFC 7252's default.
/// With the 20 of some studies, the span of doubling timeouts would be a month.
const MAX_COUNTED_RETRANSMISSIONS: u8 = 4;

impl Shell {
    /// The minimum time from the first transmission of a message until it is given up:
    /// MAX_TRANSMIT_SPAN (RFC 7252 section 4.8.2), computed with at most four retransmissions. 45
    /// s with the default parameters.
    #[must_use]
    pub fn patience(params: &Parameters, settings: &Settings) -> Micros {
        patient_span(params, settings, Parameters::max_transmit_span)
    }

    /// How long to wait after a transmission. `timeout` is the control's choice, `since_first` the
    /// time since the first transmission, and `left` the number of remaining retransmissions.
    ///
    /// A control that has measured a short path repeats soon, and could use up its retransmissions
    /// before a radio has woken up. The last waits are therefore stretched: the wait before the
    /// last retransmission but one to a sixteenth of the minimum, the wait before the last one to
    /// a quarter, and the last wait to its end. They are spread as ACK_TIMEOUT is, so that
    /// messages lost together are not repeated together. A control that is as patient as RFC 7252
    /// is not affected.
    pub fn wait(timeout: Micros, left: u16, since_first: Micros, cx: &mut Context<'_>) -> Micros {
        if left > 2 {
            return timeout;
        }
        let floor = Self::patience(cx.params, cx.settings);
        match left {
            0 => timeout.max(floor.saturating_sub(since_first)),
            1 => stretched(timeout, floor.scale(1, 4), cx),
            _ => stretched(timeout, floor.scale(1, 16), cx),
        }
    }

    /// [`Self::wait`] for a separate response or a notification, of which copies may leave for another `remaining`.
    ///
    /// Its client does not ask again: when a notification is given up its observer is removed (RFC
    /// 7641 section 4.5), and an acknowledged request is not repeated (RFC 7252 section 5.2.2). So
    /// the last copy leaves only when a sender by RFC 7252 gives up, 62 to 93 s after the first
    /// transmission with the default parameters (MAX_TRANSMIT_WAIT, section 4.8.2), and the waits
    /// before it are a sixteenth and a quarter of that. A path that is silent for a minute costs
    /// neither an answer nor an observer then.
    pub fn wait_of_response(
        timeout: Micros,
        left: u16,
        since_first: Micros,
        remaining: Micros,
        cx: &mut Context<'_>,
    ) -> Micros {
        let whole = patient_span(cx.params, cx.settings, Parameters::max_transmit_wait);
        match left {
            0 => Self::wait(timeout, left, since_first, cx),
            1 => {
                let last = spread(whole.min(since_first.saturating_add(remaining)), cx);
                timeout.max(last.saturating_sub(since_first))
            }
            2 => stretched(timeout, whole.scale(1, 4), cx),
            3 => stretched(timeout, whole.scale(1, 16), cx),
            _ => timeout,
        }
    }
}

/// A span of RFC 7252 section 4.8.2, computed with at most four retransmissions.
fn patient_span(
    params: &Parameters,
    settings: &Settings,
    span: fn(&Parameters) -> Duration,
) -> Micros {
    let ack_timeout = settings.ack_timeout(params);
    let max_retransmit = params.max_retransmit.min(MAX_COUNTED_RETRANSMISSIONS);
    let counted = Parameters { ack_timeout, max_retransmit, ..*params };
    Micros::from_duration(span(&counted)).min(Shell::CEILING)
}

/// A wait that is stretched to about `longest`.
fn stretched(timeout: Micros, longest: Micros, cx: &mut Context<'_>) -> Micros {
    if timeout >= longest { timeout } else { timeout.max(spread(longest, cx)) }
}

/// Spread as ACK_TIMEOUT is: between `longest` divided by ACK_RANDOM_FACTOR and `longest`.
fn spread(longest: Micros, cx: &mut Context<'_>) -> Micros {
    let shortest = longest.scale(1000, cx.params.ack_random_permille.max(1000));
    cx.uniform(shortest, longest)
}
