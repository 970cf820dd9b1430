//! Two endpoints and a network that loses, repeats, reorders and damages a tenth of everything:
//! each exchange ends once, nothing that is not idempotent is done twice, and nothing stays open.

use crate::common::seeded;
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Failure, Incoming, Output, Received, Reliability,
};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};
use ebbtide_core::{PeerId, PeerToken};
use rand_core::Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;

/// Clients, each an endpoint with exchanges of its own.
const CLIENTS: usize = 64;
/// Exchanges that one client has open at once.
const OPEN: usize = 4;
const SERVER: PeerId = crate::common::node::peer(200);

fn client_address(n: usize) -> PeerId {
    PeerId::Address(SocketAddr::from(([10, 0, 1, n as u8], 5683)))
}

/// What happens at an instant.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A datagram arrives: from a client, or at one.
    AtServer(usize, Vec<u8>),
    AtClient(usize, Vec<u8>),
    /// A timeout of this endpoint may be due.
    Tick(usize),
    /// A slow handler answers the request in this place.
    Answer(usize),
    /// A client starts something, or gives up on it.
    Start(usize),
    Cancel(usize, ExchangeId),
    /// The observed state changes.
    Change,
}

/// What a client asked for.
#[derive(Debug)]
struct OpenRequest {
    number: u32,
    confirmable: bool,
    observes: bool,
    answers: u32,
}

struct Soak {
    now: Instant,
    sequence: u64,
    queue: BinaryHeap<Reverse<(Instant, u64, Happening)>>,
    luck: Box<dyn Rng + Send>,
    server: Endpoint,
    clients: Vec<Endpoint>,
    open: Vec<BTreeMap<ExchangeId, OpenRequest>>,
    /// When each endpoint, the server last, is woken next.
    armed: Vec<Option<Instant>>,
    slow: Vec<Option<(Incoming, Vec<u8>)>>,
    observers: BTreeMap<(PeerId, Vec<u8>), u32>,
    notifications: BTreeMap<ExchangeId, (PeerId, Vec<u8>)>,
    /// How often the handler of POST ran, by request.
    ran: BTreeMap<u32, u32>,
    started: u32,
    answered: u32,
    failed: u32,
    failed_confirmable: u32,
    cancelled: u32,
    wanted: u32,
}

fn config() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.params.nstart = 2;
    config.params.max_retransmit = 8;
    config.limits.remembered_messages = 1 << 22;
    config.limits.remembered_bytes = 1 << 30;
    config
}

impl Soak {
    fn new(wanted: u32, seed: u64) -> Self {
        let mut soak = Self {
            now: Instant::ZERO,
            sequence: 0,
            queue: BinaryHeap::new(),
            luck: seeded(seed),
            server: Endpoint::new(config(), seeded(seed + 1)),
            clients: (0..CLIENTS as u64)
                .map(|n| Endpoint::new(config(), seeded(seed + 2 + n)))
                .collect(),
            open: (0..CLIENTS).map(|_| BTreeMap::new()).collect(),
            armed: vec![None; CLIENTS + 1],
            slow: Vec::new(),
            observers: BTreeMap::new(),
            notifications: BTreeMap::new(),
            ran: BTreeMap::new(),
            started: 0,
            answered: 0,
            failed: 0,
            failed_confirmable: 0,
            cancelled: 0,
            wanted,
        };
        for n in 0..CLIENTS * OPEN {
            soak.after(n as u64, Happening::Start(n % CLIENTS));
        }
        soak.after(1000, Happening::Change);
        soak
    }

    fn after(&mut self, millis: u64, what: Happening) {
        let at = self.now + Duration::from_nanos(millis * 1_000_000);
        self.at(at, what);
    }

    fn at(&mut self, at: Instant, what: Happening) {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence, what)));
    }

    fn arm(&mut self, endpoint: usize, at: Option<Instant>) {
        let Some(at) = at else { return };
        if self.armed[endpoint].is_none_or(|armed| at < armed) {
            self.armed[endpoint] = Some(at);
            self.at(at, Happening::Tick(endpoint));
        }
    }

    /// Endpoints know by themselves what is due.
    fn tick(&mut self, endpoint: usize) {
        if self.armed[endpoint].is_some_and(|armed| armed <= self.now) {
            self.armed[endpoint] = None;
        }
        if endpoint == CLIENTS {
            self.server.handle_timeout(self.now);
            self.settle_server();
        } else {
            self.clients[endpoint].handle_timeout(self.now);
            self.settle_client(endpoint);
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.luck.next_u32() % 100 < percent
    }

    /// What the network does to a datagram: the copies that arrive, and when.
    fn carry(&mut self, bytes: &[u8], arrive: impl Fn(Vec<u8>) -> Happening) {
        if self.chance(10) {
            return;
        }
        let copies = 1 + u32::from(self.chance(10));
        for copy in 0..copies {
            let mut bytes = bytes.to_vec();
            if copy == 0 && self.chance(10) {
                self.damage(&mut bytes);
            }
            let late = if self.chance(10) { u64::from(self.luck.next_u32() % 3000) } else { 0 };
            self.after(50 + late, arrive(bytes));
        }
    }

    /// Damages a datagram so that its receiver can notice. What it cannot notice, such as another
    /// message ID, UDP's checksum is for.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        match self.luck.next_u32() % 4 {
            0 => bytes[0] ^= 0x80,
            1 => bytes[0] |= 0x0f,
            2 => bytes.truncate(3),
            // A marker and no payload: a Confirmable message is answered with a Reset.
            _ => {
                bytes.truncate(4 + usize::from(bytes[0] & 0x0f));
                bytes.push(0xff);
            }
        }
    }

    /// Fetches what the server wants done.
    fn settle_server(&mut self) {
        loop {
            match self.server.poll_output() {
                Output::Transmit(transmit) => {
                    let PeerId::Address(SocketAddr::V4(to)) = transmit.to else {
                        panic!("{transmit:?}")
                    };
                    let (to, bytes) =
                        (usize::from(to.ip().octets()[3]), transmit.datagram.to_vec());
                    self.carry(&bytes, |bytes| Happening::AtClient(to, bytes));
                }
                // A Non-confirmable notification ends without an answer if all is well.
                Output::Event(Event::Failed { exchange, reason }) => {
                    self.ended(exchange, reason != Failure::NoResponse);
                }
                Output::Event(_) => {}
                Output::Timeout(at) => return self.arm(CLIENTS, at),
            }
        }
    }

    /// A message of the server's own is over.
    fn ended(&mut self, exchange: ExchangeId, gone: bool) {
        if let Some(observer) = self.notifications.remove(&exchange)
            && gone
        {
            self.observers.remove(&observer);
        }
    }

    fn settle_client(&mut self, n: usize) {
        loop {
            match self.clients[n].poll_output() {
                Output::Transmit(transmit) => {
                    let bytes = transmit.datagram.to_vec();
                    self.carry(&bytes, |bytes| Happening::AtServer(n, bytes));
                }
                Output::Event(Event::Failed { exchange, .. }) => {
                    let asked = self.open[n].remove(&exchange).expect("it fails once, while open");
                    self.failed += 1;
                    self.failed_confirmable += u32::from(asked.confirmable);
                    self.after(0, Happening::Start(n));
                }
                Output::Event(_) => {}
                Output::Timeout(at) => return self.arm(n, at),
            }
        }
    }

    fn start(&mut self, n: usize) {
        if self.started >= self.wanted {
            return;
        }
        self.started += 1;
        let number = self.started;
        let payload = number.to_be_bytes();
        let observe = Opt { number: OptionNumber::OBSERVE, value: &[] };
        let slow = Opt { number: OptionNumber::URI_PATH, value: b"slow" };
        let (code, options): (_, &[Opt<'_>]) = match number % 10 {
            0..=3 => (Code::GET, &[]),
            4 | 5 => (Code::POST, &[]),
            6 => (Code::GET, &[slow]),
            7 => (Code::POST, &[slow]),
            _ => (Code::GET, &[observe]),
        };
        let kind = match number % 7 {
            0 => Reliability::NonConfirmable,
            _ => Reliability::Confirmable,
        };
        let client = &mut self.clients[n];
        let exchange = if number.is_multiple_of(13) {
            client.ping(self.now, SERVER)
        } else {
            client.request(self.now, SERVER, &Content { code, options, payload: &payload }, kind)
        };
        let observes = options.contains(&observe);
        let confirmable = kind == Reliability::Confirmable;
        let asked = OpenRequest { number, confirmable, observes, answers: 0 };
        let before = self.open[n].insert(exchange.expect("there is room"), asked);
        assert!(before.is_none(), "a name that is in use");
        if observes {
            self.after(20_000, Happening::Cancel(n, exchange.unwrap()));
        } else if number.is_multiple_of(17) {
            self.after(u64::from(number % 400), Happening::Cancel(n, exchange.unwrap()));
        }
        self.settle_client(n);
    }

    fn at_server(&mut self, n: usize, bytes: &[u8]) {
        let from = client_address(n);
        match self.server.handle_datagram(self.now, from, bytes) {
            Received::Request(mut incoming, message) => {
                if message.code() == Code::POST {
                    let number = u32::from_be_bytes(message.payload().try_into().unwrap());
                    *self.ran.entry(number).or_default() += 1;
                }
                let slow = message.path().next().is_some();
                let token = message.token_bytes().to_vec();
                if message.option(OptionNumber::OBSERVE).is_some() {
                    self.observers.insert((from, token), 1);
                    self.respond(&incoming, true, message.payload());
                } else if slow {
                    self.server.acknowledge(self.now, &mut incoming);
                    self.slow.push(Some((incoming, message.payload().to_vec())));
                    self.after(3000, Happening::Answer(self.slow.len() - 1));
                } else {
                    self.respond(&incoming, false, message.payload());
                }
            }
            Received::Acknowledged { exchange, .. } => self.ended(exchange, false),
            Received::Reset { exchange, .. } => self.ended(exchange, true),
            Received::Response { .. } | Received::Notification { .. } => panic!("it asks nothing"),
            Received::Ignored(_) => {}
        }
        self.settle_server();
    }

    fn respond(&mut self, incoming: &Incoming, observed: bool, payload: &[u8]) {
        let first = [Opt { number: OptionNumber::OBSERVE, value: &[1] }];
        let options = if observed { &first[..] } else { &[] };
        let content = Content { code: Code::CONTENT, options, payload };
        self.server.respond(self.now, incoming, &content).expect("accepted");
    }

    /// Tells every observer, of whom each has one notification under way.
    fn change(&mut self) {
        let idle = |observer: &&(PeerId, Vec<u8>)| {
            !self.notifications.values().any(|busy| busy == *observer)
        };
        let due: Vec<_> = self.observers.keys().filter(idle).cloned().collect();
        for (remote, token) in due {
            let sequence = self.observers.get_mut(&(remote, token.clone())).unwrap();
            *sequence += 1;
            let value = sequence.to_be_bytes();
            let kind = match *sequence % 2 {
                0 => Reliability::Confirmable,
                _ => Reliability::NonConfirmable,
            };
            let options = [Opt { number: OptionNumber::OBSERVE, value: &value[1..] }];
            let content = Content { code: Code::CONTENT, options: &options, payload: b"new" };
            let known = PeerToken::new(&token);
            let sent = self.server.notify(self.now, remote, &known, &content, kind);
            let exchange = sent.expect("accepted");
            self.notifications.insert(exchange, (remote, token));
        }
        self.settle_server();
    }

    fn at_client(&mut self, n: usize, bytes: &[u8]) {
        let over = match self.clients[n].handle_datagram(self.now, SERVER, bytes) {
            Received::Response { exchange, message, .. } => {
                let asked = self.open[n].get_mut(&exchange).expect("answered once, while open");
                let ours = message.payload() == asked.number.to_be_bytes();
                assert!(ours || asked.observes, "another request's answer");
                Some(exchange)
            }
            Received::Notification { exchange, .. } => {
                let asked = self.open[n].get_mut(&exchange).expect("it is being observed");
                assert!(asked.observes);
                asked.answers += 1;
                None
            }
            Received::Reset { exchange, .. } => Some(exchange),
            Received::Acknowledged { exchange, .. } => {
                self.clients[n].has_ended(exchange).then_some(exchange)
            }
            Received::Request(..) => panic!("it serves nothing"),
            Received::Ignored(_) => None,
        };
        if let Some(exchange) = over {
            self.open[n].remove(&exchange).expect("over once");
            self.answered += 1;
            self.after(0, Happening::Start(n));
        }
        self.settle_client(n);
    }

    fn run(&mut self) {
        while let Some(Reverse((at, _, what))) = self.queue.pop() {
            self.now = at;
            match what {
                Happening::AtServer(n, bytes) => self.at_server(n, &bytes),
                Happening::AtClient(n, bytes) => self.at_client(n, &bytes),
                Happening::Start(n) => self.start(n),
                Happening::Tick(endpoint) => self.tick(endpoint),
                Happening::Answer(place) => {
                    let (incoming, payload) = self.slow[place].take().expect("answered once");
                    self.respond(&incoming, false, &payload);
                    self.settle_server();
                }
                Happening::Cancel(n, exchange) => {
                    if let Some(asked) = self.open[n].remove(&exchange) {
                        self.clients[n].cancel(self.now, exchange);
                        self.cancelled += u32::from(asked.answers == 0);
                        self.answered += u32::from(asked.answers > 0);
                        self.settle_client(n);
                        self.after(0, Happening::Start(n));
                    }
                }
                Happening::Change => {
                    self.change();
                    // Observers that the client no longer wants are removed by its Resets.
                    if self.started < self.wanted || !self.observers.is_empty() {
                        self.after(5000, Happening::Change);
                    }
                }
            }
        }
    }
}

fn soak(count: u32, seed: u64) {
    let mut soak = Soak::new(count, seed);
    soak.run();
    println!(
        "{count} exchanges in {} s: {} answered, {} failed ({} of them Confirmable), {} cancelled; {:?}",
        soak.now.as_nanos() / 1_000_000_000,
        soak.answered,
        soak.failed,
        soak.failed_confirmable,
        soak.cancelled,
        soak.server.counters()
    );
    assert_eq!(soak.answered + soak.failed + soak.cancelled, count);
    // A separate response that arrives damaged is reset, and so never comes.
    assert!(soak.failed < count / 20 && soak.failed_confirmable < count / 100);
    assert!(soak.ran.values().all(|&times| times == 1), "a POST was processed twice");
    for client in &mut soak.clients {
        assert_eq!(client.open_exchanges(), 0);
        assert!(matches!(client.poll_output(), Output::Timeout(None)), "a timer is left");
    }
    assert_eq!(soak.server.open_exchanges(), 0);
    assert!(matches!(soak.server.poll_output(), Output::Timeout(None)), "a timer is left");
    assert!(soak.observers.is_empty() && soak.notifications.is_empty());
    // What is remembered is forgotten EXCHANGE_LIFETIME later, with the next look.
    let later = soak.now + soak.server.params().exchange_lifetime();
    let id = ebbtide_core::wire::MessageId(0);
    assert!(!soak.server.is_remembered(later, SERVER, id));
    assert_eq!(soak.server.remembered(), 0);
}

#[test]
fn thirty_thousand_mixed_exchanges_end_once_each_and_leave_nothing_open() {
    soak(30_000, 42);
}

#[test]
#[ignore = "a million exchanges: ./ci.sh statistics"]
fn a_million_mixed_exchanges_end_once_each_and_leave_nothing_open() {
    soak(1_000_000, 43);
}
