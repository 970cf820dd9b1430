//! A host that asks: an endpoint and an application that keeps a number of requests open.

use super::agenda::{Agenda, Step};
use super::bodies::Bodies;
use super::exchanges::{self, Exchanges, Kind};
use super::flow::Flow;
use super::{ClientModel, Tag, server_address, server_in_turn};
use crate::random::Streams;
use crate::record::Messages;
use crate::record::Recorder;
use crate::scenario::Scenario;
use ebbtide_core::endpoint::Arrival;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Message, Opt, OptionNumber, Token};
use std::net::SocketAddr;
use std::sync::Arc;

/// Settings of a client.
pub(crate) struct ClientSetup<'s> {
    pub(crate) number: u32,
    /// Which of the run's controls it uses.
    pub(crate) group: u8,
    pub(crate) model: Arc<ClientModel>,
    pub(crate) scenario: &'s Scenario,
    pub(crate) streams: &'s Streams,
}

/// A client and its measurements.
pub(crate) struct Client {
    pub(crate) exchanges: Exchanges,
    agenda: Agenda,
    /// The token of the observer to which it sends notifications, if it does.
    pub(super) observer: Option<Token>,
    /// The bodies that it transfers block by block, if it does.
    bodies: Option<Box<Bodies>>,
    /// The record of its messages, if it sends a flow of them.
    pub(crate) flow: Option<Box<Flow>>,
    model: Arc<ClientModel>,
}

/// There may be a million of them: what few clients need is in a box, and what all share in the model.
const _: () = assert!(size_of::<Client>() <= 728, "a client has grown");

impl Client {
    pub(crate) fn new(setup: ClientSetup<'_>) -> Self {
        let ClientSetup { number, group, model, scenario, streams } = setup;
        let config = &model.config;
        let window = u32::from(config.control.settings.nstart(&config.params));
        Self {
            exchanges: Exchanges::new(
                (number, group),
                config.clone(),
                streams.frugal(&format!("client/{number}")),
            ),
            agenda: Agenda::new(number, window, scenario, streams),
            observer: None,
            bodies: Bodies::new(number, scenario, streams),
            flow: Flow::new(number, scenario, 1),
            model,
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

    pub(crate) const fn number(&self) -> u32 {
        self.exchanges.record.client
    }

    /// The server that has its request with this number: the only one or, where it asks several in turn, one of
    /// them.
    fn server(&self, request: u32) -> SocketAddr {
        server_in_turn(request / self.model.requests_each)
    }

    /// The client begins, though it has to open a session first.
    pub(crate) fn begins(&mut self, now: Instant) {
        self.agenda.begins(now);
    }

    /// Makes as many requests as the workload has ready.
    pub(crate) fn act(&mut self, now: Instant) {
        if self.agenda.is_clocked() {
            for _ in 0..self.agenda.at_once() {
                self.make_request(now);
            }
            return;
        }
        if let Some(bodies) = &mut self.bodies {
            bodies.due();
            self.transfer(now);
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
                Step::NewDevice => self.exchanges.endpoint.forget(server_address().into()),
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
        let payload = &self.model.payload;
        // RFC 7641 section 3.4: 24 bits that count up.
        let counter = (number & 0xff_ffff).to_be_bytes();
        let (kind, options, code) = match self.observer {
            Some(token) => {
                let option = Opt { number: OptionNumber::OBSERVE, value: &counter[1..] };
                (Kind::Notification(token), [option], Code::CONTENT)
            }
            None => {
                let option = Opt { number: OptionNumber::URI_PATH, value: &self.model.path };
                let code = if payload.is_empty() { Code::GET } else { Code::PUT };
                (Kind::Request(self.model.reliability), [option], code)
            }
        };
        let content = Content { code, options: &options, payload };
        let to = (server_in_turn(number / self.model.requests_each), kind);
        let taken = self.exchanges.ask(now, to, &content, number);
        if taken {
            self.agenda.opened();
            if let Some(flow) = &mut self.flow {
                flow.taken(now);
            }
        } else if let Some(flow) = &mut self.flow {
            flow.refused();
            self.agenda.take_back();
        }
        taken
    }

    /// Something has happened that every client reports.
    pub(crate) fn happens(&mut self, now: Instant) {
        if let Some(bodies) = &mut self.bodies {
            bodies.happens();
        }
        self.transfer(now);
    }

    /// A datagram of its was lost on the way.
    pub(crate) const fn note_loss(&mut self, by_queue: bool) {
        if let Some(bodies) = &mut self.bodies {
            bodies.note_loss(by_queue);
        }
    }

    /// The messages of a sensor so far.
    pub(crate) fn messages(&self) -> Messages {
        self.bodies.as_ref().and_then(|bodies| bodies.messages()).unwrap_or_default()
    }

    /// Sends the messages of the body under way, if there is one.
    pub(crate) fn transfer(&mut self, now: Instant) {
        while let Some(bodies) = &mut self.bodies
            && !bodies.advance(now)
            && let Some(outgoing) = bodies.take()
        {
            let number = match self.agenda.make(now) {
                Some(number) => number,
                None => return,
            };
            let to = (server_address(), Kind::default());
            let taken = outgoing.options.with_slice(None, |options| {
                let content = Content { code: outgoing.code, options, payload: &outgoing.payload };
                self.exchanges.ask(now, to, &content, number)
            });
            bodies.sent(number, outgoing.id);
            match taken {
                true => self.agenda.opened(),
                false => bodies.lost(now, number),
            }
        }
        self.note_bodies(now);
    }

    /// Makes no further request if the last body is over.
    fn note_bodies(&mut self, now: Instant) {
        if let Some(bodies) = &mut self.bodies
            && bodies.advance(now)
        {
            self.agenda.stop();
        }
    }

    /// A datagram arrives. Whether the application wants to act.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        (datagram, tag, congestion_experienced): (&[u8], Tag, bool),
        recorder: &mut impl Recorder,
    ) -> bool {
        let arrival = Arrival { congestion_experienced, ..self.server(tag.exchange).into() };
        let arrived = (arrival, datagram, tag);
        let bodies = &mut self.bodies;
        let read = |message: &Message<'_>| {
            if let Some(bodies) = bodies {
                bodies.answered(now, tag.exchange, message);
            }
        };
        let ended = self.exchanges.receive_and_read(now, arrived, recorder, read);
        let Some(ended) = ended else { return false };
        if let Some(bodies) = &mut self.bodies {
            bodies.note_early(ended.early);
        }
        if ended.answered {
            self.exchanges.record.payload_bytes += self.model.payload.len() as u64;
            let (after, in_time) = self.agenda.answered(now, ended.made);
            recorder.answered_after(after);
            self.exchanges.record.in_time += u32::from(in_time);
        } else {
            self.given_up(now, ended.number);
        }
        self.ended(now);
        true
    }

    /// The endpoint's timer may be due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.exchanges.endpoint.handle_timeout(now);
        if self.bodies.as_ref().and_then(|bodies| bodies.wait()).is_some_and(|at| at <= now) {
            self.transfer(now);
        }
    }

    /// Hands what the endpoint wants to send to `send`. Returns when it wants to be called again,
    /// and whether the application wants to act.
    pub(crate) fn drain<R: Recorder>(
        &mut self,
        now: Instant,
        recorder: &mut R,
        mut send: impl FnMut(&mut R, &[u8], Tag),
    ) -> (Option<Instant>, bool) {
        let (mut wants_to_act, number) = (false, self.number());
        loop {
            match self.exchanges.poll(now, recorder) {
                exchanges::Step::Leaves { datagram, tag } => {
                    if let Some(flow) = &mut self.flow {
                        if tag.probe {
                            flow.probes();
                        } else if flow.leaves(now, tag.exchange) {
                            if tag.exchange == 0 {
                                recorder.begins(now, number);
                            }
                            // There is room for the next one.
                            wants_to_act = true;
                        }
                    }
                    send(recorder, datagram, tag);
                }
                exchanges::Step::Failed(ended) => {
                    self.given_up(now, ended.number);
                    self.ended(now);
                    wants_to_act = true;
                }
                exchanges::Step::Other => {}
                exchanges::Step::Wait(at) => {
                    self.note_rate(now, recorder);
                    let wait = self.bodies.as_ref().and_then(|bodies| bodies.wait());
                    let next = match (at, wait) {
                        (Some(at), Some(wait)) => Some(at.min(wait)),
                        (at, wait) => at.or(wait),
                    };
                    return (next, wants_to_act);
                }
            }
        }
    }

    /// Tells the observer of the control's rate, if messages flow at one.
    fn note_rate(&self, now: Instant, recorder: &mut impl Recorder) {
        if self.flow.is_none() {
            return;
        }
        let metrics = self.exchanges.endpoint.metrics(server_address().into());
        if let Some(interval) = metrics.and_then(|metrics| metrics.interval) {
            recorder.rate(now, self.number(), 1e6 / interval.as_micros().max(1) as f64);
        }
    }

    /// Reads what the next event needs: see [`Endpoint::read_ahead`](ebbtide_core::endpoint::Endpoint::read_ahead).
    pub(crate) fn read_ahead(&self) -> u64 {
        let options = u32::from(self.bodies.is_some()) ^ u32::from(self.observer.is_some());
        let agenda = self.agenda.open() ^ u32::from(self.agenda.has_more());
        self.exchanges.read_ahead() ^ u64::from(agenda ^ options)
    }

    /// Exchanges under way.
    pub(crate) const fn open(&self) -> u32 {
        self.agenda.open()
    }

    fn given_up(&mut self, now: Instant, number: u32) {
        if self.flow.as_mut().is_some_and(|flow| flow.given_up(number)) {
            self.agenda.again();
        }
        if let Some(bodies) = &mut self.bodies {
            bodies.lost(now, number);
            self.agenda.again();
        }
    }

    fn ended(&mut self, now: Instant) {
        self.note_bodies(now);
        if let Some(time) = self.agenda.ended(now) {
            self.exchanges.record.fct = time;
        }
    }
}
