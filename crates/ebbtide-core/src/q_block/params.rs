//! The parameters of RFC 9177 section 7.2, and the times that follow from them.

use crate::params::Parameters;
use crate::time::{Duration, Micros};
use rand_core::Rng;

/// The minimum difference between NON_RECEIVE_TIMEOUT and NON_TIMEOUT_RANDOM (RFC 9177 section
/// 7.2).
const HEAD_START: Micros = Micros::from_millis(1_000);

/// How fast a body may be sent in Non-confirmable blocks, and how long its receiver waits (RFC
/// 9177 section 7.2). Both ends should use the same values.
///
/// Derived times are methods. They follow when a parameter changes, so no choice of parameters is
/// contradictory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct QBlockParameters {
    /// MAX_PAYLOADS: the number of blocks that may leave at once, which form a set. Default 10; 0
    /// counts as 1.
    pub max_payloads: u8,
    /// NON_TIMEOUT: the minimum delay between two sets. Default 2 s (ACK_TIMEOUT).
    pub non_timeout: Micros,
    /// ACK_RANDOM_FACTOR in thousandths: the delay is drawn from `[1, factor]` times NON_TIMEOUT.
    /// Default 1500 (1.5).
    pub ack_random_permille: u32,
    /// NON_MAX_RETRANSMIT: how often missing blocks are requested without any of them arriving.
    /// Default 4 (MAX_RETRANSMIT).
    pub non_max_retransmit: u8,
    /// MAX_LATENCY: the longest time that a datagram may take. Default 100 s (RFC 7252 section
    /// 4.8.2).
    pub max_latency: Micros,
    /// PROBING_RATE in bytes a second: the average rate towards a peer that does not respond.
    /// Default 1 (RFC 7252 section 4.8); 0 counts as 1.
    pub probing_rate: u32,
}

impl QBlockParameters {
    /// The defaults of RFC 9177 section 7.2.
    pub const DEFAULT: Self = Self::new(&Parameters::DEFAULT);

    /// The parameters that follow from RFC 7252's where RFC 9177 derives its own from them.
    #[must_use]
    pub const fn new(base: &Parameters) -> Self {
        Self {
            max_payloads: 10,
            non_timeout: base.ack_timeout,
            ack_random_permille: base.ack_random_permille,
            non_max_retransmit: base.max_retransmit,
            max_latency: base.max_latency,
            probing_rate: base.probing_rate,
        }
    }

    /// MAX_PAYLOADS, at least 1.
    #[must_use]
    pub const fn set(&self) -> u32 {
        if self.max_payloads == 0 { 1 } else { self.max_payloads as u32 }
    }

    /// The first block after the set that contains block `num`; sets begin at multiples of
    /// MAX_PAYLOADS (RFC 9177 section 4.4).
    #[must_use]
    pub const fn end_of_set(&self, num: u32) -> u32 {
        (num / self.set()).saturating_add(1).saturating_mul(self.set())
    }

    /// NON_TIMEOUT_RANDOM, the delay between two sets of one body: drawn once per body from
    /// NON_TIMEOUT to NON_TIMEOUT * ACK_RANDOM_FACTOR. 2 to 3 s.
    pub fn non_timeout_random(&self, rng: &mut dyn Rng) -> Micros {
        Micros::uniform(self.non_timeout, self.longest_delay(), rng)
    }

    /// NON_RECEIVE_TIMEOUT: the time without a new block after which missing blocks are requested.
    /// It is twice NON_TIMEOUT, and at least a second more than the longest NON_TIMEOUT_RANDOM, so
    /// that the next set can begin to arrive earlier. 4 s.
    #[must_use]
    pub fn non_receive_timeout(&self) -> Micros {
        self.non_timeout.scale(2, 1).max(self.longest_delay().saturating_add(HEAD_START))
    }

    /// How long to wait after `asked` requests for missing blocks: NON_RECEIVE_TIMEOUT before the
    /// first one, and twice as long after each further one.
    #[must_use]
    pub fn time_to_wait(&self, asked: u8) -> Micros {
        let doubled = 1u32.checked_shl(asked.into()).unwrap_or(u32::MAX);
        self.non_receive_timeout().scale(doubled, 1)
    }

    /// NON_PROBING_WAIT: the longest wait that PROBING_RATE causes, `NON_TIMEOUT *
    /// (2^NON_MAX_RETRANSMIT - 1) * ACK_RANDOM_FACTOR + 2 * MAX_LATENCY + NON_TIMEOUT_RANDOM`,
    /// computed with the longest NON_TIMEOUT_RANDOM. 248 s.
    #[must_use]
    pub fn non_probing_wait(&self) -> Duration {
        self.lifetime(self.longest_delay())
    }

    /// NON_PARTIAL_TIMEOUT: how long an incomplete body is kept, `NON_TIMEOUT *
    /// (2^NON_MAX_RETRANSMIT - 1) * ACK_RANDOM_FACTOR + 2 * MAX_LATENCY + NON_TIMEOUT`. 247 s.
    #[must_use]
    pub fn non_partial_timeout(&self) -> Duration {
        self.lifetime(self.non_timeout)
    }

    /// How long nothing more is sent to a peer that did not respond to `bytes`: as long as
    /// PROBING_RATE requires, at most NON_PROBING_WAIT.
    #[must_use]
    pub fn probing_time(&self, bytes: usize) -> Duration {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        Duration::from_secs(bytes / u64::from(self.probing_rate.max(1)))
            .min(self.non_probing_wait())
    }

    /// The longest NON_TIMEOUT_RANDOM.
    fn longest_delay(&self) -> Micros {
        self.non_timeout.scale(self.ack_random_permille, 1000).max(self.non_timeout)
    }

    /// EXCHANGE_LIFETIME under other names (RFC 9177 section 7.2, RFC 7252 section 4.8.2).
    fn lifetime(&self, processing_delay: Micros) -> Duration {
        let span = Parameters {
            ack_timeout: self.non_timeout,
            ack_random_permille: self.ack_random_permille,
            max_retransmit: self.non_max_retransmit,
            ..Parameters::DEFAULT
        }
        .max_transmit_span();
        let travel = self.max_latency.to_duration().saturating_mul(2);
        span.saturating_add(travel).saturating_add(processing_delay.to_duration())
    }
}

impl Default for QBlockParameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_times_are_those_of_rfc_9177_table_3() {
        let p = QBlockParameters::DEFAULT;
        assert_eq!(p.non_receive_timeout(), Micros::from_millis(4_000));
        assert_eq!(p.non_probing_wait(), Duration::from_secs(248));
        assert_eq!(p.non_partial_timeout(), Duration::from_secs(247));
        let waits: Vec<u64> =
            (0..5).map(|asked| p.time_to_wait(asked).as_micros() / 1_000_000).collect();
        assert_eq!(waits, [4, 8, 16, 32, 64]);
        assert_eq!(p.time_to_wait(255), Micros::MAX);
    }

    #[test]
    fn a_receiver_always_waits_a_second_longer_than_the_sender() {
        let p = QBlockParameters { non_timeout: Micros::from_millis(100), ..Default::default() };
        assert_eq!(p.non_receive_timeout(), Micros::from_millis(1_150));
        let p = QBlockParameters { ack_random_permille: 3_000, ..Default::default() };
        assert_eq!(p.non_receive_timeout(), Micros::from_millis(7_000));
    }

    #[test]
    fn sets_begin_at_multiples_of_max_payloads() {
        let p = QBlockParameters::DEFAULT;
        assert_eq!([0, 9, 10, 25].map(|num| p.end_of_set(num)), [10, 10, 20, 30]);
        let p = QBlockParameters { max_payloads: 0, ..p };
        assert_eq!([0, 1].map(|num| p.end_of_set(num)), [1, 2]);
    }

    #[test]
    fn a_probe_takes_the_time_that_probing_rate_gives_its_bytes() {
        let p = QBlockParameters::DEFAULT;
        assert_eq!(p.probing_time(30), Duration::from_secs(30));
        assert_eq!(p.probing_time(1 << 20), p.non_probing_wait());
        let p = QBlockParameters { probing_rate: 0, ..p };
        assert_eq!(p.probing_time(30), Duration::from_secs(30));
    }

    use std::vec::Vec;
}
