//! Transmission parameters and the times derived from them (RFC 7252 section 4.8).

use crate::time::{Duration, Micros, span_of_nanos};

/// The parameters of RFC 7252 section 4.8, and the bounds within which Ebbtide accepts them.
///
/// The derived times (section 4.8.2) are methods, so they follow when a parameter changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// ACK_TIMEOUT: the minimum initial timeout of `default`. Default 2 s.
    pub ack_timeout: Micros,
    /// ACK_RANDOM_FACTOR in thousandths: initial timeouts are spread over `[1, factor]` times the
    /// base. Default 1500 (1.5); at least 1000.
    pub ack_random_permille: u32,
    /// MAX_RETRANSMIT: retransmissions of a Confirmable message before it is given up. Default 4.
    pub max_retransmit: u8,
    /// NSTART: Confirmable exchanges that may be open to one scope at once. Default 1; at least 1.
    pub nstart: u16,
    /// DEFAULT_LEISURE: the span over which responses to a multicast request are spread. Default 5
    /// s.
    pub default_leisure: Micros,
    /// PROBING_RATE in bytes a second: the average rate towards a peer that does not respond.
    /// Default 1; at least 1.
    pub probing_rate: u32,
    /// MAX_LATENCY: the longest time that a datagram may take. Default 100 s (section 4.8.2).
    pub max_latency: Micros,
    /// How long a request that was acknowledged by an empty ACK waits for its separate response.
    /// RFC 7252 sets no limit (section 5.2.2); without one, an exchange with a dead peer would be
    /// kept forever. Default 247 s (EXCHANGE_LIFETIME with the default parameters).
    pub response_timeout: Micros,
}

impl Parameters {
    /// The longest span that anything may be set to, a day: above the round trip of any path that
    /// CoAP has been proposed for (an hour to Saturn, some hours to a store-and-forward satellite's
    /// next pass), and below what [`Micros`] holds. Every limit on a span in this project is this
    /// one.
    pub const LONGEST_SPAN: Micros = Micros::from_millis(86_400_000);

    /// The defaults of RFC 7252 section 4.8.
    pub const DEFAULT: Self = Self {
        ack_timeout: Micros::from_millis(2_000),
        ack_random_permille: 1_500,
        max_retransmit: 4,
        nstart: 1,
        default_leisure: Micros::from_millis(5_000),
        probing_rate: 1,
        max_latency: Micros::from_millis(100_000),
        response_timeout: Micros::from_millis(247_000),
    };

    /// MAX_TRANSMIT_SPAN: from the first transmission to the last retransmission,
    /// `ACK_TIMEOUT * (2^MAX_RETRANSMIT - 1) * ACK_RANDOM_FACTOR` (section 4.8.2). 45 s.
    #[must_use]
    pub fn max_transmit_span(&self) -> Duration {
        span_of_nanos(self.backed_off(self.max_retransmit.into()))
    }

    /// MAX_TRANSMIT_WAIT: from the first transmission until the sender gives up,
    /// `ACK_TIMEOUT * (2^(MAX_RETRANSMIT + 1) - 1) * ACK_RANDOM_FACTOR`. 93 s.
    #[must_use]
    pub fn max_transmit_wait(&self) -> Duration {
        span_of_nanos(self.backed_off(u32::from(self.max_retransmit) + 1))
    }

    /// PROCESSING_DELAY: the turnaround of a node, ACK_TIMEOUT (section 4.8.2). 2 s.
    #[must_use]
    pub fn processing_delay(&self) -> Duration {
        self.ack_timeout.to_duration()
    }

    /// MAX_LATENCY as it holds on this path: the parameter, or ACK_TIMEOUT if that is longer. A
    /// caller that sets a first timeout above 100 s knows a path on which a datagram may take as
    /// long. 100 s.
    #[must_use]
    pub fn latency(&self) -> Duration {
        self.max_latency.max(self.ack_timeout).to_duration()
    }

    /// MAX_RTT: `2 * MAX_LATENCY + PROCESSING_DELAY`. 202 s.
    #[must_use]
    pub fn max_rtt(&self) -> Duration {
        span_of_nanos(self.max_rtt_nanos())
    }

    /// EXCHANGE_LIFETIME: from starting to send a Confirmable message until its message ID may be
    /// used again, `MAX_TRANSMIT_SPAN + 2 * MAX_LATENCY + PROCESSING_DELAY`. 247 s. Of MAX_TRANSMIT_SPAN it
    /// counts every timeout as at most five times MAX_RTT: with 20 retransmissions 5.7 hours instead of
    /// 36 days, in which message IDs would run out.
    #[must_use]
    pub fn exchange_lifetime(&self) -> Duration {
        span_of_nanos(self.counted_span().saturating_add(self.max_rtt_nanos()))
    }

    /// NON_LIFETIME: from sending a Non-confirmable message until its message ID may be used
    /// again, `MAX_TRANSMIT_SPAN + MAX_LATENCY`. 145 s.
    #[must_use]
    pub fn non_lifetime(&self) -> Duration {
        span_of_nanos(self.counted_span()).saturating_add(self.latency())
    }

    /// How long after its first transmission a copy of a message may leave, so that the peer still remembers
    /// the message when the copy arrives: EXCHANGE_LIFETIME without MAX_LATENCY. 147 s.
    #[must_use]
    pub fn copies_span(&self) -> Duration {
        let arrival = self.max_rtt_nanos() - self.max_latency.max(self.ack_timeout).as_nanos();
        span_of_nanos(self.counted_span().saturating_add(arrival))
    }

    /// How long a response is awaited: `response_timeout`, or EXCHANGE_LIFETIME on a path whose first
    /// timeout is above MAX_LATENCY.
    #[must_use]
    pub fn response_wait(&self) -> Duration {
        let set = self.response_timeout.to_duration();
        if self.ack_timeout <= self.max_latency { set } else { set.max(self.exchange_lifetime()) }
    }

    /// The parameters from which the derived times follow under a control whose first timeout is `first`. If
    /// that is above MAX_LATENCY, it says more of the path than the parameters, and counts as ACK_TIMEOUT.
    #[must_use]
    pub fn under(&self, first: Micros) -> Self {
        let is_long = first > self.max_latency;
        let ack_timeout = if is_long { self.ack_timeout.max(first) } else { self.ack_timeout };
        Self { ack_timeout, ..*self }
    }

    /// Checks that no span is longer than [`Self::LONGEST_SPAN`].
    ///
    /// # Errors
    ///
    /// Returns the name of the first parameter that is longer.
    pub fn check_spans(&self) -> Result<(), SpanTooLong> {
        let spans = [
            ("ack_timeout", self.ack_timeout),
            ("max_latency", self.max_latency),
            ("response_timeout", self.response_timeout),
            ("default_leisure", self.default_leisure),
        ];
        match spans.into_iter().find(|(_, span)| *span > Self::LONGEST_SPAN) {
            Some((parameter, _)) => Err(SpanTooLong { parameter }),
            None => Ok(()),
        }
    }

    // In nanoseconds: on a device, arithmetic with `Duration` is a kilobyte of code.

    fn max_rtt_nanos(&self) -> u64 {
        let latency = self.max_latency.max(self.ack_timeout).as_nanos();
        2 * latency + self.ack_timeout.as_nanos()
    }

    /// The span in which copies of a message may leave: MAX_TRANSMIT_SPAN, with every timeout counted as at
    /// most five times MAX_RTT. When nothing was heard for so long, a longer wait does not make an answer
    /// more likely. Without a limit, 20 retransmissions would keep a message ID for 36 days; with this one,
    /// 49152 message IDs last for 101 times MAX_RTT, which are 486 messages per MAX_RTT to each peer on
    /// any path.
    fn counted_span(&self) -> u64 {
        let longest = 5 * self.max_rtt_nanos();
        let most = longest.saturating_mul(self.max_retransmit.into());
        self.backed_off(self.max_retransmit.into()).min(most)
    }

    /// The sum of `timeouts` doubling timeouts from the longest initial one.
    fn backed_off(&self, timeouts: u32) -> u64 {
        let sum = 1u64.checked_shl(timeouts).map_or(u64::MAX, |power| power - 1);
        // A microsecond times a thousandth is a nanosecond.
        let first = self.ack_timeout.as_micros().saturating_mul(self.ack_random_permille.into());
        first.saturating_mul(sum)
    }
}

/// The error for a parameter that is longer than a day.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SpanTooLong {
    /// The name of the parameter.
    pub parameter: &'static str,
}

impl core::fmt::Display for SpanTooLong {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let seconds = Parameters::LONGEST_SPAN.as_micros() / 1_000_000;
        write!(f, "{} is longer than a day: set at most {seconds} s", self.parameter)
    }
}

impl core::error::Error for SpanTooLong {}

impl Default for Parameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_times_are_those_of_section_4_8_2() {
        let p = Parameters::DEFAULT;
        assert_eq!(p.max_transmit_span(), Duration::from_secs(45));
        assert_eq!(p.max_transmit_wait(), Duration::from_secs(93));
        assert_eq!(p.max_rtt(), Duration::from_secs(202));
        assert_eq!(p.exchange_lifetime(), Duration::from_secs(247));
        assert_eq!(p.non_lifetime(), Duration::from_secs(145));
        assert_eq!(p.copies_span(), Duration::from_secs(147));
    }

    #[test]
    fn every_derived_time_fits_a_path_whose_first_timeout_is_longer_than_max_latency() {
        let hours = |hours: u64| Duration::from_secs(3600 * hours);
        let set = Parameters { ack_timeout: Micros::from_millis(7_200_000), ..Parameters::DEFAULT };
        let derived = Parameters::DEFAULT.under(set.ack_timeout);
        for p in [set, derived] {
            assert_eq!(p.latency(), hours(2));
            assert_eq!(p.max_rtt(), hours(6));
            assert_eq!(p.exchange_lifetime(), hours(45 + 6));
            assert_eq!(p.non_lifetime(), hours(45 + 2));
            assert_eq!(p.response_wait(), hours(45 + 6));
        }
        let short = Parameters::DEFAULT.under(Micros::from_millis(100_000));
        assert_eq!(short, Parameters::DEFAULT);
        assert_eq!(short.response_wait(), Duration::from_secs(247));
    }

    #[test]
    fn twenty_retransmissions_keep_a_message_id_for_hours_and_not_for_weeks() {
        let p = Parameters { max_retransmit: 20, ..Parameters::DEFAULT };
        assert_eq!(p.exchange_lifetime(), Duration::from_secs(101 * 202));
    }

    #[test]
    fn a_parameter_of_more_than_a_day_is_named() {
        let day = Parameters { ack_timeout: Parameters::LONGEST_SPAN, ..Parameters::DEFAULT };
        assert_eq!(day.check_spans(), Ok(()));
        let more = Parameters { max_latency: Micros::MAX, ..Parameters::DEFAULT };
        assert_eq!(more.check_spans(), Err(SpanTooLong { parameter: "max_latency" }));
    }

    #[test]
    fn derived_times_follow_a_changed_parameter_and_saturate() {
        let p = Parameters { max_retransmit: 20, ..Parameters::DEFAULT };
        assert_eq!(p.max_transmit_span(), Duration::from_secs(3 * ((1 << 20) - 1)));
        let p = Parameters { max_retransmit: 255, ..Parameters::DEFAULT };
        assert_eq!(p.max_transmit_wait(), Duration::from_nanos(u64::MAX));
    }
}
