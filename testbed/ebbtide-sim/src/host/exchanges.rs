//! The exchanges of an endpoint that asks, and what is measured of them.

use super::tagged;
use super::{Counts, OutcomeBook, Tag, count};
use crate::random::CompactChaCha;
use crate::record::Recorder;
use crate::record::{ClientRecord, ExchangeRecord};
use ebbtide_core::ExchangeId;
use ebbtide_core::PeerId;
use ebbtide_core::cc::Sample;
use ebbtide_core::endpoint::{
    Arrival, Endpoint, Event, Ignored, Output, Received, Reliability, Remember, Sent, SharedConfig,
};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Content, Message, Token};
use smallvec::SmallVec;
use std::net::SocketAddr;

/// An endpoint that asks, with its measurements.
pub(crate) struct Exchanges {
    pub(crate) endpoint: Endpoint,
    /// The request in each place of the endpoint's table.
    requests: SmallVec<[Request; 1]>,
    /// Exchanges by the number of retransmissions that they took.
    pub(crate) by_retransmissions: Counts,
    pub(crate) record: ClientRecord,
    pub(crate) book: OutcomeBook,
}

#[derive(Clone, Debug, Default)]
struct Request {
    number: u32,
    /// When the application asked.
    made: Instant,
    /// When each transmission left.
    sent: SmallVec<[Instant; 2]>,
}

impl Request {
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

    fn failed(&self, now: Instant, book: &mut OutcomeBook) -> Ended {
        let transmissions = self.sent.len() as u32;
        let after = self.sent.first().map_or(Duration::ZERO, |first| now - *first);
        book.failed(self.number, transmissions, after);
        Ended::failed(self.number)
    }
}

/// The outcome of an exchange.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Ended {
    /// The request's number.
    pub(crate) number: u32,
    /// Whether it was answered.
    pub(crate) answered: bool,
    /// When the application asked; without meaning if it failed.
    pub(crate) made: Instant,
    /// Retransmissions that left although the original was answered.
    pub(crate) early: u32,
}

impl Ended {
    /// A request that was sent and repeated in vain.
    const fn failed(number: u32) -> Self {
        Self { number, answered: false, made: Instant::ZERO, early: 0 }
    }
}

/// The kind of message that begins an exchange.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Kind {
    /// A request.
    Request(Reliability),
    /// A Confirmable notification to the observer that registered with this token.
    Notification(Token),
}

impl Default for Kind {
    fn default() -> Self {
        Self::Request(Reliability::Confirmable)
    }
}

/// An output of an endpoint for its host.
pub(crate) enum Step<'e> {
    /// A request or a probe leaves.
    Leaves {
        datagram: &'e [u8],
        tag: Tag,
    },
    Failed(Ended),
    /// An event for which no host of the testbed waits.
    Other,
    /// Nothing more until this instant.
    Wait(Option<Instant>),
}

impl Exchanges {
    /// Those of client `number`, which is of this group of those under the same control.
    pub(crate) fn new(
        (number, group): (u32, u8),
        config: impl Into<SharedConfig>,
        rng: CompactChaCha,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(config, Box::new(rng)),
            requests: SmallVec::new(),
            by_retransmissions: Counts::new(),
            record: ClientRecord { client: number, group, ..ClientRecord::default() },
            book: OutcomeBook::default(),
        }
    }

    /// Makes request `number`, or sends a notification under this number. Whether the endpoint took
    /// it: that its queue is full is counted, and the application's to deal with.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        (to, kind): (SocketAddr, Kind),
        content: &Content<'_>,
        number: u32,
    ) -> bool {
        let taken = match kind {
            Kind::Request(reliability) => {
                self.endpoint.request(now, to.into(), content, reliability)
            }
            Kind::Notification(token) => {
                self.endpoint.notify(now, (to.into(), token), content, Reliability::Confirmable)
            }
        };
        let Ok(id) = taken else {
            self.record.failed += 1;
            return false;
        };
        if id.index() >= self.requests.len() {
            // Most devices have one open exchange.
            self.requests.resize(id.index() + 1, Request::default());
        }
        let request = &mut self.requests[id.index()];
        (request.number, request.made) = (number, now);
        request.sent.clear();
        true
    }

    /// A datagram arrives. The exchange that has ended with it; `read` looks at its response.
    pub(crate) fn receive_and_read(
        &mut self,
        now: Instant,
        (arrival, datagram, tag): (Arrival, &[u8], Tag),
        recorder: &mut impl Recorder,
        read: impl FnOnce(&Message<'_>),
    ) -> Option<Ended> {
        let from = arrival.from;
        match self.endpoint.receive(now, arrival, datagram, |_, _| Remember::Yes) {
            Received::Response { exchange, sample, message } => {
                read(&message);
                let payload = message.payload().len() as u64;
                Some(self.answered(now, (from, tag), (exchange, sample), payload, recorder))
            }
            // A notification has no other answer. A request waits for its response.
            Received::Acknowledged { exchange, sample } if self.endpoint.has_ended(exchange) => {
                Some(self.answered(now, (from, tag), (exchange, Some(sample)), 0, recorder))
            }
            Received::Reset { exchange, .. } => {
                self.record.failed += 1;
                let request = &self.requests[exchange.index()];
                recorder.ended(&request.row(self.record.client, now, None));
                Some(request.failed(now, &mut self.book))
            }
            // The answer to a probe of an exchange that is over is no response.
            Received::Ignored(Ignored::UnknownExchange) if !tag.probe => {
                self.record.duplicates += 1;
                self.book.answered_late(tag.exchange, tag.ordinal);
                None
            }
            _ => None,
        }
    }

    /// The next step. Call it until there is nothing more.
    pub(crate) fn poll(&mut self, now: Instant, recorder: &mut impl Recorder) -> Step<'_> {
        match self.endpoint.poll_output() {
            Output::Transmit(transmit) => {
                let (exchange, timeout, probe) = match transmit.what {
                    Sent::Exchange { exchange, timeout, .. } => (exchange, timeout, false),
                    Sent::Probe { exchange, timeout } => (exchange, timeout, true),
                    Sent::Reply => return Step::Other,
                };
                let request = &mut self.requests[exchange.index()];
                if !probe {
                    request.sent.push(now);
                }
                let ordinal = u8::try_from(request.sent.len().saturating_sub(1));
                let ordinal = ordinal.unwrap_or(u8::MAX);
                let tag = Tag { exchange: request.number, ordinal, probe };
                self.record.largest_timeout = self.record.largest_timeout.max(timeout);
                recorder.armed(now, tagged(self.record.client, tag), timeout);
                Step::Leaves { datagram: transmit.datagram, tag }
            }
            Output::Event(Event::Failed { exchange, reason }) => {
                self.record.failed += 1;
                let request = &self.requests[exchange.index()];
                recorder.ended(&request.row(self.record.client, now, None));
                let ended = request.failed(now, &mut self.book);
                let tag = Tag { exchange: ended.number, ..Tag::default() };
                recorder.failed(now, tagged(self.record.client, tag), reason);
                Step::Failed(ended)
            }
            Output::Timeout(at) => Step::Wait(at),
        }
    }

    /// An exchange has its answer, with so many bytes of payload.
    fn answered(
        &mut self,
        now: Instant,
        (from, tag): (PeerId, Tag),
        (exchange, sample): (ExchangeId, Option<Sample>),
        payload: u64,
        recorder: &mut impl Recorder,
    ) -> Ended {
        let request = &self.requests[exchange.index()];
        debug_assert_eq!(request.number, tag.exchange, "a response to another exchange");
        let transmissions = request.sent.len();
        let answered = usize::from(tag.ordinal);
        let later = transmissions.saturating_sub(1 + answered) as u32;
        let retransmissions = transmissions.saturating_sub(1);
        let since = |sent: &Instant| now.micros_since(*sent);
        recorder.duration(since(&request.made));
        recorder.ended(&request.row(self.record.client, now, Some(tag.ordinal)));
        if let Some(rtt) = request.sent.get(answered).map(since) {
            recorder.round_trip(rtt);
        }
        self.record.unnecessary += later;
        self.book.answered(later);
        self.record.payload_bytes += payload;
        self.record.completed += 1;
        count(&mut self.by_retransmissions, retransmissions);
        if recorder.wants_details() {
            let metrics = self.endpoint.metrics(from).unwrap_or_default();
            recorder.answered(now, tagged(self.record.client, tag), sample, &metrics);
        }
        Ended {
            number: request.number,
            answered: true,
            made: request.made,
            early: if answered == 0 { later } else { 0 },
        }
    }

    /// Reads what the next event needs: see [`Endpoint::read_ahead`].
    pub(crate) fn read_ahead(&self) -> u64 {
        let request = self.requests.first();
        let sent = request.and_then(|request| request.sent.first());
        let first = self.by_retransmissions.first().copied().unwrap_or_default();
        let of_record = self.record.payload_bytes ^ u64::from(self.record.completed);
        let made = request.map_or(0, |request| request.made.as_nanos() ^ u64::from(request.number));
        let times = made ^ sent.map_or(0, |sent| sent.as_nanos());
        let of_record = of_record ^ self.record.largest_timeout.as_micros();
        self.endpoint.read_ahead() ^ of_record ^ times ^ u64::from(first ^ self.book.needless)
    }

    /// The final measurements.
    pub(crate) fn finish(&mut self) {
        let counters = self.endpoint.counters();
        self.record.timeouts = u32::try_from(counters.timeouts).unwrap_or(u32::MAX);
        self.record.retransmissions = u32::try_from(counters.retransmissions).unwrap_or(u32::MAX);
        self.record.probes = u32::try_from(counters.probes).unwrap_or(u32::MAX);
        self.record.needless = self.book.needless;
    }
}
