//! A server by hand: an endpoint, a session and a handler that counts, without a socket or a clock.

use ebbtide_core::ExchangeId;
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Incoming, Output, Received as Datagram, Reliability, Remember,
};
use ebbtide_core::session::server::{
    Next, Observe, Outgoing, PendingRequest, RequestSlot, Server, ServerState, SessionConfig,
};
use ebbtide_core::session::{Finished, ObserverId, Observers, Response, Room, Subject, Verify};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{
    Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type, encode_uint,
};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::cell::RefCell;
use std::net::SocketAddr;

pub(crate) const SUBJECT: Subject = Subject { id: 1, confirmable: true };
/// Bytes of IPv4 and UDP headers.
pub(crate) const HEADERS: usize = 28;

pub(crate) fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

pub(crate) fn peer(last: u8) -> PeerId {
    PeerId::Address(SocketAddr::from(([192, 0, 2, last], 5683)))
}

/// What the application does with a request.
pub(crate) enum Does {
    Answers(Response),
    /// Answers later, when the test says so.
    Waits,
}

type Handler = Box<dyn FnMut(&Message<'_>, &[u8]) -> Does>;

pub(crate) struct Bench {
    pub(crate) endpoint: Endpoint,
    pub(crate) session: Server<RefCell<ServerState>>,
    pub(crate) observers: Observers,
    pub(crate) now: Instant,
    pub(crate) max_body: usize,
    pub(crate) max_observers: usize,
    pub(crate) pending: Vec<PendingRequest>,
    /// All that left, and to whom.
    pub(crate) log: Vec<(PeerId, Vec<u8>)>,
    /// Notifications under way.
    notifications: Vec<(ExchangeId, ObserverId)>,
    /// How often the application was asked.
    pub(crate) calls: usize,
    handler: Handler,
}

impl Bench {
    pub(crate) fn new(
        change: impl FnOnce(&mut SessionConfig),
        handler: impl FnMut(&Message<'_>, &[u8]) -> Does + 'static,
    ) -> Self {
        let mut config = SessionConfig { verify: Verify::All, ..SessionConfig::default() };
        change(&mut config);
        let rng = |seed| Box::new(ChaCha8Rng::seed_from_u64(seed));
        let tables = RefCell::new(ServerState::new(&config, rng(1)));
        Self {
            endpoint: Endpoint::new(EndpointConfig::default(), rng(2)),
            session: Server::new(config, tables),
            observers: Observers::new(3),
            now: at(100),
            max_body: usize::MAX,
            max_observers: 1000,
            pending: Vec::new(),
            log: Vec::new(),
            notifications: Vec::new(),
            calls: 0,
            handler: Box::new(handler),
        }
    }

    /// Takes a datagram; what leaves because of it.
    pub(crate) fn take(&mut self, from: PeerId, datagram: &[u8]) -> Vec<Vec<u8>> {
        let (now, much) = (self.now, self.endpoint.is_dedup_half_full());
        let mut vouched = true;
        let session = &self.session;
        let received = self.endpoint.receive(now, from.into(), datagram, |_, message| {
            let remember = session.remember(now, from, message, much);
            vouched = remember != Remember::No;
            remember
        });
        match received {
            Datagram::Request(incoming, message) => self.request(incoming, message, vouched),
            Datagram::Acknowledged { exchange, .. } => {
                if let Some(observer) = self.ended(exchange) {
                    self.observers.acknowledged(observer);
                }
            }
            Datagram::Reset { exchange, .. } => {
                if let Some(observer) = self.ended(exchange) {
                    self.observers.remove(observer);
                }
            }
            Datagram::Ignored(_) => {}
            other => panic!("{other:?}"),
        }
        self.drain()
    }

    fn request(&mut self, incoming: Incoming, message: Message<'_>, vouched: bool) {
        let sizes = self.session.datagram_sizes();
        let mut place = RequestSlot::new();
        let received = place.datagram(incoming, message, sizes, 0, None, false);
        if !vouched {
            let challenge = self.session.challenge(self.now, &received);
            return self.send(Outgoing::One(challenge));
        }
        let verified = match self.session.receive(self.now, received) {
            Next::Proceed(verified) => verified,
            Next::Handled(mut handled) => {
                let outgoing = self.session.complete(self.now, &mut handled, None);
                return self.send(outgoing);
            }
            Next::Send(outgoing) => return self.send(outgoing),
        };
        let max_body = self.max_body;
        let assembled = match self.session.assemble(self.now, verified.permit(max_body)) {
            Next::Proceed(assembled) => assembled,
            Next::Handled(_) => panic!("a body that is assembled is not answered before"),
            Next::Send(outgoing) => return self.send(outgoing),
        };
        self.calls += 1;
        match (self.handler)(assembled.message(), assembled.body()) {
            Does::Waits => {
                let pending = assembled.into_pending(self.now, &mut self.endpoint);
                self.pending.push(pending);
            }
            Does::Answers(response) => {
                let mut handled = assembled.handled(response);
                let observe = Observe {
                    observers: &mut self.observers,
                    subject: SUBJECT,
                    max: self.max_observers,
                    missed_a_change: false,
                };
                let outgoing = self.session.complete(self.now, &mut handled, Some(observe));
                self.send(outgoing);
            }
        }
    }

    fn send(&mut self, outgoing: Outgoing<'_>) {
        let (now, endpoint) = (self.now, &mut self.endpoint);
        while let Some(superseded) = self.observers.pop_superseded() {
            endpoint.cancel(now, superseded);
            self.notifications.retain(|(exchange, _)| *exchange != superseded);
        }
        outgoing.iter().for_each(|finished| {
            if let Some(exchange) = finished.send(now, endpoint).unwrap() {
                endpoint.limit_transmissions(exchange, finished.requester().allowance);
            }
        });
    }

    pub(crate) fn send_one(&mut self, finished: &Finished) {
        finished.as_borrowed().send(self.now, &mut self.endpoint).unwrap();
    }

    /// The first request that waits is answered.
    pub(crate) fn answer(&mut self, response: Response) -> Vec<Vec<u8>> {
        let mut handled = self.pending.remove(0).handled(response);
        let observe = Observe {
            observers: &mut self.observers,
            subject: SUBJECT,
            max: self.max_observers,
            missed_a_change: false,
        };
        let outgoing = self.session.complete(self.now, &mut handled, Some(observe));
        self.send(outgoing);
        self.drain()
    }

    fn ended(&mut self, exchange: ExchangeId) -> Option<ObserverId> {
        let at = self.notifications.iter().position(|(known, _)| *known == exchange)?;
        Some(self.notifications.swap_remove(at).1)
    }

    /// Sends the notifications that are due.
    pub(crate) fn notify(&mut self, response: &Response) {
        while let Some(due) = self.observers.pop_due(self.now) {
            let mut value = [0; 4];
            let value = encode_uint(due.sequence, &mut value);
            let observe = Opt { number: OptionNumber::OBSERVE, value };
            let mut length = 0;
            let (now, endpoint) = (self.now, &mut self.endpoint);
            let sent = response.with_content(Some(observe), |content| {
                length = 4 + due.token.encoded_len() + content.encoded_len();
                endpoint.notify(now, due.remote, &due.token, content, Reliability::Confirmable)
            });
            match sent {
                Ok(exchange) => {
                    if !due.proven {
                        let allowance = self.session.notification_allowance(&due, length);
                        self.endpoint.limit_transmissions(exchange, allowance);
                    }
                    self.observers.sent(&due, exchange);
                    self.notifications.push((exchange, due.observer));
                }
                Err(_) => {
                    let scope = self.endpoint.scope_of(due.remote);
                    self.observers.postponed(due.observer, due.event, Room::Scope(scope));
                }
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, to: Instant) {
        while let Output::Timeout(Some(due)) = self.endpoint.poll_output()
            && due <= to
        {
            self.now = due;
            self.endpoint.handle_timeout(due);
            self.drain();
        }
        self.now = to;
    }

    pub(crate) fn drain(&mut self) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        loop {
            match self.endpoint.poll_output() {
                Output::Transmit(transmit) => {
                    self.log.push((transmit.to, transmit.datagram.to_vec()));
                    sent.push(transmit.datagram.to_vec());
                }
                Output::Event(Event::Failed { exchange, .. }) => {
                    if let Some(observer) = self.ended(exchange) {
                        self.observers.lost(observer);
                    }
                }
                Output::Event(_) => {}
                Output::Timeout(_) => return sent,
            }
        }
    }
}

/// A request.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) kind: Type,
    pub(crate) code: Code,
    pub(crate) id: u16,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn ask(code: Code, id: u16, path: &str) -> Ask {
    let options = vec![(11, path.as_bytes().to_vec())];
    Ask { kind: Type::Confirmable, code, id, options, payload: Vec::new() }
}

impl Ask {
    pub(crate) fn option(mut self, number: u16, value: &[u8]) -> Self {
        self.options.push((number, value.to_vec()));
        self
    }

    pub(crate) fn payload(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let options: Vec<_> = self
            .options
            .iter()
            .map(|(number, value)| Opt { number: OptionNumber(*number), value })
            .collect();
        let content = Content { code: self.code, options: &options, payload: &self.payload };
        let mut bytes = vec![0; 16 + content.encoded_len()];
        let token = Token::new(&[self.id as u8, 7]).unwrap();
        let encoded = content.encode(&mut bytes, self.kind, MessageId(self.id), token).unwrap();
        bytes.truncate(encoded.len);
        bytes
    }
}

/// The options of a message, to be compared as a whole.
pub(crate) fn options(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let message = Message::parse(bytes).unwrap();
    message.options().map(|opt| (opt.number.0, opt.value.to_vec())).collect()
}

pub(crate) fn code(bytes: &[u8]) -> Code {
    Message::parse(bytes).unwrap().code()
}

pub(crate) fn echo_of(bytes: &[u8]) -> Vec<u8> {
    let message = Message::parse(bytes).unwrap();
    message.option(OptionNumber::ECHO).expect("a challenge").value.to_vec()
}
