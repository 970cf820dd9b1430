//! A host that asks: an endpoint and an application that keeps a number of requests open.

use super::agenda::{Agenda, Step};
use super::flow::Flow;
use super::{Tag, count, digits, server_address};
use crate::random::Streams;
use crate::record::ClientRecord;
use crate::run::{Recorder, tagged};
use crate::scenario::Scenario;
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Ignored, Output, Received, Reliability, Sent,
};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};

/// What a client is made from.
pub(crate) struct ClientSetup<'s> {
    pub(crate) number: u32,
    /// Which of the run's controls it uses.
    pub(crate) group: u8,
    pub(crate) config: EndpointConfig,
    pub(crate) scenario: &'s Scenario,
    pub(crate) streams: &'s Streams,
}

/// A client and its measurements.
pub(crate) struct Client {
    number: u32,
    endpoint: Endpoint,
    agenda: Agenda,
    /// What became of its messages, if it sends a flow of them.
    pub(crate) flow: Option<Flow>,
    path: Vec<u8>,
    payload: Vec<u8>,
    /// The request in each place of the endpoint's table.
    requests: Vec<Request>,
    /// The earliest timer event that is scheduled for this client.
    pub(crate) timer: Option<Instant>,
    /// Exchanges by the number of retransmissions that they took.
    pub(crate) by_retransmissions: Vec<u64>,
    pub(crate) record: ClientRecord,
}

#[derive(Clone, Debug, Default)]
struct Request {
    number: u32,
    /// When the application asked.
    made: Option<Instant>,
    /// When each transmission left.
    sent: Vec<Instant>,
}

impl Client {
    pub(crate) fn new(setup: ClientSetup<'_>) -> Self {
        let ClientSetup { number, group, config, scenario, streams } = setup;
        let workload = &scenario.workload;
        let window = u32::from(config.control.settings.nstart(&config.params));
        Self {
            number,
            endpoint: Endpoint::new(config, Box::new(streams.stream(&format!("client/{number}")))),
            agenda: Agenda::new(number, window, scenario, streams),
            flow: Flow::new(number, scenario, 1),
            path: workload.path.clone().into_bytes(),
            payload: digits(workload.request_payload),
            requests: Vec::new(),
            timer: None,
            by_retransmissions: Vec::new(),
            record: ClientRecord { client: number, group, ..ClientRecord::default() },
        }
    }

    /// Whether nothing is left to do.
    #[inline]
    pub(crate) const fn is_done(&self) -> bool {
        self.agenda.is_done()
    }

    /// Whether there are requests still to be made.
    pub(crate) const fn has_more(&self) -> bool {
        self.agenda.has_more()
    }

    /// Makes as many requests as the workload has ready.
    pub(crate) fn act(&mut self, now: Instant) {
        if self.agenda.is_periodic() {
            self.make_request(now);
            return;
        }
        if self.flow.is_some() {
            self.offer(now);
            return;
        }
        loop {
            match self.agenda.next() {
                Step::Request => {
                    self.make_request(now);
                }
                Step::NewDevice => self.endpoint.forget(server_address()),
                Step::Wait => return,
            }
        }
    }

    /// Offers what the flow has ready.
    fn offer(&mut self, now: Instant) {
        while self.agenda.has_more()
            && let Some(flow) = &mut self.flow
            && flow.offers(now)
        {
            let is_one = flow.keeps_time();
            if !self.make_request(now) || is_one {
                return;
            }
        }
    }

    /// Makes a request. Whether the endpoint took it.
    fn make_request(&mut self, now: Instant) -> bool {
        let Some(number) = self.agenda.make(now) else { return false };
        let path = [Opt { number: OptionNumber::URI_PATH, value: &self.path }];
        let code = if self.payload.is_empty() { Code::GET } else { Code::PUT };
        let content = Content { code, options: &path, payload: &self.payload };
        match self.endpoint.request(now, server_address(), &content, Reliability::Confirmable) {
            Ok(id) => {
                self.agenda.opened();
                if id.index() >= self.requests.len() {
                    self.requests.resize(id.index() + 1, Request::default());
                }
                let request = &mut self.requests[id.index()];
                request.number = number;
                request.made = Some(now);
                request.sent.clear();
                if let Some(flow) = &mut self.flow {
                    flow.taken(now);
                }
                true
            }
            // The queue is full: the reading of this period is lost, and counted.
            Err(_) => {
                self.record.failed += 1;
                if let Some(flow) = &mut self.flow {
                    flow.refused();
                    self.agenda.take_back();
                }
                false
            }
        }
    }

    /// A datagram arrives. Whether the application wants to act.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        datagram: &[u8],
        tag: Tag,
        recorder: &mut impl Recorder,
    ) -> bool {
        match self.endpoint.handle_datagram(now, server_address(), datagram) {
            Received::Response { exchange, sample, message } => {
                let request = &self.requests[exchange.index()];
                debug_assert_eq!(request.number, tag.exchange, "a response to another exchange");
                let transmissions = request.sent.len();
                let answered = usize::from(tag.ordinal);
                let rtt = request.sent.get(answered).map(|sent| now.micros_since(*sent));
                let unnecessary = transmissions.saturating_sub(1 + answered);
                self.record.unnecessary += u32::try_from(unnecessary).unwrap_or(u32::MAX);
                let delivered = self.payload.len() + message.payload().len();
                self.record.payload_bytes += delivered as u64;
                self.record.completed += 1;
                count(&mut self.by_retransmissions, transmissions.saturating_sub(1));
                if let Some(made) = request.made {
                    recorder.duration(now.micros_since(made));
                }
                if let Some(rtt) = rtt {
                    recorder.round_trip(rtt);
                }
                if recorder.wants_details() {
                    let metrics = self.endpoint.metrics(server_address()).unwrap_or_default();
                    recorder.answered(now, tagged(self.number, tag), sample, &metrics);
                }
                self.ended(now);
                true
            }
            Received::Reset { exchange, .. } => {
                self.record.failed += 1;
                self.given_up(exchange);
                self.ended(now);
                true
            }
            // The answer to a probe of an exchange that is over is no response.
            Received::Ignored(Ignored::UnknownExchange) if !tag.probe => {
                self.record.duplicates += 1;
                false
            }
            _ => false,
        }
    }

    /// The endpoint's timer may be due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    /// Hands what the endpoint wants to send to `send`. Returns when it wants to be called again,
    /// and whether the application wants to act.
    pub(crate) fn drain<R: Recorder>(
        &mut self,
        now: Instant,
        recorder: &mut R,
        mut send: impl FnMut(&mut R, &[u8], Tag),
    ) -> (Option<Instant>, bool) {
        let mut wants_to_act = false;
        loop {
            match self.endpoint.poll_output() {
                Output::Transmit(transmit) => {
                    let (exchange, timeout, probe) = match transmit.what {
                        Sent::Exchange { exchange, timeout, .. } => (exchange, timeout, false),
                        Sent::Probe { exchange, timeout } => (exchange, timeout, true),
                        Sent::Reply => continue,
                    };
                    let request = &mut self.requests[exchange.index()];
                    if !probe {
                        request.sent.push(now);
                    }
                    if let Some(flow) = &mut self.flow {
                        if probe {
                            flow.probes();
                        } else if flow.leaves(now, request.number) {
                            if request.number == 0 {
                                recorder.begins(now, self.number);
                            }
                            // There is room for the next one.
                            wants_to_act = true;
                        }
                    }
                    let ordinal = u8::try_from(request.sent.len().saturating_sub(1));
                    let ordinal = ordinal.unwrap_or(u8::MAX);
                    let tag = Tag { exchange: request.number, ordinal, probe };
                    self.record.largest_timeout = self.record.largest_timeout.max(timeout);
                    recorder.armed(now, tagged(self.number, tag), timeout);
                    send(recorder, transmit.datagram, tag);
                }
                Output::Event(Event::Failed { exchange, reason }) => {
                    let number = self.number_of(exchange);
                    let tag = Tag { exchange: number, ..Tag::default() };
                    recorder.failed(now, tagged(self.number, tag), reason);
                    self.record.failed += 1;
                    self.given_up(exchange);
                    self.ended(now);
                    wants_to_act = true;
                }
                Output::Timeout(at) => {
                    self.note_rate(now, recorder);
                    return (at, wants_to_act);
                }
            }
        }
    }

    /// Tells the observer of the control's rate, if messages flow at one.
    fn note_rate(&self, now: Instant, recorder: &mut impl Recorder) {
        if self.flow.is_none() {
            return;
        }
        let metrics = self.endpoint.metrics(server_address());
        if let Some(interval) = metrics.and_then(|metrics| metrics.interval) {
            recorder.rate(now, self.number, 1e6 / f64::from(interval.get().max(1)));
        }
    }

    fn number_of(&self, exchange: ExchangeId) -> u32 {
        self.requests.get(exchange.index()).map_or(0, |request| request.number)
    }

    fn given_up(&mut self, exchange: ExchangeId) {
        let number = self.number_of(exchange);
        if self.flow.as_mut().is_some_and(|flow| flow.given_up(number)) {
            self.agenda.again();
        }
    }

    fn ended(&mut self, now: Instant) {
        if let Some(time) = self.agenda.ended(now) {
            self.record.fct = time;
        }
    }

    /// The final measurements.
    pub(crate) fn finish(&mut self) {
        let counters = self.endpoint.counters();
        self.record.timeouts = u32::try_from(counters.timeouts).unwrap_or(u32::MAX);
        self.record.retransmissions = u32::try_from(counters.retransmissions).unwrap_or(u32::MAX);
        self.record.probes = u32::try_from(counters.probes).unwrap_or(u32::MAX);
    }
}
