//! The ledger of a client's exchanges, the same for every transport.

use super::{OutcomeBook, Tag, tagged};
use crate::record::{ClientRecord, ExchangeRecord, Recorder};
use ebbtide_core::endpoint::Failure;
use ebbtide_core::time::{Duration, Instant};
use smallvec::SmallVec;

/// Exchanges by the number of retransmissions that they took: few clients take more than three, and
/// only these need memory of their own.
type Counts = SmallVec<[u32; 4]>;

/// An exchange under way.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenExchange {
    pub(super) number: u32,
    /// Whether it has not ended.
    pub(super) is_open: bool,
    /// When the application asked.
    pub(super) made: Instant,
    /// When each transmission left.
    pub(super) sent: SmallVec<[Instant; 2]>,
}

impl OpenExchange {
    /// The row of this exchange, which ends now: with this answer, or without one.
    fn row(&self, client: u32, now: Instant, answered: Option<u8>) -> ExchangeRecord {
        ExchangeRecord {
            client,
            exchange: self.number,
            asked: self.made,
            first_sent: self.sent.first().copied(),
            ended: now,
            transmissions: self.sent.len() as u32,
            answered,
        }
    }
}

/// The exchanges of a client: what is measured of all of them.
pub(crate) struct ExchangeLedger {
    pub(crate) record: ClientRecord,
    pub(super) outcomes: OutcomeBook,
    by_retransmissions: Counts,
}

impl ExchangeLedger {
    /// The empty ledger of a client, which is of this group of those under the same control.
    pub(super) fn new(client: u32, group: u8) -> Self {
        Self {
            record: ClientRecord { client, group, ..ClientRecord::default() },
            outcomes: OutcomeBook::default(),
            by_retransmissions: Counts::new(),
        }
    }

    /// The number of exchanges that took each number of retransmissions, from none on.
    pub(crate) fn by_retransmissions(&self) -> &[u32] {
        &self.by_retransmissions
    }

    /// The shortest and the longest time from an original to giving up.
    pub(crate) fn gave_up(&self) -> Option<(Duration, Duration)> {
        self.outcomes.gave_up()
    }

    /// Counts one more exchange that took `retransmissions`.
    pub(super) fn count(&mut self, retransmissions: usize) {
        let counts = &mut self.by_retransmissions;
        if retransmissions >= counts.len() {
            counts.resize(retransmissions + 1, 0);
        }
        counts[retransmissions] += 1;
    }

    /// An exchange is answered with so many bytes of payload. `tag` is that of the answer: it names the
    /// transmission, if it belongs to this exchange. Returns how many transmissions left after that one.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        exchange: &OpenExchange,
        tag: Tag,
        payload: u64,
        recorder: &mut impl Recorder,
    ) -> u32 {
        let transmissions = exchange.sent.len();
        let answered = usize::from(tag.ordinal);
        let later = transmissions.saturating_sub(1 + answered) as u32;
        let since = |sent: &Instant| now.micros_since(*sent);
        recorder.duration(since(&exchange.made));
        recorder.ended(&exchange.row(self.record.client, now, Some(tag.ordinal)));
        if tag.exchange == exchange.number
            && let Some(rtt) = exchange.sent.get(answered).map(since)
        {
            recorder.round_trip(rtt);
        }
        self.record.unnecessary += later;
        self.outcomes.answered(later);
        self.record.payload_bytes += payload;
        self.record.completed += 1;
        self.count(transmissions.saturating_sub(1));
        later
    }

    /// An exchange ends without an answer: for this reason or, if there is none, by a Reset.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        exchange: &OpenExchange,
        reason: Option<Failure>,
        recorder: &mut impl Recorder,
    ) {
        self.record.failed += 1;
        recorder.ended(&exchange.row(self.record.client, now, None));
        let after = exchange.sent.first().map_or(Duration::ZERO, |first| now - *first);
        self.outcomes.failed(exchange.number, exchange.sent.len() as u32, after);
        if let Some(reason) = reason {
            let tag = Tag { exchange: exchange.number, ..Tag::default() };
            recorder.failed(now, tagged(self.record.client, tag), reason);
        }
    }

    /// An exchange ends because the client has lost its state.
    pub(super) fn interrupted(
        &mut self,
        now: Instant,
        exchange: &OpenExchange,
        recorder: &mut impl Recorder,
    ) {
        self.record.failed += 1;
        recorder.ended(&exchange.row(self.record.client, now, None));
    }

    /// Reads what the next event needs.
    pub(super) fn read_ahead(&self) -> u64 {
        let first = self.by_retransmissions.first().copied().unwrap_or_default();
        let record = self.record.payload_bytes ^ u64::from(self.record.completed);
        let record = record ^ self.record.largest_timeout.as_micros();
        record ^ u64::from(first ^ self.outcomes.needless)
    }
}
