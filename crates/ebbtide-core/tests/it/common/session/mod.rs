//! A server's session and several clients over a wire that loses, duplicates and reorders, from
//! addresses that change, beside strangers who forge addresses; driven step by step, with everything
//! that must hold checked after each step.
//!
//! The test `session_machine` and the fuzz target `session` share this file.

pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod server;
mod watcher;

use client::ClientSide;
use ebbtide_core::endpoint::{EndpointConfig, Limits};
use ebbtide_core::session::Verify;
use ebbtide_core::session::server::SessionConfig;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use ebbtide_core::{PeerId, Source};
use server::{ADDRESS as SERVER, ServerSide};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Bytes of IPv4 and UDP headers.
const HEADERS: usize = 28;
/// How long a datagram may be on its way: MAX_LATENCY (RFC 7252 section 4.8.2).
const MAX_LATENCY: Duration = Duration::from_secs(100);
const CLIENTS: usize = 2;
/// Datagrams that a stranger has seen and may send again.
const SEEN: usize = 32;

/// The bytes that say what happens; zeros when they are used up.
struct Script<'s>(&'s [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { usize::from(self.byte()) % bound }
    }
    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// A datagram on the wire.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flying {
    pub(crate) from: PeerId,
    pub(crate) to: PeerId,
    pub(crate) bytes: Vec<u8>,
    pub(crate) sent: Instant,
}

/// What went to and from an address.
#[derive(Default)]
struct Traffic {
    sent: usize,
    got: usize,
    /// Challenges that reached it.
    echoes: BTreeSet<Vec<u8>>,
    /// Confirmable messages of the server that reached it.
    heard: BTreeSet<MessageId>,
    /// It has shown that it is there: the server may send it more.
    shown: bool,
}

/// What came of a script.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) started: u32,
    pub(crate) succeeded: u32,
    pub(crate) refused: u32,
    pub(crate) failed: u32,
    pub(crate) states: u32,
    /// Requests of the server that a client answered.
    pub(crate) heard: u32,
}

impl Summary {
    pub(crate) fn add(&mut self, other: Self) {
        self.started += other.started;
        self.succeeded += other.succeeded;
        self.refused += other.refused;
        self.failed += other.failed;
        self.states += other.states;
        self.heard += other.heard;
    }
}

struct World {
    now: Instant,
    server: ServerSide,
    clients: [ClientSide; CLIENTS],
    wire: Vec<Flying>,
    traffic: BTreeMap<Source, Traffic>,
    seen: VecDeque<Flying>,
    next_number: u32,
    next_port: u16,
}

fn address(last: u8, port: u16) -> PeerId {
    PeerId::Address(SocketAddr::from(([192, 0, 2, last], port)))
}

/// Settings small enough that bounds are reached.
fn configs(script: &mut Script<'_>) -> (EndpointConfig, SessionConfig) {
    let bits = script.byte();
    let limits = Limits {
        remembered_messages: if bits & 1 == 0 { 8 + script.below(32) } else { 65_536 },
        queue_per_peer: 4 + u16::from(bits >> 1 & 7),
        ..Limits::default()
    };
    let session = SessionConfig {
        verify: Verify::All,
        max_rate: (bits & 0x30 == 0).then_some(20),
        max_addresses: if bits & 0x40 == 0 { 2 } else { 100 },
        max_body: 1500,
        max_block_bytes: [1500, 2500, 20_000][script.below(3)],
        max_withheld: 2 + 2 * script.below(4),
        block_size: 64,
        ..SessionConfig::default()
    };
    let q_block = bits & 0x80 != 0;
    (EndpointConfig { limits, q_block, ..EndpointConfig::default() }, session)
}

impl World {
    fn new(script: &mut Script<'_>) -> Self {
        let seed = u64::from(script.byte()) << 8 | u64::from(script.byte());
        let (endpoint, session) = configs(script);
        let q_block = endpoint.q_block;
        let client = |n: usize| {
            let config = EndpointConfig { q_block, ..EndpointConfig::default() };
            ClientSide::new(config, address(10 + n as u8, 5683), seed << 8 | n as u64)
        };
        Self {
            now: Instant::from_nanos(1_000_000_000_000),
            server: ServerSide::new(endpoint, session, seed),
            clients: [client(0), client(1)],
            wire: Vec::new(),
            traffic: BTreeMap::new(),
            seen: VecDeque::new(),
            next_number: 0,
            next_port: 10_000,
        }
    }

    fn settle(&mut self) {
        let mut out = Vec::new();
        self.server.settle(self.now, &mut out);
        for datagram in &out {
            let traffic = self.traffic.entry(datagram.to.source()).or_default();
            traffic.got += datagram.bytes.len() + HEADERS;
            let (got, sent) = (traffic.got, traffic.sent);
            assert!(
                traffic.shown || got <= 3 * sent,
                "{} got {got} bytes for {sent}, the last: {:02x?}",
                datagram.to,
                datagram.bytes
            );
        }
        self.wire.append(&mut out);
        for client in &mut self.clients {
            client.settle(self.now, &mut self.wire);
        }
    }

    fn deliver(&mut self, datagram: &Flying) {
        if datagram.to == SERVER {
            self.at_server(datagram);
        } else if let Some(client) = self.clients.iter_mut().find(|c| c.address == datagram.to) {
            let traffic = self.traffic.entry(datagram.to.source()).or_default();
            let message = Message::parse(&datagram.bytes).unwrap();
            traffic.echoes.extend(message.option(OptionNumber::ECHO).map(|o| o.value.to_vec()));
            traffic.heard.insert(message.message_id());
            client.receive(self.now, datagram.from, &datagram.bytes);
        }
        self.settle();
    }

    fn at_server(&mut self, datagram: &Flying) {
        let traffic = self.traffic.entry(datagram.from.source()).or_default();
        traffic.sent += datagram.bytes.len() + HEADERS;
        if let Ok(message) = Message::parse(&datagram.bytes) {
            let echo = message.option(OptionNumber::ECHO);
            traffic.shown |= echo.is_some_and(|echo| traffic.echoes.contains(echo.value));
            // Nobody guesses which Confirmable message is under way to whom.
            traffic.shown |= message.kind() == Type::Acknowledgement
                && traffic.heard.contains(&message.message_id());
        }
        self.server.receive(self.now, datagram.from, &datagram.bytes);
        if self.seen.len() >= SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back(datagram.clone());
    }

    fn next_timer(&self) -> Option<Instant> {
        let clients = self.clients.iter().filter_map(|client| client.timeout);
        clients.chain(self.server.timeout).min()
    }

    fn wait(&mut self, until: Instant) {
        self.now = self.now.max(until);
        self.server.tick(self.now);
        for client in &mut self.clients {
            client.tick(self.now);
        }
        let now = self.now;
        self.wire.retain(|datagram| now.saturating_since(datagram.sent) < MAX_LATENCY);
        self.seen.retain(|datagram| now.saturating_since(datagram.sent) < MAX_LATENCY);
        self.settle();
    }

    /// Somebody who can send from any address, and sees none but what was sent to the server.
    fn stranger(&mut self, script: &mut Script<'_>) {
        let what = script.byte();
        let victim = match what >> 6 {
            0 | 1 => address(100 + (what >> 4 & 3), 5683),
            n => self.clients[usize::from(n & 1)].address,
        };
        let replayed = self.seen.get(script.below(SEEN)).cloned();
        let random = [script.byte(), script.byte()];
        let bytes = match (what & 15, replayed) {
            // What somebody has sent, from where it was sent, or from elsewhere.
            (0 | 1, Some(seen)) => return self.deliver(&seen),
            (2 | 3, Some(seen)) => {
                return self.deliver(&Flying { from: victim, ..seen });
            }
            // An acknowledgement or a Reset, of a message that went to somebody, or to nobody.
            (4 | 5, _) => {
                let kind = [0x60, 0x70][usize::from(what >> 4 & 1)];
                vec![kind, 0, random[0], random[1]]
            }
            (6, _) => {
                let guessed = self.traffic.values().find_map(|traffic| traffic.heard.last());
                let id = guessed.map_or([0, 0], |id| id.0.to_be_bytes());
                vec![0x60, 0, id[0], id[1]]
            }
            (kind, _) => {
                let observe = Opt { number: OptionNumber::OBSERVE, value: &[] };
                let path = Opt { number: OptionNumber::URI_PATH, value: b"state" };
                let block = Opt { number: OptionNumber::BLOCK2, value: &random[..1] };
                let options = [observe, path, block];
                let options = match kind {
                    7..=9 => &options[..2],
                    10..=12 => &options[1..2],
                    _ => &options[1..],
                };
                let content = Content { code: Code::GET, options, payload: &[] };
                let token = Token::new(&random[..usize::from(what & 1)]).unwrap();
                let kind = [Type::Confirmable, Type::NonConfirmable][usize::from(what >> 5 & 1)];
                let mut bytes = [0; 64];
                let id = MessageId(u16::from_be_bytes(random));
                let length = content.encode(&mut bytes, kind, id, token).unwrap().len;
                bytes[..length].to_vec()
            }
        };
        self.deliver(&Flying { from: victim, to: SERVER, bytes, sent: self.now });
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let op = script.byte();
        let who = usize::from(op >> 7);
        match op & 31 {
            0..=3 => {
                let codes = [Code::GET, Code::POST, Code::POST, Code::PUT, Code::FETCH, Code::POST];
                let bits = script.byte();
                if self.clients[who].at_work() < 6 {
                    self.next_number += 1;
                    let code = codes[usize::from(op >> 5 & 3) * 2 % 6 + usize::from(bits & 1)];
                    self.clients[who].start(self.now, code, self.next_number, bits);
                }
                self.settle();
            }
            // The oldest arrives; several of them.
            4..=11 => {
                for _ in 0..=(op >> 5) {
                    if !self.wire.is_empty() {
                        let datagram = self.wire.remove(0);
                        self.deliver(&datagram);
                    }
                }
            }
            // Any one arrives, once or twice, or is lost.
            12..=15 => {
                let at = script.below(self.wire.len());
                if at < self.wire.len() {
                    let datagram = self.wire.remove(at);
                    match op >> 5 & 3 {
                        0 => self.deliver(&datagram),
                        1 => {
                            self.wire.push(datagram.clone());
                            self.deliver(&datagram);
                        }
                        _ => {}
                    }
                }
            }
            // All that flies is lost.
            16 => self.wire.clear(),
            17..=19 => {
                if let Some(due) = self.next_timer() {
                    self.wait(due);
                }
            }
            20 => {
                let millis = [1, 50, 700, 3_000, 20_000, 50_000, 100_000, 4_000_000];
                self.wait(self.now + Duration::from_millis(millis[usize::from(op >> 5)]));
            }
            21..=23 => {
                let at = script.below(self.server.waits());
                self.server.answer(self.now, at);
                self.settle();
            }
            24 | 25 => {
                let at = script.below(self.server.waits());
                self.server.acknowledge(self.now, at);
                self.settle();
            }
            26 if op & 0x60 != 0 => {
                self.server.change();
                self.settle();
            }
            // Both have both roles. A server asks only those that have shown that they are there.
            26 => {
                let client = self.clients[who].address;
                if self.traffic.get(&client.source()).is_some_and(|traffic| traffic.shown) {
                    self.next_number += 1;
                    self.server.ask(self.now, client, self.next_number);
                }
                self.settle();
            }
            // An address changes: another port, or another host's.
            27 if op & 0x60 == 0 => {
                self.next_port += 1;
                let last = self.next_port as u8 % 64 + 32;
                let last = if op & 64 == 0 { 10 + who as u8 } else { last };
                self.clients[who].address = address(last, self.next_port);
            }
            27 => {
                self.clients[who].observe(script.byte());
                self.settle();
            }
            _ => self.stranger(script),
        }
    }

    /// The network works again, and everything ends by itself.
    fn end(&mut self) -> Summary {
        let mut steps = 0;
        self.clients.iter_mut().for_each(ClientSide::cancel);
        self.settle();
        loop {
            while !self.wire.is_empty() {
                let datagram = self.wire.remove(0);
                self.deliver(&datagram);
                steps += 1;
                assert!(steps < 20_000, "it does not end");
            }
            if self.server.waits() > 0 {
                self.server.answer(self.now, 0);
                self.settle();
                continue;
            }
            let Some(due) = self.next_timer() else { break };
            self.wait(due);
        }
        // Those that still observe are nobody's observers.
        for _ in 0..3 {
            self.server.change();
            self.settle();
            while let Some(due) = self.next_timer() {
                self.wait(due);
                self.wire.clear();
            }
        }
        let later = self.now + Duration::from_secs(5000);
        self.wait(later);
        assert!(self.server.is_idle());
        assert_eq!(self.server.endpoint.open_exchanges(), 0);
        let load = self.server.session.load(later);
        let held = (load.withheld, load.uploads, load.downloads, load.block_bytes, load.verified);
        assert_eq!(held, (0, 0, 0, 0, 0));
        let id = MessageId(0);
        assert!(!self.server.endpoint.is_remembered(later, SERVER, id));
        assert_eq!(self.server.endpoint.remembered(), 0);
        assert_eq!(self.server.endpoint.deferred(), 0);
        let mut summary = Summary { heard: self.server.heard, ..Summary::default() };
        for client in &mut self.clients {
            assert_eq!(client.at_work(), 0, "a request that never ends");
            assert_eq!(client.endpoint.open_exchanges(), 0);
            assert_eq!(client.started, client.succeeded + client.refused + client.failed);
            summary.started += client.started;
            summary.succeeded += client.succeeded;
            summary.refused += client.refused;
            summary.failed += client.failed;
            summary.states += client.states;
        }
        summary
    }
}

/// Plays a script to its end, and then waits until everything has ended.
pub(crate) fn play(bytes: &[u8]) -> Summary {
    let mut script = Script(bytes);
    let mut world = World::new(&mut script);
    while !script.is_over() {
        world.step(&mut script);
    }
    world.end()
}
