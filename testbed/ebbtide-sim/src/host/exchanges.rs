//! The exchanges of an endpoint that asks, and what is measured of them.

use super::exchange_ledger::{ExchangeLedger, OpenExchange};
use super::{Tag, tagged};
use crate::random::CompactChaCha;
use crate::record::Recorder;
use ebbtide_core::cc::Sample;
use ebbtide_core::endpoint::{
    Arrival, Endpoint, Event, Ignored, Output, Received, Reliability, Remember, Sent, SharedConfig,
};
use ebbtide_core::testbed::{MemoryPart, read_ahead};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Content, Message, Token};
use ebbtide_core::{ExchangeId, PeerId};
use smallvec::SmallVec;
use std::net::SocketAddr;

/// An endpoint that asks, with its measurements.
pub(crate) struct MeasuredEndpoint {
    pub(crate) endpoint: Endpoint,
    /// The exchange in each place of the endpoint's table.
    open: SmallVec<[OpenExchange; 1]>,
    pub(crate) ledger: ExchangeLedger,
}

/// The outcome of an exchange.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ExchangeOutcome {
    /// The request's number.
    pub(crate) number: u32,
    /// Whether it was answered.
    pub(crate) answered: bool,
    /// When the application asked; without meaning if it failed.
    pub(crate) made: Instant,
    /// Retransmissions that left although the original was answered.
    pub(crate) early: u32,
}

impl ExchangeOutcome {
    /// A request that was sent and repeated in vain.
    const fn failed(number: u32) -> Self {
        Self { number, answered: false, made: Instant::ZERO, early: 0 }
    }
}

/// The kind of message that begins an exchange.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Opening {
    /// A request.
    Request(Reliability),
    /// A Confirmable notification to the observer that registered with this token.
    Notification(Token),
}

impl Default for Opening {
    fn default() -> Self {
        Self::Request(Reliability::Confirmable)
    }
}

/// An output of an endpoint for its host.
pub(crate) enum HostOutput<'e> {
    /// A request or a probe leaves.
    Leaves {
        datagram: &'e [u8],
        tag: Tag,
    },
    Failed(ExchangeOutcome),
    /// An event for which no host of the testbed waits.
    Other,
    /// Nothing more until this instant.
    Wait(Option<Instant>),
}

impl MeasuredEndpoint {
    /// Those of client `number`, which is of this group of those under the same control.
    pub(crate) fn new(
        number: u32,
        group: u8,
        config: impl Into<SharedConfig>,
        rng: CompactChaCha,
    ) -> Self {
        Self {
            endpoint: Endpoint::new(config, Box::new(rng)),
            open: SmallVec::new(),
            ledger: ExchangeLedger::new(number, group),
        }
    }

    /// Makes request `number`, or sends a notification under this number. Whether the endpoint took
    /// it: that its queue is full is counted, and the application's to deal with.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        to: SocketAddr,
        opening: Opening,
        content: &Content<'_>,
        number: u32,
    ) -> bool {
        let taken = match opening {
            Opening::Request(reliability) => {
                self.endpoint.request(now, to.into(), content, reliability)
            }
            Opening::Notification(token) => self.endpoint.notify(
                now,
                to.into(),
                &token.into(),
                content,
                Reliability::Confirmable,
            ),
        };
        let Ok(id) = taken else {
            self.ledger.record.failed += 1;
            return false;
        };
        if id.index() >= self.open.len() {
            // Most devices have one open exchange.
            self.open.resize(id.index() + 1, OpenExchange::default());
        }
        let exchange = &mut self.open[id.index()];
        (exchange.number, exchange.made, exchange.is_open) = (number, now, true);
        exchange.sent.clear();
        true
    }

    /// The endpoint loses all that it knows. Its exchanges under way fail; returns how many.
    pub(crate) fn restart(
        &mut self,
        now: Instant,
        config: SharedConfig,
        rng: CompactChaCha,
        recorder: &mut impl Recorder,
    ) -> u32 {
        self.add_counters();
        self.endpoint = Endpoint::new(config, Box::new(rng));
        let mut interrupted = 0;
        for exchange in self.open.iter_mut().filter(|exchange| exchange.is_open) {
            exchange.is_open = false;
            self.ledger.interrupted(now, exchange, recorder);
            interrupted += 1;
        }
        interrupted
    }

    /// A datagram arrives. The exchange that has ended with it; `read` looks at its response, and
    /// says how long the payload is, or that it is not accepted.
    pub(crate) fn receive_and_read(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &[u8],
        tag: Tag,
        recorder: &mut impl Recorder,
        read: impl FnOnce(&Message<'_>) -> Option<u64>,
    ) -> Option<ExchangeOutcome> {
        let from = arrival.from;
        match self.endpoint.receive(now, arrival, datagram, |_, _| Remember::Yes) {
            Received::Response { exchange, sample, message } => {
                let Some(payload) = read(&message) else {
                    return Some(self.ended_in_vain(now, exchange, recorder));
                };
                let outcome = self.answered(now, exchange, tag, payload, recorder);
                self.report_answer(now, from, tag, sample, recorder);
                Some(outcome)
            }
            // A notification has no other answer. A request waits for its response.
            Received::Acknowledged { exchange, sample } if self.endpoint.has_ended(exchange) => {
                let outcome = self.answered(now, exchange, tag, 0, recorder);
                self.report_answer(now, from, tag, Some(sample), recorder);
                Some(outcome)
            }
            Received::Reset { exchange, .. } => Some(self.ended_in_vain(now, exchange, recorder)),
            // The answer to a probe of an exchange that is over is no response.
            Received::Ignored(Ignored::UnknownExchange) if !tag.probe => {
                self.ledger.record.duplicates += 1;
                self.ledger.outcomes.answered_late(tag.exchange, tag.ordinal);
                None
            }
            _ => None,
        }
    }

    /// The next step. Call it until there is nothing more.
    pub(crate) fn poll(&mut self, now: Instant, recorder: &mut impl Recorder) -> HostOutput<'_> {
        match self.endpoint.poll_output() {
            Output::Transmit(transmit) => {
                let (exchange, timeout, probe) = match transmit.what {
                    Sent::Exchange { exchange, timeout, .. } => (exchange, timeout, false),
                    Sent::Probe { exchange, timeout } => (exchange, timeout, true),
                    Sent::Reply => return HostOutput::Other,
                };
                let open = &mut self.open[exchange.index()];
                if !probe {
                    open.sent.push(now);
                }
                let ordinal = u8::try_from(open.sent.len().saturating_sub(1));
                let ordinal = ordinal.unwrap_or(u8::MAX);
                let tag = Tag { exchange: open.number, ordinal, probe };
                let record = &mut self.ledger.record;
                record.largest_timeout = record.largest_timeout.max(timeout);
                recorder.armed(now, tagged(record.client, tag), timeout);
                HostOutput::Leaves { datagram: transmit.datagram, tag }
            }
            Output::Event(Event::Failed { exchange, reason }) => {
                let exchange = &mut self.open[exchange.index()];
                exchange.is_open = false;
                self.ledger.failed(now, exchange, Some(reason), recorder);
                HostOutput::Failed(ExchangeOutcome::failed(exchange.number))
            }
            Output::Event(_) => HostOutput::Other,
            Output::Timeout(at) => HostOutput::Wait(at),
        }
    }

    /// The peer does not answer an exchange.
    fn ended_in_vain(
        &mut self,
        now: Instant,
        exchange: ExchangeId,
        recorder: &mut impl Recorder,
    ) -> ExchangeOutcome {
        let exchange = &mut self.open[exchange.index()];
        exchange.is_open = false;
        self.ledger.failed(now, exchange, None, recorder);
        ExchangeOutcome::failed(exchange.number)
    }

    /// An exchange has its answer, with so many bytes of payload.
    fn answered(
        &mut self,
        now: Instant,
        exchange: ExchangeId,
        tag: Tag,
        payload: u64,
        recorder: &mut impl Recorder,
    ) -> ExchangeOutcome {
        let exchange = &mut self.open[exchange.index()];
        exchange.is_open = false;
        debug_assert_eq!(exchange.number, tag.exchange, "a response to another exchange");
        let later = self.ledger.answered(now, exchange, tag, payload, recorder);
        ExchangeOutcome {
            number: exchange.number,
            answered: true,
            made: exchange.made,
            early: if tag.ordinal == 0 { later } else { 0 },
        }
    }

    /// Tells the observer of an answer from a peer and of the control that it has fed, if it wants to know.
    #[inline]
    fn report_answer(
        &self,
        now: Instant,
        from: PeerId,
        tag: Tag,
        sample: Option<Sample>,
        recorder: &mut impl Recorder,
    ) {
        if recorder.wants_details() {
            let metrics = self.endpoint.metrics(from).unwrap_or_default();
            recorder.answered(now, tagged(self.ledger.record.client, tag), sample, &metrics);
        }
    }

    /// Reads what the next event needs: see [`read_ahead`].
    pub(crate) fn read_ahead(&self, part: MemoryPart) -> u64 {
        let of_endpoint = read_ahead(&self.endpoint, part);
        if part != MemoryPart::Own {
            return of_endpoint;
        }
        let open = self.open.first();
        let sent = open.and_then(|open| open.sent.first());
        let made = open.map_or(0, |open| open.made.as_nanos() ^ u64::from(open.number));
        let times = made ^ sent.map_or(0, |sent| sent.as_nanos());
        of_endpoint ^ times ^ self.ledger.read_ahead()
    }

    /// Adds what the endpoint has counted.
    fn add_counters(&mut self) {
        let counters = self.endpoint.counters();
        let record = &mut self.ledger.record;
        let add = |sum: &mut u32, count: u64| {
            *sum = sum.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        };
        add(&mut record.timeouts, counters.timeouts);
        add(&mut record.retransmissions, counters.retransmissions);
        add(&mut record.probes, counters.probes);
    }

    /// The final measurements.
    pub(crate) fn finish(&mut self) {
        self.add_counters();
        let record = &mut self.ledger.record;
        record.needless = self.ledger.outcomes.needless;
    }
}
