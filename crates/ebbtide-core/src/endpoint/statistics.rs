//! Counters of an endpoint per control, per reason and per state of exchanges. They are plain
//! numbers in fixed places, so counting does not allocate.

use super::{Counters, Endpoint};
use crate::cc::{ControlConfig, Sample};
use crate::exchange::table::ExchangeState;
use crate::time::Micros;
use crate::wire::{FormatError, ParseError};

/// A histogram of time spans, with bounds at 1, 2, 5, 10 and so on from 100 µs to 1000 s.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; Self::BUCKETS],
    sum: u64,
}

impl Histogram {
    /// The upper bounds in microseconds; each bound belongs to the bucket below it.
    pub const BOUNDS: [u64; 22] = [
        100,
        200,
        500,
        1_000,
        2_000,
        5_000,
        10_000,
        20_000,
        50_000,
        100_000,
        200_000,
        500_000,
        1_000_000,
        2_000_000,
        5_000_000,
        10_000_000,
        20_000_000,
        50_000_000,
        100_000_000,
        200_000_000,
        500_000_000,
        1_000_000_000,
    ];

    /// The number of buckets: one for each bound, and one for longer spans.
    pub const BUCKETS: usize = Self::BOUNDS.len() + 1;

    /// A histogram that was counted elsewhere, with the sum of all spans in microseconds.
    #[must_use]
    pub const fn from_counts(counts: [u64; Self::BUCKETS], sum: u64) -> Self {
        Self { counts, sum }
    }

    /// The bucket of a span.
    #[must_use]
    pub fn bucket(span: Micros) -> usize {
        Self::BOUNDS.partition_point(|bound| *bound < span.as_micros())
    }

    /// Counts a span.
    pub fn record(&mut self, span: Micros) {
        self.counts[Self::bucket(span)] += 1;
        self.sum = self.sum.saturating_add(span.as_micros());
    }

    /// The number of spans.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all spans, in microseconds.
    #[must_use]
    pub fn sum_micros(&self) -> u64 {
        self.sum
    }

    /// Each bound in microseconds, with the number of spans up to it. Only [`Self::count`]
    /// includes the spans above the last bound.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        Self::BOUNDS.iter().zip(&self.counts).scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((*bound, *sum))
        })
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
        self.sum = self.sum.saturating_add(other.sum);
    }
}

/// The counters of one congestion control over all its peers.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlCounters {
    /// Confirmable messages that left, without retransmissions.
    pub messages: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Expired timeouts.
    pub timeouts: u64,
    /// Exchanges given up after MAX_RETRANSMIT retransmissions.
    pub gave_up: u64,
    /// Retransmissions that left although an earlier copy was answered later. They can only be
    /// recognized by a mark (see [`Marking`](crate::cc::Marking)), so the count is zero for
    /// controls without marks.
    pub unnecessary: u64,
    /// Round trips of exchanges without a retransmission, and of other exchanges if a mark
    /// identified the answered copy (Karn's algorithm).
    pub rtt: Histogram,
    /// Timeouts armed for the original transmission of each message, which show the effect of the
    /// measured round trips.
    pub rto: Histogram,
}

impl ControlCounters {
    /// Counts a transmission.
    pub(super) fn transmitted(&mut self, ordinal: u8, timeout: Micros) {
        if ordinal == 0 {
            self.messages += 1;
            self.rto.record(timeout);
        } else {
            self.retransmissions += 1;
        }
    }

    /// Counts an answer.
    pub(super) fn answered(&mut self, sample: &Sample) {
        match sample.answered {
            Some(answered) => {
                self.rtt.record(answered.since);
                let after = sample.retransmissions().saturating_sub(answered.ordinal);
                self.unnecessary += u64::from(after);
            }
            None if sample.retransmissions() == 0 => self.rtt.record(sample.since_first),
            None => {}
        }
    }

    /// Adds the counts of another set of counters.
    pub fn add(&mut self, other: &Self) {
        self.messages += other.messages;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.gave_up += other.gave_up;
        self.unnecessary += other.unnecessary;
        self.rtt.add(&other.rtt);
        self.rto.add(&other.rto);
    }
}

/// Datagrams that were not valid messages, by reason.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Malformed([u64; Self::REASONS.len()]);

impl Malformed {
    /// The names of the reasons; see [`ParseError`] and [`FormatError`].
    pub const REASONS: [&str; 13] = [
        "too-short",
        "version",
        "token-length",
        "token-truncated",
        "option-delta-15",
        "option-length-15",
        "option-truncated",
        "option-number-overflow",
        "payload-marker-without-payload",
        "empty-message-with-content",
        "reserved-code-class",
        "code-not-for-type",
        "length-in-websocket",
    ];

    pub(super) fn count(&mut self, error: &ParseError) {
        let place = match error {
            ParseError::TooShort => 0,
            ParseError::Version(_) => 1,
            ParseError::Format { reason, .. } => match reason {
                FormatError::HeaderTruncated => 0,
                FormatError::TokenLength(_) | FormatError::TokenLength15 => 2,
                FormatError::TokenTruncated => 3,
                FormatError::OptionDelta15 => 4,
                FormatError::OptionLength15 => 5,
                FormatError::OptionTruncated => 6,
                FormatError::OptionNumberOverflow => 7,
                FormatError::PayloadMarkerWithoutPayload => 8,
                FormatError::EmptyMessageWithContent => 9,
                FormatError::ReservedCodeClass(_) => 10,
                FormatError::CodeNotForType(_) => 11,
                FormatError::LengthInWebSocket(_) => 12,
            },
        };
        self.0[place] += 1;
    }

    /// Each reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Self::REASONS.into_iter().zip(self.0)
    }

    /// Adds the counts of another endpoint.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// Exchanges that have not ended, by state.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchanges {
    /// Exchanges that wait for congestion control's permission to leave.
    pub queued: u64,
    /// Confirmable exchanges that were sent and are not acknowledged. Each holds one of the NSTART
    /// places.
    pub open: u64,
    /// Exchanges that are acknowledged or Non-confirmable and wait for their response.
    pub waiting: u64,
    /// Exchanges that are registered as observers of a resource.
    pub observing: u64,
}

impl Exchanges {
    /// Adds the counts of another endpoint.
    pub fn add(&mut self, other: &Self) {
        self.queued += other.queued;
        self.open += other.open;
        self.waiting += other.waiting;
        self.observing += other.observing;
    }
}

impl Counters {
    /// Adds the counts of another endpoint.
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.gave_up += other.gave_up;
        self.malformed += other.malformed;
        self.pings += other.pings;
        self.duplicates += other.duplicates;
        self.unknown_answers += other.unknown_answers;
        self.wrong_tokens += other.wrong_tokens;
        self.congestion_experienced += other.congestion_experienced;
        self.bad_options += other.bad_options;
        self.refused += other.refused;
        self.unstored += other.unstored;
        self.queue_full += other.queue_full;
        self.id_waits += other.id_waits;
        self.outbox_full += other.outbox_full;
        self.peers_evicted_early += other.peers_evicted_early;
    }
}

impl Endpoint {
    /// The counters of each congestion control that this endpoint uses, the default one first;
    /// none if the configuration says so
    /// ([`count_per_control`](super::EndpointConfig::count_per_control)).
    pub fn controls(&self) -> impl Iterator<Item = (&ControlConfig, &ControlCounters)> {
        self.controls.counted()
    }

    /// Datagrams that were not valid messages, by reason.
    #[must_use]
    pub fn malformed(&self) -> Malformed {
        self.rare.as_deref().map(|rare| rare.malformed).unwrap_or_default()
    }

    /// Exchanges that have not ended, by state. Visits each of them.
    #[must_use]
    pub fn exchanges(&self) -> Exchanges {
        let mut exchanges = Exchanges::default();
        for state in self.table.states() {
            match state {
                ExchangeState::Queued => exchanges.queued += 1,
                ExchangeState::Open => exchanges.open += 1,
                ExchangeState::Waiting => exchanges.waiting += 1,
                ExchangeState::Observing => exchanges.observing += 1,
                ExchangeState::Free => {}
            }
        }
        exchanges
    }
}
