//! Two endpoints, their applications, and a wire that loses, duplicates, reorders and corrupts;
//! driven step by step, with everything that must hold checked after each step.
//!
//! The property tests and the fuzz target `endpoint` share this file.

use super::split_mix::SplitMix;
use core::net::{Ipv4Addr, SocketAddr};
use ebbtide_core::ExchangeId;
use ebbtide_core::PeerId;
use ebbtide_core::cc::{Algorithm, ControlConfig, Sample, Shell};
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Incoming, Limits, Measurement, Output, Received, Reliability,
    Scope, SendError, Sent,
};
use ebbtide_core::params::Parameters;
use ebbtide_core::testbed::StudySettings;
use ebbtide_core::time::{Duration, Instant, Micros};
use ebbtide_core::wire::{Code, Content, Message, Opt, OptionNumber, Type};
use std::collections::{BTreeMap, VecDeque};

/// The bytes that say what happens; zeros when they are used up.
pub(crate) struct Script<'s>(pub(crate) &'s [u8]);

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

/// What an accepted exchange is for, and how far it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Alive {
    Request { acknowledged: bool },
    Response,
    Ping,
}

/// How exchanges have ended.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) accepted: u64,
    pub(crate) answered: u64,
    pub(crate) acknowledged: u64,
    pub(crate) reset: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
}

impl Ends {
    pub(crate) fn ended(&self) -> u64 {
        self.answered + self.acknowledged + self.reset + self.failed + self.cancelled
    }
}

/// A datagram on the wire.
pub(crate) struct Flying {
    pub(crate) from: PeerId,
    pub(crate) to: PeerId,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct Side {
    pub(crate) ep: Endpoint,
    address: PeerId,
    limits: Limits,
    nstart: u16,
    max_retransmit: u8,
    scope: Scope,
    alive: BTreeMap<ExchangeId, Alive>,
    /// Confirmable exchanges that have left and are neither acknowledged nor over, by peer.
    open: BTreeMap<ExchangeId, PeerId>,
    /// Probes that were sent for each exchange.
    probes: BTreeMap<ExchangeId, u8>,
    /// Requests that the application has not answered.
    pub(crate) pending: VecDeque<Incoming>,
    pub(crate) ends: Ends,
    pub(crate) timeout: Option<Instant>,
}

pub(crate) struct World {
    pub(crate) sides: [Side; 2],
    pub(crate) wire: VecDeque<Flying>,
    pub(crate) now: Instant,
}

const fn address(last: u8) -> PeerId {
    PeerId::Address(SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), 5683))
}

impl Side {
    fn new(address: PeerId, config: EndpointConfig, seed: u64) -> Self {
        Self {
            limits: config.limits,
            nstart: config.control.settings.nstart(&config.params),
            max_retransmit: config.params.max_retransmit,
            scope: config.scope,
            ep: Endpoint::new(config, Box::new(SplitMix(seed))),
            address,
            alive: BTreeMap::new(),
            open: BTreeMap::new(),
            probes: BTreeMap::new(),
            pending: VecDeque::new(),
            ends: Ends::default(),
            timeout: None,
        }
    }

    fn accept(&mut self, result: Result<ExchangeId, SendError>, what: Alive) {
        if let Ok(exchange) = result {
            assert!(self.alive.insert(exchange, what).is_none(), "a name given twice");
            self.ends.accepted += 1;
        }
    }

    fn over(&mut self, exchange: ExchangeId) -> Alive {
        self.open.remove(&exchange);
        let what = self.alive.remove(&exchange);
        assert!(what.is_some(), "{exchange:?} ended twice, or never began");
        what.unwrap_or(Alive::Ping)
    }

    fn check_sample(sample: Option<&Sample>) {
        if let Some(sample) = sample {
            assert!(sample.since_last <= sample.since_first, "{sample:?}");
            assert!(sample.transmissions > 0, "{sample:?}");
            if let Some(answered) = sample.answered {
                assert!(answered.ordinal < sample.transmissions, "{sample:?}");
                assert!(answered.since <= sample.since_first, "{sample:?}");
            }
        }
    }

    fn receive(&mut self, now: Instant, from: PeerId, bytes: &[u8]) {
        match self.ep.handle_datagram(now, from, bytes) {
            Received::Request(incoming, message) => {
                assert!(message.code().is_request());
                self.pending.push_back(incoming);
                if self.pending.len() > 32 {
                    self.pending.pop_front();
                }
            }
            Received::Response { exchange, sample, message } => {
                assert!(message.code().is_response());
                Self::check_sample(sample.as_ref());
                assert!(matches!(self.over(exchange), Alive::Request { .. }));
                self.ends.answered += 1;
            }
            Received::Acknowledged { exchange, sample } => {
                Self::check_sample(Some(&sample));
                match self.alive.get_mut(&exchange) {
                    Some(Alive::Request { acknowledged }) => {
                        assert!(!*acknowledged, "acknowledged twice");
                        *acknowledged = true;
                        self.open.remove(&exchange);
                    }
                    _ => {
                        self.over(exchange);
                        self.ends.acknowledged += 1;
                    }
                }
            }
            Received::Reset { exchange, sample } => {
                Self::check_sample(sample.as_ref());
                self.over(exchange);
                self.ends.reset += 1;
            }
            Received::Notification { .. } => panic!("nobody observes here"),
            Received::Ignored(_) => {}
        }
    }

    fn settle(&mut self, wire: &mut VecDeque<Flying>) {
        loop {
            match self.ep.poll_output() {
                Output::Transmit(transmit) => {
                    let bytes = transmit.datagram.to_vec();
                    let (to, what) = (transmit.to, transmit.what);
                    let message = Message::parse(&bytes);
                    assert!(message.is_ok(), "{message:?}: {bytes:02x?}");
                    // The option that marks comes on top.
                    assert!(bytes.len() <= self.limits.message_bytes + 5);
                    if let (Sent::Exchange { exchange, ordinal, timeout }, Ok(message)) =
                        (what, message)
                    {
                        assert!(self.alive.contains_key(&exchange) || ordinal == 0);
                        assert!(ordinal <= self.max_retransmit);
                        if message.kind() == Type::Confirmable {
                            assert!((Shell::FLOOR..=Shell::CEILING).contains(&timeout));
                            self.open.insert(exchange, to);
                        } else {
                            assert_eq!(ordinal, 0, "a Non-confirmable message is sent once");
                        }
                    }
                    if let Sent::Probe { exchange, timeout } = what {
                        // A ping for an exchange that has not ended, no longer than its header.
                        assert!(self.alive.contains_key(&exchange));
                        assert_eq!((bytes.len(), bytes[0], bytes[1]), (4, 0x40, 0));
                        // One for a message that waits has no timeout of its own.
                        if timeout > Micros::ZERO {
                            assert!((Shell::FLOOR..=Shell::CEILING).contains(&timeout));
                            let probes = self.probes.entry(exchange).or_default();
                            *probes += 1;
                            assert!(*probes <= self.max_retransmit);
                        }
                    }
                    if wire.len() < 64 {
                        wire.push_back(Flying { from: self.address, to, bytes });
                    }
                }
                Output::Event(Event::Failed { exchange, reason }) => {
                    assert!(!reason.to_string().is_empty());
                    self.over(exchange);
                    self.ends.failed += 1;
                }
                Output::Event(_) => {}
                Output::Timeout(timeout) => {
                    self.timeout = timeout;
                    break;
                }
            }
        }
        self.check();
    }

    /// What holds whenever all output has been fetched.
    fn check(&self) {
        assert_eq!(self.ep.open_exchanges(), self.alive.len());
        assert!(self.alive.len() <= self.limits.exchanges);
        assert!(self.ep.remembered() <= self.limits.remembered_messages);
        assert!(self.ep.peers() <= self.limits.peers);
        assert_eq!(self.timeout.is_some(), !self.alive.is_empty(), "a timer where it is needed");
        assert_eq!(self.ends.accepted, self.ends.ended() + self.alive.len() as u64);
        let mut open: BTreeMap<PeerId, u16> = BTreeMap::new();
        for remote in self.open.values() {
            // All remotes of these tests share a prefix.
            let key = if self.scope == Scope::TransportAddress { *remote } else { self.address };
            *open.entry(key).or_default() += 1;
        }
        assert!(open.values().all(|&open| open <= self.nstart), "{open:?} of {}", self.nstart);
    }
}

/// Settings from a script, small enough that bounds are reached.
fn config(script: &mut Script<'_>) -> EndpointConfig {
    let mut control = ControlConfig::new(Algorithm::ALL[script.below(Algorithm::ALL.len())]);
    control.settings.nstart = Some(1 + script.byte() as u16 % 4);
    let bits = script.byte();
    EndpointConfig {
        params: Parameters { max_retransmit: bits % 6, ..Parameters::DEFAULT },
        control,
        scope: if bits & 8 == 0 {
            Scope::TransportAddress
        } else {
            Scope::Prefix { v4: 24, v6: 64 }
        },
        token_length: script.byte() % 9,
        study: StudySettings::DEFAULT
            .trusting_marks(bits & 16 != 0)
            .keeping_message_ids_unique(bits & 32 == 0),
        rexmit_count_option: OptionNumber(65020),
        measurement: (bits & 128 != 0).then_some(Measurement::new(3)),
        q_block: false,
        oscore: false,
        forwards: false,
        message_id_start: None,
        count_per_control: bits & 64 == 0,
        limits: Limits {
            peers: 1 + script.below(4),
            exchanges: 1 + script.below(16),
            queue_per_peer: 1 + script.byte() as u16 % 8,
            message_bytes: if bits & 64 == 0 { 1280 } else { 60 },
            remembered_messages: script.below(6),
            remembered_bytes: script.below(128),
            deferred_requests: 16,
            token_bytes: if bits & 64 == 0 { 40 } else { 8 },
            outbox_bytes: if bits & 128 == 0 { 4096 } else { 64 },
            peer_retention: Duration::from_secs(u64::from(script.byte())),
        },
    }
}

impl World {
    pub(crate) fn new(configs: [EndpointConfig; 2], now: Instant, seed: u64) -> Self {
        let [a, b] = configs;
        let sides = [Side::new(address(1), a, seed), Side::new(address(2), b, !seed)];
        Self { sides, wire: VecDeque::new(), now }
    }

    pub(crate) fn settle(&mut self) {
        for side in &mut self.sides {
            side.settle(&mut self.wire);
        }
    }

    pub(crate) fn request(
        &mut self,
        who: usize,
        to: PeerId,
        content: &Content<'_>,
        reliability: Reliability,
    ) {
        let side = &mut self.sides[who];
        let result = side.ep.request(self.now, to, content, reliability);
        side.accept(result, Alive::Request { acknowledged: false });
        self.settle();
    }

    pub(crate) fn ping(&mut self, who: usize) {
        let to = self.other(who);
        let side = &mut self.sides[who];
        let result = side.ep.ping(self.now, to);
        side.accept(result, Alive::Ping);
        self.settle();
    }

    pub(crate) fn respond(&mut self, who: usize, incoming: &Incoming, content: &Content<'_>) {
        let side = &mut self.sides[who];
        if let Some(result) = side.ep.respond(self.now, incoming, content).transpose() {
            side.accept(result, Alive::Response);
        }
        self.settle();
    }

    pub(crate) fn cancel(&mut self, who: usize, exchange: ExchangeId) {
        let side = &mut self.sides[who];
        side.ep.cancel(self.now, exchange);
        side.over(exchange);
        side.ends.cancelled += 1;
        self.settle();
    }

    pub(crate) fn acknowledge(&mut self, who: usize, incoming: &mut Incoming) {
        self.sides[who].ep.acknowledge(self.now, incoming);
        self.settle();
    }

    pub(crate) fn deliver(&mut self, datagram: &Flying) {
        let now = self.now;
        if let Some(side) = self.sides.iter_mut().find(|side| side.address == datagram.to) {
            side.receive(now, datagram.from, &datagram.bytes);
        }
        self.settle();
    }

    pub(crate) fn tick(&mut self, who: usize) {
        self.sides[who].ep.handle_timeout(self.now);
        self.settle();
    }

    pub(crate) fn other(&self, who: usize) -> PeerId {
        self.sides[1 - who].address
    }

    /// The earliest timer of both.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.sides.iter().filter_map(|side| side.timeout).min()
    }

    /// Nothing arrives any more: everything that is open ends by itself.
    pub(crate) fn drain(&mut self) {
        let mut steps = 0;
        while let Some(due) = self.next_timer() {
            self.now = self.now.max(due);
            for who in 0..2 {
                self.tick(who);
            }
            self.wire.clear();
            steps += 1;
            assert!(steps < 50_000, "it does not end");
        }
        for side in &self.sides {
            assert_eq!(side.ep.open_exchanges(), 0);
            assert_eq!(side.ends.accepted, side.ends.ended());
        }
    }
}

/// One step of the script.
fn step(world: &mut World, script: &mut Script<'_>) {
    let op = script.byte();
    let who = usize::from(op >> 7);
    match op & 0x0f {
        0..=2 => {
            let bits = script.byte();
            let codes = [Code::GET, Code::POST, Code::PUT, Code::GET, Code::CONTENT];
            let options = [
                Opt { number: OptionNumber::URI_PATH, value: b"a" },
                Opt { number: OptionNumber(if bits & 1 == 0 { 12 } else { 65001 }), value: b"" },
                Opt { number: OptionNumber(65534), value: b"x" },
            ];
            let payload = [7; 64];
            let content = Content {
                code: codes[usize::from(bits >> 1) % codes.len()],
                options: &options[..usize::from(bits >> 4) % 4],
                payload: &payload[..usize::from(bits >> 6) * 20],
            };
            let con = op & 0x10 == 0;
            let how = if con { Reliability::Confirmable } else { Reliability::NonConfirmable };
            let to = if op & 0x60 == 0x60 { address(bits) } else { world.other(who) };
            world.request(who, to, &content, how);
        }
        3 => world.ping(who),
        4 | 5 => {
            let at = script.below(world.sides[who].pending.len());
            if let Some(incoming) = world.sides[who].pending.remove(at) {
                let bits = script.byte();
                let options = [Opt { number: OptionNumber(9), value: b"" }];
                let payload = [b'r'; 15];
                let content = Content {
                    code: if bits & 1 == 0 { Code::CONTENT } else { Code::NOT_FOUND },
                    options: &options[..usize::from(bits & 14 == 14)],
                    payload: &payload[..usize::from(bits >> 4)],
                };
                world.respond(who, &incoming, &content);
                // Some answer twice.
                if bits & 14 == 12 {
                    world.respond(who, &incoming, &content);
                }
            }
        }
        6 => {
            let at = script.below(world.sides[who].pending.len());
            if let Some(mut incoming) = world.sides[who].pending.get(at).cloned() {
                world.acknowledge(who, &mut incoming);
                world.sides[who].pending[at] = incoming;
            }
        }
        7 => {
            let at = script.below(world.sides[who].pending.len());
            if let Some(incoming) = world.sides[who].pending.remove(at) {
                world.sides[who].ep.reset(&incoming);
                world.settle();
            }
        }
        8 => {
            let at = script.below(world.sides[who].alive.len());
            let named = world.sides[who].alive.keys().nth(at).copied();
            if let Some(exchange) = named {
                if op & 0x10 == 0 {
                    world.cancel(who, exchange);
                } else {
                    world.sides[who].ep.handle_send_error(world.now, exchange);
                    world.settle();
                }
                // A second time it is nothing.
                world.sides[who].ep.cancel(world.now, exchange);
                world.settle();
            }
        }
        9..=11 => {
            let at = script.below(world.wire.len());
            if let Some(mut datagram) = world.wire.remove(at) {
                match op >> 4 {
                    0..=3 => world.deliver(&datagram),
                    // Twice.
                    4 => {
                        world.deliver(&datagram);
                        world.deliver(&datagram);
                    }
                    // Now and once more later.
                    5 => {
                        world.deliver(&datagram);
                        world.wire.push_back(datagram);
                    }
                    // Lost.
                    6 => {}
                    // From elsewhere.
                    7 => {
                        datagram.from = address(script.byte());
                        world.deliver(&datagram);
                    }
                    // Corrupt.
                    8..=13 => {
                        let place = script.below(datagram.bytes.len());
                        if let Some(byte) = datagram.bytes.get_mut(place) {
                            *byte = script.byte();
                        }
                        world.deliver(&datagram);
                    }
                    // Cut off.
                    _ => {
                        let len = script.below(datagram.bytes.len());
                        datagram.bytes.truncate(len);
                        world.deliver(&datagram);
                    }
                }
            }
        }
        12 => {
            // Garbage, or a message that the script writes.
            let len = usize::from(op >> 4) * 4;
            let mut bytes: Vec<u8> = (0..len).map(|_| script.byte()).collect();
            if let Some(first) = bytes.first_mut() {
                *first = (*first & 0x3f) | 0x40;
            }
            let from = if len % 8 == 0 { world.other(who) } else { address(script.byte()) };
            let to = world.sides[who].address;
            world.deliver(&Flying { from, to, bytes });
        }
        13 => {
            if let Some(due) = world.sides[who].timeout {
                world.now = world.now.max(due);
                world.tick(who);
            }
        }
        14 => {
            let millis = [1, 50, 700, 3_000, 20_000, 100_000, 300_000, 0];
            world.now = world.now + Duration::from_millis(millis[usize::from(op >> 4) & 7]);
            for who in 0..2 {
                world.tick(who);
            }
        }
        _ => match op >> 4 & 3 {
            0 => {
                let to = world.other(who);
                world.sides[who].ep.forget(to);
                world.settle();
            }
            1 => {
                let mut control =
                    ControlConfig::new(Algorithm::ALL[script.below(Algorithm::ALL.len())]);
                control.settings.nstart = Some(world.sides[who].nstart);
                let to = world.other(who);
                let _ = world.sides[who].ep.set_control(world.now, to, control);
                world.settle();
            }
            // The clock jumps back for one call.
            2 => {
                world.sides[who].ep.handle_timeout(Instant::ZERO);
                world.settle();
            }
            _ => {
                let side = &world.sides[who];
                let to = world.other(who);
                let _ = (side.ep.metrics(to), side.ep.counters(), format!("{:?}", side.ep));
            }
        },
    }
}

/// Plays a script to its end, and then waits until everything has ended.
pub(crate) fn play(bytes: &[u8]) {
    let mut script = Script(bytes);
    let begin = [0, 1_000_000_000_000, u64::MAX - 400_000_000_000, u64::MAX - 5];
    let now = Instant::from_nanos(begin[script.below(begin.len())]);
    let seed = u64::from(script.byte());
    let configs = [config(&mut script), config(&mut script)];
    let mut world = World::new(configs, now, seed);
    while !script.is_over() {
        step(&mut world, &mut script);
    }
    world.drain();
}
