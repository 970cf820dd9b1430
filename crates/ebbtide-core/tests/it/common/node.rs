//! One endpoint whose every output is recorded, and messages written by hand to send to it.

use super::{at, seeded};
use ebbtide_core::ExchangeId;
use ebbtide_core::PeerId;
use ebbtide_core::cc::{ControlConfig, Sample};
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Failure, Ignored, Incoming, Output, Received, Reliability,
    SendError, Sent,
};
use ebbtide_core::time::{Duration, Instant, Micros};
use ebbtide_core::wire::{
    Code, Content, Message, MessageId, Opt, OptionNumber, Type, encoded_token_len,
};
use rand_core::Rng;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The other side, unless a test needs several.
pub(crate) const PEER: PeerId = peer(2);

/// The default number of Rexmit-Cnt.
pub(crate) const COUNT: u16 = 65020;

pub(crate) const fn peer(last: u8) -> PeerId {
    address(last, 5683)
}

/// The program at another port of [`PEER`]'s host.
pub(crate) const fn peer_at(port: u16) -> PeerId {
    address(2, port)
}

const fn address(last: u8, port: u16) -> PeerId {
    PeerId::Address(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port))
}

/// A datagram that the endpoint wanted sent.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) at: Instant,
    pub(crate) to: PeerId,
    pub(crate) bytes: Vec<u8>,
    pub(crate) what: Sent,
}

impl Datagram {
    pub(crate) fn message(&self) -> Message<'_> {
        Message::parse(&self.bytes).expect("an endpoint sends only messages")
    }
    pub(crate) fn kind(&self) -> Type {
        self.message().kind()
    }
    pub(crate) fn code(&self) -> Code {
        self.message().code()
    }
    pub(crate) fn id(&self) -> u16 {
        self.message().message_id().0
    }
    pub(crate) fn token(&self) -> Vec<u8> {
        self.message().token_bytes().to_vec()
    }
    pub(crate) fn option(&self, number: u16) -> Option<Vec<u8>> {
        self.message().option(OptionNumber(number)).map(|opt| opt.value.to_vec())
    }
    pub(crate) fn ordinal(&self) -> u8 {
        match self.what {
            Sent::Exchange { ordinal, .. } => ordinal,
            Sent::Reply | Sent::Probe { .. } => panic!("no transmission of an exchange: {self:?}"),
        }
    }
    /// Whether congestion control sent it as a probe.
    pub(crate) fn is_probe(&self) -> bool {
        matches!(self.what, Sent::Probe { .. })
    }
    pub(crate) fn timeout(&self) -> Micros {
        match self.what {
            Sent::Exchange { timeout, .. } | Sent::Probe { timeout, .. } => timeout,
            Sent::Reply => panic!("no transmission of an exchange: {self:?}"),
        }
    }
    /// Type, code and ID in one value to compare with.
    pub(crate) fn head(&self) -> (Type, Code, u16) {
        (self.kind(), self.code(), self.id())
    }
    /// An empty ACK of it.
    pub(crate) fn ack(&self) -> Vec<u8> {
        message(Type::Acknowledgement, Code::EMPTY, self.id(), &[], &[], b"")
    }
    /// A Reset of it.
    pub(crate) fn rst(&self) -> Vec<u8> {
        message(Type::Reset, Code::EMPTY, self.id(), &[], &[], b"")
    }
    /// A piggybacked 2.05 to it, with its token.
    pub(crate) fn answer(&self) -> Vec<u8> {
        message(Type::Acknowledgement, Code::CONTENT, self.id(), &self.token(), &[], b"22.5")
    }
    /// A separate 2.05 to it, with its token.
    pub(crate) fn separate(&self, kind: Type, id: u16) -> Vec<u8> {
        message(kind, Code::CONTENT, id, &self.token(), &[], b"22.5")
    }
}

/// The bytes of a message; options in order.
pub(crate) fn message(
    kind: Type,
    code: Code,
    id: u16,
    token: &[u8],
    options: &[(u16, &[u8])],
    payload: &[u8],
) -> Vec<u8> {
    let options: Vec<Opt<'_>> = options
        .iter()
        .map(|&(number, value)| Opt { number: OptionNumber(number), value })
        .collect();
    let content = Content { code, options: &options, payload };
    let mut bytes = vec![0; 4 + encoded_token_len(token.len()) + content.encoded_len()];
    content.encode(&mut bytes, kind, MessageId(id), token).expect("it fits");
    bytes
}

/// What a datagram turned out to be, without borrowing it.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "a test that fails prints all of it")]
pub(crate) enum Got {
    Request(Incoming),
    Response { exchange: ExchangeId, sample: Option<Sample>, code: Code, payload: Vec<u8> },
    Notification { exchange: ExchangeId, sample: Option<Sample>, code: Code, payload: Vec<u8> },
    Acknowledged { exchange: ExchangeId, sample: Sample },
    Reset { exchange: ExchangeId, sample: Option<Sample> },
    Ignored(Ignored),
}

impl From<Received<'_>> for Got {
    fn from(received: Received<'_>) -> Self {
        match received {
            Received::Request(incoming, _) => Self::Request(incoming),
            Received::Response { exchange, sample, message } => Self::Response {
                exchange,
                sample,
                code: message.code(),
                payload: message.payload().to_vec(),
            },
            Received::Notification { exchange, sample, message } => Self::Notification {
                exchange,
                sample,
                code: message.code(),
                payload: message.payload().to_vec(),
            },
            Received::Acknowledged { exchange, sample } => Self::Acknowledged { exchange, sample },
            Received::Reset { exchange, sample } => Self::Reset { exchange, sample },
            Received::Ignored(reason) => Self::Ignored(reason),
        }
    }
}

impl Got {
    pub(crate) fn request(self) -> Incoming {
        match self {
            Self::Request(incoming) => incoming,
            other => panic!("no request: {other:?}"),
        }
    }
    /// The sample of the response to `expected`.
    pub(crate) fn response_to(self, expected: ExchangeId) -> Option<Sample> {
        match self {
            Self::Response { exchange, sample, .. } if exchange == expected => sample,
            other => panic!("no response to {expected:?}: {other:?}"),
        }
    }
    pub(crate) fn ignored(self) -> Ignored {
        match self {
            Self::Ignored(reason) => reason,
            other => panic!("not ignored: {other:?}"),
        }
    }
}

/// The content of a request or response without options.
pub(crate) const fn content(code: Code, payload: &[u8]) -> Content<'_> {
    Content { code, options: &[], payload }
}

/// An endpoint, its clock, and all that came out of it.
pub(crate) struct Node {
    pub(crate) ep: Endpoint,
    pub(crate) now: Instant,
    /// Since the last call of [`Node::take`].
    pub(crate) sent: Vec<Datagram>,
    pub(crate) failed: Vec<(Instant, ExchangeId, Failure)>,
    /// The peers for which messages began to wait for message IDs, and how long.
    pub(crate) without_ids: Vec<(PeerId, Duration)>,
    pub(crate) timeout: Option<Instant>,
}

impl Node {
    pub(crate) fn new(config: EndpointConfig) -> Self {
        Self::with_rng(config, seeded(7))
    }

    pub(crate) fn with_rng(config: EndpointConfig, rng: Box<dyn Rng + Send>) -> Self {
        Self {
            ep: Endpoint::new(config, rng),
            now: at(10.0),
            sent: Vec::new(),
            failed: Vec::new(),
            without_ids: Vec::new(),
            timeout: None,
        }
    }

    /// An endpoint under the control that `text` names, which draws the least of everything.
    pub(crate) fn under(text: &str) -> Self {
        Self::with_rng(config(text), super::Constant::lowest())
    }

    /// The same without the floor of patience: the control's own timeouts to the end.
    pub(crate) fn impatient(text: &str) -> Self {
        let mut config = config(text);
        config.study.patience = false;
        Self::with_rng(config, super::Constant::lowest())
    }

    /// Fetches all output.
    pub(crate) fn settle(&mut self) {
        loop {
            match self.ep.poll_output() {
                Output::Transmit(transmit) => self.sent.push(Datagram {
                    at: self.now,
                    to: transmit.to,
                    bytes: transmit.datagram.to_vec(),
                    what: transmit.what,
                }),
                Output::Event(Event::Failed { exchange, reason }) => {
                    self.failed.push((self.now, exchange, reason));
                }
                Output::Event(Event::NoMessageId { remote, wait }) => {
                    self.without_ids.push((remote, wait));
                }
                Output::Event(_) => {}
                Output::Timeout(timeout) => {
                    self.timeout = timeout;
                    return;
                }
            }
        }
    }

    /// Lets time pass until `seconds` on the clock, timers included.
    pub(crate) fn run_until(&mut self, seconds: f64) {
        let end = at(seconds);
        self.settle();
        while let Some(due) = self.timeout.filter(|&due| due <= end) {
            self.now = self.now.max(due);
            self.ep.handle_timeout(self.now);
            self.settle();
        }
        self.now = end;
    }

    /// Lets `seconds` pass.
    pub(crate) fn wait(&mut self, seconds: f64) {
        let end = self.now + super::secs(seconds);
        self.run_until(end.as_nanos() as f64 / 1e9);
    }

    pub(crate) fn try_request(
        &mut self,
        to: PeerId,
        content: &Content<'_>,
        reliability: Reliability,
    ) -> Result<ExchangeId, SendError> {
        let result = self.ep.request(self.now, to, content, reliability);
        self.settle();
        result
    }

    /// A Confirmable GET to [`PEER`].
    pub(crate) fn get(&mut self) -> ExchangeId {
        self.get_from(PEER)
    }

    pub(crate) fn get_from(&mut self, to: PeerId) -> ExchangeId {
        self.try_request(to, &content(Code::GET, b""), Reliability::Confirmable).expect("accepted")
    }

    /// A Non-confirmable GET to [`PEER`].
    pub(crate) fn non_get(&mut self) -> ExchangeId {
        let get = content(Code::GET, b"");
        self.try_request(PEER, &get, Reliability::NonConfirmable).expect("accepted")
    }

    pub(crate) fn cancel(&mut self, exchange: ExchangeId) {
        self.ep.cancel(self.now, exchange);
        self.settle();
    }

    pub(crate) fn acknowledge(&mut self, incoming: &mut Incoming) {
        self.ep.acknowledge(self.now, incoming);
        self.settle();
    }

    /// Answers 2.05 with this payload.
    pub(crate) fn respond(&mut self, incoming: &Incoming, payload: &[u8]) -> Option<ExchangeId> {
        let content = content(Code::CONTENT, payload);
        let result = self.ep.respond(self.now, incoming, &content).expect("accepted");
        self.settle();
        result
    }

    /// A datagram arrives from [`PEER`].
    pub(crate) fn arrive(&mut self, datagram: &[u8]) -> Got {
        self.arrive_from(PEER, datagram)
    }

    pub(crate) fn arrive_from(&mut self, from: PeerId, datagram: &[u8]) -> Got {
        let got = self.ep.handle_datagram(self.now, from, datagram).into();
        self.settle();
        got
    }

    /// What was sent since the last call.
    pub(crate) fn take(&mut self) -> Vec<Datagram> {
        std::mem::take(&mut self.sent)
    }

    /// The one datagram that was sent since the last call.
    pub(crate) fn one(&mut self) -> Datagram {
        let mut sent = self.take();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// The failures since the last call, without their times.
    pub(crate) fn failures(&mut self) -> Vec<(ExchangeId, Failure)> {
        self.failed.drain(..).map(|(_, exchange, reason)| (exchange, reason)).collect()
    }

    /// Nothing is open, and no timer runs.
    #[track_caller]
    pub(crate) fn assert_free(&mut self) {
        self.settle();
        assert_eq!(self.ep.open_exchanges(), 0);
        assert_eq!(self.timeout, None, "a timer without an exchange");
    }
}

/// The default configuration with another control.
pub(crate) fn config(text: &str) -> EndpointConfig {
    EndpointConfig { control: ControlConfig::parse(text).expect("a control"), ..Default::default() }
}
