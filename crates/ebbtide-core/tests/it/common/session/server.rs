//! A server: an endpoint, a session, and an application that answers now, later or never.

use super::super::split_mix::SplitMix;
use super::Flying;
use super::body::{answer, mix, number, pattern, request_length, state};
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Incoming, Output, Received as Datagram, Reliability, Remember,
};
use ebbtide_core::params::Parameters;
use ebbtide_core::session::server::{
    Handled, Next, Observe, Outgoing, PendingRequest, RequestSlot, Server, ServerState,
    SessionConfig,
};
use ebbtide_core::session::{Finished, NotSent, ObserverId, Observers, Response, Room, Subject};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, encode_uint};
use ebbtide_core::{PeerId, PeerToken};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

pub(crate) const ADDRESS: PeerId = PeerId::Address(SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
    5683,
));
const SUBJECT: Subject = Subject { id: 1, confirmable: false };
pub(crate) const MAX_OBSERVERS: usize = 6;
/// Of a body in blocks.
const MAX_BODY: usize = 1500;

/// A request that waits, and what it will be answered.
struct Waiting {
    request: PendingRequest,
    message: (PeerId, MessageId),
    /// When it arrived. After EXCHANGE_LIFETIME the message ID may name another request.
    since: Instant,
    response: Response,
}

/// A notification under way.
struct Notification {
    observer: ObserverId,
    whom: (PeerId, PeerToken),
}

pub(crate) struct ServerSide {
    pub(crate) endpoint: Endpoint,
    pub(crate) session: Server<RefCell<ServerState>>,
    pub(crate) observers: Observers,
    pub(crate) timeout: Option<Instant>,
    limits: ebbtide_core::endpoint::Limits,
    waiting: Vec<Waiting>,
    /// Answers that found no room.
    unsent: Vec<Finished>,
    notifications: BTreeMap<ExchangeId, Notification>,
    /// Who has acknowledged a notification under this token.
    shown: BTreeSet<(PeerId, Vec<u8>)>,
    pub(crate) version: u8,
    /// For which POST the handler ran, by number and address.
    ran: BTreeSet<(u32, PeerId)>,
    /// Its own requests to clients, and the number of each.
    asked: BTreeMap<ExchangeId, u32>,
    /// Of those, the ones that were answered.
    pub(crate) heard: u32,
}

impl ServerSide {
    pub(crate) fn new(endpoint: EndpointConfig, session: SessionConfig, seed: u64) -> Self {
        let tables = ServerState::new(&session, Box::new(SplitMix(seed ^ 1)));
        Self {
            limits: endpoint.limits,
            endpoint: Endpoint::new(endpoint, Box::new(SplitMix(seed ^ 2))),
            session: Server::new(session, RefCell::new(tables)),
            observers: Observers::new(seed),
            timeout: None,
            waiting: Vec::new(),
            unsent: Vec::new(),
            notifications: BTreeMap::new(),
            shown: BTreeSet::new(),
            version: 0,
            ran: BTreeSet::new(),
            asked: BTreeMap::new(),
            heard: 0,
        }
    }

    pub(crate) fn waits(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_idle(&self) -> bool {
        let is_idle = self.waiting.is_empty() && self.unsent.is_empty();
        is_idle && self.notifications.is_empty() && self.asked.is_empty()
    }

    pub(crate) fn receive(&mut self, now: Instant, from: PeerId, datagram: &[u8]) {
        let much = self.endpoint.is_dedup_half_full();
        let mut vouched = true;
        let session = &self.session;
        let received = self.endpoint.receive(now, from.into(), datagram, |_, message| {
            let remember = session.remember(now, from, message, much);
            vouched = remember != Remember::No;
            remember
        });
        match received {
            Datagram::Request(incoming, message) => self.request(now, incoming, message, vouched),
            Datagram::Acknowledged { exchange, .. } => {
                if let Some(notification) = self.ended(exchange) {
                    let (remote, token) = notification.whom;
                    self.shown.insert((remote, token.as_slice().to_vec()));
                    self.observers.acknowledged(notification.observer);
                }
            }
            // The other role: a client answers.
            Datagram::Response { exchange, message, .. } => {
                let number = self.asked.remove(&exchange).expect("answered once, while open");
                assert_eq!(message.payload(), number.to_be_bytes(), "of another request");
                self.heard += 1;
            }
            Datagram::Reset { exchange, .. } => {
                self.asked.remove(&exchange);
                if let Some(notification) = self.ended(exchange) {
                    self.observers.remove(notification.observer);
                }
            }
            Datagram::Ignored(_) => {}
            other => panic!("a server is not answered: {other:?}"),
        }
    }

    fn request(&mut self, now: Instant, incoming: Incoming, message: Message<'_>, vouched: bool) {
        let sizes = self.session.datagram_sizes();
        let (copy, mut place) = ((incoming.remote, incoming.id), RequestSlot::new());
        let received = place.datagram(incoming, message, sizes, 0, None, false);
        if !vouched {
            let challenge = self.session.challenge(now, &received);
            return self.send(now, Outgoing::One(challenge));
        }
        let verified = match self.session.receive(now, received) {
            Next::Proceed(verified) => verified,
            Next::Handled(handled) => return self.complete(now, handled),
            Next::Send(outgoing) => return self.send(now, outgoing),
        };
        let path = verified.message().path().next().unwrap_or_default().to_vec();
        if !matches!(path.as_slice(), b"state" | b"echo") {
            let handled = verified.refuse(Response::new(Code::NOT_FOUND));
            return self.complete(now, handled);
        }
        let assembled = match self.session.assemble(now, verified.permit(MAX_BODY)) {
            Next::Proceed(assembled) => assembled,
            Next::Handled(_) => panic!("a body that is assembled is not answered before"),
            Next::Send(outgoing) => return self.send(now, outgoing),
        };
        let code = assembled.message().code();
        if path == b"state" {
            let handled = assembled.handled(Response::content(state(self.version)));
            return self.complete(now, handled);
        }
        let lifetime = Parameters::default().exchange_lifetime();
        let handled = self.waiting.iter().any(|waiting| {
            waiting.message == copy && now.saturating_since(waiting.since) < lifetime
        });
        assert!(!handled, "the handler is called for a copy of a request under way: {copy:?}");
        let body = assembled.body();
        let Some(number) = number(body) else { panic!("{code} with {body:02x?}") };
        assert!(body == pattern(number, request_length(number)), "{number}: {} bytes", body.len());
        if code == Code::POST {
            let whose = (number, copy.0);
            assert!(self.ran.insert(whose), "the handler ran again for POST {whose:?}");
        }
        let fate = mix(number) >> 16;
        let answers = match code {
            Code::FETCH => Code::CONTENT,
            _ => Code::CHANGED,
        };
        let response = match fate % 16 {
            0 => Response::error(Code::FORBIDDEN, "no"),
            1 => Response::new(Code::INTERNAL_SERVER_ERROR).payload(vec![b'!'; 200]),
            _ => Response::new(answers).payload(answer(number)),
        };
        match fate >> 4 & 7 {
            0..3 => {
                let request = assembled.into_pending(now, &mut self.endpoint);
                self.waiting.push(Waiting { request, message: copy, since: now, response });
            }
            3 => {}
            _ => self.complete(now, assembled.handled(response)),
        }
    }

    fn complete(&mut self, now: Instant, handled: Handled<'_, '_>) {
        let mut handled = handled;
        let observe = Observe {
            observers: &mut self.observers,
            subject: SUBJECT,
            max: MAX_OBSERVERS,
            missed_a_change: false,
        };
        let outgoing = self.session.complete(now, &mut handled, Some(observe));
        self.send(now, outgoing);
    }

    fn send(&mut self, now: Instant, outgoing: Outgoing<'_>) {
        while let Some(superseded) = self.observers.pop_superseded() {
            self.endpoint.cancel(now, superseded);
            assert!(self.ended(superseded).is_some(), "it was under way");
        }
        outgoing.iter().for_each(|finished| self.send_one(now, finished.to_owned()));
    }

    fn send_one(&mut self, now: Instant, finished: Finished) {
        match finished.as_borrowed().send(now, &mut self.endpoint) {
            Ok(Some(exchange)) => {
                let allowance = finished.requester().allowance;
                self.endpoint.limit_transmissions(exchange, allowance);
            }
            Ok(None) => {}
            Err(error) if NotSent::is_for_want_of_room(error) => self.unsent.push(finished),
            Err(error) => panic!("{error}: {finished:?}"),
        }
    }

    /// Asks a client, which has the role of a server then.
    pub(crate) fn ask(&mut self, now: Instant, client: PeerId, number: u32) {
        let options = [Opt { number: OptionNumber::URI_PATH, value: b"role" }];
        let payload = &number.to_be_bytes();
        let content = Content { code: Code::FETCH, options: &options, payload };
        let how = match number % 4 {
            0 => Reliability::NonConfirmable,
            _ => Reliability::Confirmable,
        };
        if let Ok(exchange) = self.endpoint.request(now, client, &content, how) {
            assert!(self.asked.insert(exchange, number).is_none(), "a name given twice");
        }
    }

    /// One that waits is acknowledged.
    pub(crate) fn acknowledge(&mut self, now: Instant, at: usize) {
        let Some(waiting) = self.waiting.get_mut(at) else { return };
        let acknowledgement = waiting.request.acknowledge();
        self.send_one(now, acknowledgement);
    }

    /// One that waits is answered.
    pub(crate) fn answer(&mut self, now: Instant, at: usize) {
        if at < self.waiting.len() {
            let Waiting { request, response, .. } = self.waiting.remove(at);
            self.complete(now, request.handled(response));
        }
    }

    /// The resource changes.
    pub(crate) fn change(&mut self) {
        self.version = self.version.wrapping_add(1);
        self.observers.changed(SUBJECT.id);
    }

    fn notify(&mut self, now: Instant) {
        while let Some(due) = self.observers.pop_due(now) {
            let shown = self.shown.contains(&(due.remote, due.token.as_slice().to_vec()));
            assert!(!due.proven || shown, "{:?} was proven by another", due.remote);
            let request = Message::parse(&due.request).unwrap();
            let sizes = self.session.datagram_sizes();
            let response = Response::content(state(self.version));
            let response = self.session.size_notification(now, &due, &request, response, sizes);
            let mut value = [0; 4];
            let value = encode_uint(due.sequence, &mut value);
            // An error ends the observation (RFC 7641 section 4.2).
            let goes_on = response.is_success();
            let observe = goes_on.then_some(Opt { number: OptionNumber::OBSERVE, value });
            let how = match due.confirmable || !goes_on {
                true => Reliability::Confirmable,
                false => Reliability::NonConfirmable,
            };
            let mut length = 0;
            let sent = response.with_content(observe, |content| {
                length = 4 + due.token.encoded_len() + content.encoded_len();
                self.endpoint.notify(now, due.remote, &due.token, content, how)
            });
            match sent {
                Ok(exchange) => {
                    if !due.proven {
                        let allowance = self.session.notification_allowance(&due, length);
                        self.endpoint.limit_transmissions(exchange, allowance);
                    }
                    if !goes_on {
                        self.observers.remove(due.observer);
                    } else if due.confirmable {
                        self.observers.sent(&due, exchange);
                        let notification = Notification {
                            observer: due.observer,
                            whom: (due.remote, due.token.clone()),
                        };
                        let before = self.notifications.insert(exchange, notification);
                        assert!(before.is_none(), "a name given twice");
                    } else {
                        self.observers.arrived(due.observer);
                    }
                }
                Err(_) => {
                    let scope = self.endpoint.scope_of(due.remote);
                    self.observers.postponed(due.observer, due.event, Room::Scope(scope));
                }
            }
        }
    }

    fn ended(&mut self, exchange: ExchangeId) -> Option<Notification> {
        let notification = self.notifications.remove(&exchange);
        if let Some(notification) = &notification {
            self.observers.room(self.endpoint.scope_of(notification.whom.0));
        }
        notification
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        if self.session.poll_timeout().is_some_and(|at| at <= now) {
            for finished in self.session.handle_timeout(now) {
                self.send_one(now, finished);
            }
        }
    }

    /// Fetches all output.
    pub(crate) fn settle(&mut self, now: Instant, wire: &mut Vec<Flying>) {
        for finished in std::mem::take(&mut self.unsent) {
            self.send_one(now, finished);
        }
        self.notify(now);
        loop {
            match self.endpoint.poll_output() {
                Output::Transmit(transmit) => {
                    let bytes = transmit.datagram.to_vec();
                    wire.push(Flying { from: ADDRESS, to: transmit.to, bytes, sent: now });
                }
                Output::Event(Event::Failed { exchange, .. }) => {
                    self.asked.remove(&exchange);
                    if let Some(notification) = self.ended(exchange) {
                        self.observers.lost(notification.observer);
                    }
                }
                Output::Event(_) => {}
                Output::Timeout(at) => {
                    self.timeout = at.into_iter().chain(self.session.poll_timeout()).min();
                    break;
                }
            }
        }
        self.check(now);
    }

    fn check(&self, now: Instant) {
        let (load, config) = (self.session.load(now), self.session.config());
        assert!(load.withheld <= config.max_withheld, "{load:?}");
        assert!(load.block_bytes <= 2 * config.max_block_bytes, "{load:?}");
        assert!(load.verified <= config.max_addresses, "{load:?}");
        assert!(self.endpoint.remembered() <= self.limits.remembered_messages);
        assert!(self.endpoint.peers() <= self.limits.peers);
        assert!(self.endpoint.open_exchanges() <= self.limits.exchanges);
        assert!(self.observers.len() <= MAX_OBSERVERS);
    }
}
