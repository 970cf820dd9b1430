//! A host that asks: an endpoint and what is measured of its exchanges.

use crate::host::{PORT, Tag, client_address, count};
use crate::record::ClientRecord;
use crate::run::{Recorder, Tagged};
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Ignored, Output, Received, Reliability, Sent,
};
use ebbtide_core::time::{Instant, Micros};
use ebbtide_core::wire::Content;
use rand_chacha::ChaCha8Rng;

/// What an exchange has come to.
#[derive(Copy, Clone, Debug)]
pub(super) struct Ended {
    /// Whether it was answered.
    pub(super) answered: bool,
    /// Since its original left.
    pub(super) round_trip: Micros,
    /// How often it was repeated.
    pub(super) retransmissions: u32,
    /// Retransmissions that left although the original was answered.
    pub(super) early: u32,
}

/// A host that asks.
pub(super) struct Asker {
    /// Its number among the hosts.
    host: u32,
    endpoint: Endpoint,
    requests: Vec<Request>,
    next_number: u32,
    pub(super) open: u32,
    started: Option<Instant>,
    /// The earliest timer event that is scheduled for it.
    pub(super) timer: Option<Instant>,
    pub(super) by_retransmissions: Vec<u64>,
    pub(super) record: ClientRecord,
}

#[derive(Clone, Debug, Default)]
struct Request {
    number: u32,
    made: Instant,
    /// When each transmission left.
    sent: Vec<Instant>,
}

impl Asker {
    /// Client `number` on host `host`.
    pub(super) fn new(
        (number, host, group): (u32, u32, u8),
        config: EndpointConfig,
        rng: ChaCha8Rng,
    ) -> Self {
        Self {
            host,
            endpoint: Endpoint::new(config, Box::new(rng)),
            requests: Vec::new(),
            next_number: 0,
            open: 0,
            started: None,
            timer: None,
            by_retransmissions: Vec::new(),
            record: ClientRecord { client: number, group, ..ClientRecord::default() },
        }
    }

    /// Asks a host. Whether the endpoint took it.
    pub(super) fn ask(&mut self, now: Instant, host: u32, content: &Content<'_>) -> bool {
        self.started.get_or_insert(now);
        let to = client_address(host);
        let number = self.next_number;
        self.next_number += 1;
        match self.endpoint.request(now, to, content, Reliability::Confirmable) {
            Ok(id) => {
                self.open += 1;
                if id.index() >= self.requests.len() {
                    self.requests.resize(id.index() + 1, Request::default());
                }
                let request = &mut self.requests[id.index()];
                (request.number, request.made) = (number, now);
                request.sent.clear();
                true
            }
            // A full queue: counted, and the application's to deal with.
            Err(_) => {
                self.record.failed += 1;
                false
            }
        }
    }

    /// A datagram arrives from a host.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        (from, datagram, tag): (u32, &[u8], Tag),
        recorder: &mut impl Recorder,
    ) -> Option<Ended> {
        let from = client_address(from);
        match self.endpoint.handle_datagram(now, from, datagram) {
            Received::Response { exchange, sample, message } => {
                let request = &self.requests[exchange.index()];
                let transmissions = request.sent.len();
                let answered = usize::from(tag.ordinal);
                let later = transmissions.saturating_sub(1 + answered) as u32;
                let since_first =
                    request.sent.first().map_or(Micros::ZERO, |s| now.micros_since(*s));
                if let Some(sent) = request.sent.get(answered) {
                    recorder.round_trip(now.micros_since(*sent));
                }
                recorder.duration(now.micros_since(request.made));
                self.record.unnecessary += later;
                self.record.payload_bytes += message.payload().len() as u64;
                self.record.completed += 1;
                let class = transmissions.saturating_sub(1);
                count(&mut self.by_retransmissions, class);
                if recorder.wants_details() {
                    let metrics = self.endpoint.metrics(from).unwrap_or_default();
                    recorder.answered(now, self.tagged(tag), sample, &metrics);
                }
                self.ended(now);
                Some(Ended {
                    answered: true,
                    round_trip: since_first,
                    retransmissions: class as u32,
                    early: if answered == 0 { later } else { 0 },
                })
            }
            Received::Reset { exchange, .. } => {
                self.record.failed += 1;
                Some(self.failed(now, exchange))
            }
            // The answer to a probe of an exchange that is over is no response.
            Received::Ignored(Ignored::UnknownExchange) if !tag.probe => {
                self.record.duplicates += 1;
                None
            }
            _ => None,
        }
    }

    /// The endpoint's timer may be due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    /// Hands what the endpoint wants to send to `send` and exchanges that failed to `failed`.
    /// Returns when it wants to be called again.
    pub(super) fn drain<R: Recorder>(
        &mut self,
        now: Instant,
        recorder: &mut R,
        mut send: impl FnMut(&mut R, u32, &[u8], (Tag, Micros)),
        failed: &mut Vec<Ended>,
    ) -> Option<Instant> {
        loop {
            match self.endpoint.poll_output() {
                Output::Transmit(transmit) => {
                    let (exchange, timeout, probe) = match transmit.what {
                        Sent::Exchange { exchange, timeout, .. } => (exchange, timeout, false),
                        Sent::Probe { exchange, timeout } => (exchange, timeout, true),
                        Sent::Reply => continue,
                    };
                    let Some(to) = crate::host::client_at(transmit.to) else { continue };
                    let request = &mut self.requests[exchange.index()];
                    if !probe {
                        request.sent.push(now);
                    }
                    let ordinal = u8::try_from(request.sent.len().saturating_sub(1));
                    let ordinal = ordinal.unwrap_or(u8::MAX);
                    let tag = Tag { exchange: request.number, ordinal, probe };
                    self.record.largest_timeout = self.record.largest_timeout.max(timeout);
                    recorder.armed(now, crate::run::tagged(self.record.client, tag), timeout);
                    send(recorder, to, transmit.datagram, (tag, timeout));
                }
                Output::Event(Event::Failed { exchange, reason }) => {
                    let number = self.requests.get(exchange.index()).map_or(0, |r| r.number);
                    let tag = Tag { exchange: number, ordinal: 0, probe: false };
                    recorder.failed(now, self.tagged(tag), reason);
                    self.record.failed += 1;
                    let ended = self.failed(now, exchange);
                    failed.push(ended);
                }
                Output::Timeout(at) => return at,
            }
        }
    }

    fn failed(&mut self, now: Instant, exchange: ExchangeId) -> Ended {
        self.ended(now);
        let sent = self.requests.get(exchange.index()).map_or(0, |request| request.sent.len());
        let retransmissions = sent.saturating_sub(1) as u32;
        Ended { answered: false, round_trip: Micros::ZERO, retransmissions, early: 0 }
    }

    fn tagged(&self, tag: Tag) -> Tagged {
        crate::run::tagged(self.record.client, tag)
    }

    fn ended(&mut self, now: Instant) {
        self.open -= 1;
        if let Some(started) = self.started {
            self.record.fct = now - started;
        }
    }

    /// Its number among the hosts.
    pub(super) const fn host(&self) -> u32 {
        self.host
    }

    /// The final measurements.
    pub(super) fn finish(&mut self) {
        let counters = self.endpoint.counters();
        self.record.timeouts = u32::try_from(counters.timeouts).unwrap_or(u32::MAX);
        self.record.retransmissions = u32::try_from(counters.retransmissions).unwrap_or(u32::MAX);
        self.record.probes = u32::try_from(counters.probes).unwrap_or(u32::MAX);
    }
}

/// A host that answers every request with the same payload.
pub(super) struct Answerer {
    endpoint: Endpoint,
    payload: Vec<u8>,
    /// When it has processed what it has taken.
    pub(super) busy_until: Instant,
    /// Requests that it has taken and not answered.
    pub(super) taken: u32,
}

impl Answerer {
    pub(super) fn new(config: EndpointConfig, payload: u32, rng: ChaCha8Rng) -> Self {
        let digits = b"0123456789".iter().copied().cycle();
        Self {
            endpoint: Endpoint::new(config, Box::new(rng)),
            payload: digits.take(payload as usize).collect(),
            busy_until: Instant::ZERO,
            taken: 0,
        }
    }

    /// Answers a request from a host; hands what that causes to `send`.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        (from, datagram): (u32, &[u8]),
        mut send: impl FnMut(u32, &[u8]),
    ) {
        use ebbtide_core::wire::{Code, Opt, OptionNumber};
        let from = client_address(from);
        debug_assert_eq!(from.port(), PORT);
        if let Received::Request(incoming, message) =
            self.endpoint.handle_datagram(now, from, datagram)
        {
            // text/plain is content format 0, whose shortest form has no bytes (section 3.2).
            let format = [Opt { number: OptionNumber::CONTENT_FORMAT, value: &[] }];
            let content = match (message.code(), self.payload.is_empty()) {
                (Code::GET, _) => {
                    Content { code: Code::CONTENT, options: &format, payload: &self.payload }
                }
                (_, true) => Content { code: Code::CHANGED, options: &[], payload: &[] },
                _ => Content { code: Code::CHANGED, options: &format, payload: &self.payload },
            };
            // A refused response is counted by the endpoint; the client asks again.
            let _ = self.endpoint.respond(now, &incoming, &content);
        }
        while let Output::Transmit(transmit) = self.endpoint.poll_output() {
            if let Some(to) = crate::host::client_at(transmit.to) {
                send(to, transmit.datagram);
            }
        }
    }
}
