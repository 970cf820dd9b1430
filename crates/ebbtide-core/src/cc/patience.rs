//! The minimum patience: no exchange is given up sooner than under RFC 7252.

use super::{Context, Settings, Shell};
use crate::params::Parameters;
use crate::time::Micros;

/// The maximum number of retransmissions from which the minimum is computed: RFC 7252's default.
/// With the 20 of some studies, the span of doubling timeouts would be a month.
const MAX_COUNTED_RETRANSMISSIONS: u8 = 4;

impl Shell {
    /// The minimum time from the first transmission of a message until it is given up:
    /// MAX_TRANSMIT_SPAN (RFC 7252 section 4.8.2), computed with at most four retransmissions. 45
    /// s with the default parameters; zero if [`Parameters::patience`] is off.
    #[must_use]
    pub fn patience(params: &Parameters, settings: &Settings) -> Micros {
        if !params.patience {
            return Micros::ZERO;
        }
        let ack_timeout = settings.ack_timeout(params);
        let retransmissions = params.max_retransmit.min(MAX_COUNTED_RETRANSMISSIONS);
        let span = Parameters { ack_timeout, max_retransmit: retransmissions, ..*params };
        Micros::from_duration(span.max_transmit_span()).min(Self::CEILING)
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
        let longest = match left {
            0 => return timeout.max(floor.saturating_sub(since_first)),
            1 => floor.scale(1, 4),
            _ => floor.scale(1, 16),
        };
        if timeout >= longest {
            return timeout;
        }
        let shortest = longest.scale(1000, cx.params.ack_random_permille.max(1000));
        timeout.max(cx.uniform(shortest, longest))
    }
}
