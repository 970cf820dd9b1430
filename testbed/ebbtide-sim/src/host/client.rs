//! A host that asks: an endpoint and an application that keeps a number of requests open.

use super::agenda::{Agenda, NextAction};
use super::bodies::Bodies;
use super::exchanges::{HostOutput, MeasuredEndpoint, Opening};
use super::flow::MessageFlow;
use super::oscore::ProtectedRequests;
use super::{
    ArrivingPacket, ClientModel, ConstantServer, ExchangeLedger, Host, ObservedHost, Tag,
    observe_before, server_address, server_in_turn,
};
use crate::medium::low_power::Cause;
use crate::random::{CompactChaCha, Streams};
use crate::record::Messages;
use crate::record::Recorder;
use crate::scenario::{Scenario, SecurityMode};
use ebbtide_core::endpoint::{Arrival, Measured};
use ebbtide_core::testbed::{MemoryPart, OutputBuffers, swap_buffers};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Message, Opt, OptionNumber, Token};
use std::net::SocketAddr;
use std::sync::Arc;

/// Settings of a client, for every transport.
#[derive(Copy, Clone)]
pub(crate) struct ClientSetup<'s> {
    pub(crate) number: u32,
    /// Which of the run's controls it uses.
    pub(crate) group: u8,
    pub(crate) scenario: &'s Scenario,
    pub(crate) streams: &'s Streams,
}

/// A client and its measurements.
pub(crate) struct Client {
    pub(crate) exchanges: MeasuredEndpoint,
    agenda: Agenda,
    /// The token of the observer to which it sends notifications, if it does.
    pub(super) observer: Option<Token>,
    /// The bodies that it transfers block by block, if it does.
    bodies: Option<Box<Bodies>>,
    /// Its side of OSCORE, if that protects its requests.
    protected: Option<Box<ProtectedRequests>>,
    /// The record of its messages, if it sends a flow of them.
    pub(crate) flow: Option<Box<MessageFlow>>,
    model: Arc<ClientModel>,
}

/// There may be a million of them: what few clients need is in a box, and what all share in the model. The
/// measurements count apart, since a new one is worth its bytes.
const _: () = assert!(
    size_of::<Client>() - size_of::<crate::record::ClientRecord>() <= 656,
    "a client has grown"
);

impl Client {
    pub(crate) fn new(setup: ClientSetup<'_>, model: Arc<ClientModel>) -> Self {
        let ClientSetup { number, group, scenario, streams } = setup;
        let config = &model.config;
        let window = u32::from(config.control.settings.nstart(&config.params));
        let rng = streams.frugal(&format!("client/{number}"));
        Self {
            exchanges: MeasuredEndpoint::new(number, group, config.clone(), rng),
            agenda: Agenda::new(number, window, scenario, streams),
            observer: None,
            bodies: Bodies::new(number, scenario, streams),
            protected: (scenario.security.mode == SecurityMode::Oscore)
                .then(|| Box::new(ProtectedRequests::new(number))),
            flow: MessageFlow::new(number, scenario, 1),
            model,
        }
    }

    pub(crate) const fn number(&self) -> u32 {
        self.exchanges.ledger.record.client
    }

    /// The server that has its request with this number: the only one or, where it asks several in turn, one of
    /// them.
    fn server(&self, request: u32) -> SocketAddr {
        server_in_turn(request / self.model.requests_each)
    }

    /// Counts the flow completion time from now on, although a session has to be opened first.
    pub(crate) fn begins(&mut self, now: Instant) {
        self.agenda.begins(now);
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
        let (opening, options, code) = match self.observer {
            Some(token) => {
                let option = Opt { number: OptionNumber::OBSERVE, value: &counter[1..] };
                (Opening::Notification(token), [option], Code::CONTENT)
            }
            None => {
                let option = Opt { number: OptionNumber::URI_PATH, value: &self.model.path };
                let code = if payload.is_empty() { Code::GET } else { Code::PUT };
                (Opening::Request(self.model.reliability), [option], code)
            }
        };
        let content = Content { code, options: &options, payload };
        let to = server_in_turn(number / self.model.requests_each);
        let exchanges = &mut self.exchanges;
        let taken = match &mut self.protected {
            None => exchanges.ask(now, to, opening, &content, number),
            Some(protected) => protected
                .protect(number, &content, |outer| exchanges.ask(now, to, opening, outer, number))
                .unwrap_or(false),
        };
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
            let taken = outgoing.options.with_slice(None, |options| {
                let content = Content { code: outgoing.code, options, payload: &outgoing.payload };
                self.exchanges.ask(now, server_address(), Opening::default(), &content, number)
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

    fn given_up(&mut self, now: Instant, number: u32) {
        if let Some(protected) = &mut self.protected {
            protected.ended(number);
        }
        if self.flow.as_mut().is_some_and(|flow| flow.given_up(number)) {
            self.agenda.ask_again();
        }
        if let Some(bodies) = &mut self.bodies {
            bodies.lost(now, number);
            self.agenda.ask_again();
        }
    }

    fn ended(&mut self, now: Instant) {
        self.note_bodies(now);
        if let Some(time) = self.agenda.ended(now) {
            self.exchanges.ledger.record.fct = time;
        }
    }
}

impl Host for Client {
    fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    fn ledger(&self) -> &ExchangeLedger {
        &self.exchanges.ledger
    }

    fn ledger_mut(&mut self) -> &mut ExchangeLedger {
        &mut self.exchanges.ledger
    }

    fn flow(&mut self) -> Option<&mut MessageFlow> {
        self.flow.as_deref_mut()
    }

    fn act(&mut self, now: Instant) {
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
                NextAction::Request => {
                    self.make_request(now);
                }
                NextAction::NewDevice => self.exchanges.endpoint.forget(server_address().into()),
                NextAction::Wait => return,
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.exchanges.endpoint.handle_timeout(now);
        if self.bodies.as_ref().and_then(|bodies| bodies.wait()).is_some_and(|at| at <= now) {
            self.transfer(now);
        }
    }

    fn finish(&mut self) {
        self.exchanges.finish();
    }

    fn continue_transfer(&mut self, now: Instant) {
        self.transfer(now);
    }

    fn is_punctual(&self) -> bool {
        self.flow.is_none()
    }

    fn swap_buffers(&mut self, other: &mut OutputBuffers) {
        swap_buffers(&mut self.exchanges.endpoint, other);
    }

    fn measured(&self) -> Option<Measured> {
        self.exchanges.endpoint.measured(server_address().into())
    }

    fn observe_before(&mut self, devices: &mut ConstantServer) {
        let number = self.number();
        self.observer = observe_before(number, &mut self.exchanges.endpoint, devices);
    }

    fn regain_power(&mut self, now: Instant, requests: u32) {
        self.agenda.ask_more(requests);
        if !self.agenda.is_clocked() {
            return self.act(now);
        }
        for _ in 0..requests {
            self.make_request(now);
        }
    }

    fn skip_requests(&mut self) {
        for _ in 0..self.agenda.at_once() {
            self.agenda.skip();
        }
    }

    fn report_event(&mut self, now: Instant) {
        if let Some(bodies) = &mut self.bodies {
            bodies.report_event();
        }
        self.transfer(now);
    }

    fn note_loss(&mut self, cause: Cause) {
        if let Some(bodies) = &mut self.bodies {
            bodies.note_loss(cause);
        }
    }

    fn messages(&self) -> Messages {
        self.bodies.as_ref().and_then(|bodies| bodies.messages()).unwrap_or_default()
    }

    fn read_ahead(&self, part: MemoryPart) -> u64 {
        let of_exchanges = self.exchanges.read_ahead(part);
        if part != MemoryPart::Own {
            return of_exchanges;
        }
        let options = u32::from(self.bodies.is_some()) ^ u32::from(self.observer.is_some());
        let agenda = self.agenda.open() ^ u32::from(self.agenda.has_more());
        of_exchanges ^ u64::from(agenda ^ options)
    }
}

impl<R: Recorder> ObservedHost<R> for Client {
    fn receive(&mut self, now: Instant, packet: ArrivingPacket<'_>, recorder: &mut R) -> bool {
        let ArrivingPacket { bytes, tag, is_marked } = packet;
        let from = self.server(tag.exchange);
        let arrival = Arrival { congestion_experienced: is_marked, ..from.into() };
        let (bodies, protected) = (&mut self.bodies, &self.protected);
        let read = |message: &Message<'_>| {
            if let Some(bodies) = bodies {
                bodies.answered(now, tag.exchange, message);
            }
            match protected {
                None => Some(message.payload().len() as u64),
                Some(protected) => protected.verify(tag.exchange, message),
            }
        };
        let ended = self.exchanges.receive_and_read(now, arrival, bytes, tag, recorder, read);
        let Some(ended) = ended else { return false };
        if let Some(protected) = &mut self.protected {
            protected.ended(ended.number);
        }
        if let Some(bodies) = &mut self.bodies {
            bodies.note_early(ended.early);
        }
        if ended.answered {
            let record = &mut self.exchanges.ledger.record;
            record.payload_bytes += self.model.payload.len() as u64;
            let (after, in_time) = self.agenda.answered(now, ended.made);
            recorder.answered_after(after);
            record.in_time += u32::from(in_time);
        } else {
            self.given_up(now, ended.number);
        }
        self.ended(now);
        true
    }

    fn lose_power(&mut self, now: Instant, rng: CompactChaCha, recorder: &mut R) {
        let interrupted = self.exchanges.restart(now, self.model.config.clone(), rng, recorder);
        for _ in 0..interrupted {
            self.ended(now);
        }
    }

    fn drain(
        &mut self,
        now: Instant,
        recorder: &mut R,
        send: &mut dyn FnMut(&mut R, &[u8], Tag),
    ) -> (Option<Instant>, bool) {
        let (mut wants_to_act, number) = (false, self.number());
        loop {
            match self.exchanges.poll(now, recorder) {
                HostOutput::Leaves { datagram, tag } => {
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
                HostOutput::Failed(ended) => {
                    self.given_up(now, ended.number);
                    self.ended(now);
                    wants_to_act = true;
                }
                HostOutput::Other => {}
                HostOutput::Wait(at) => {
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
}
