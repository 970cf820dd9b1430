//! The endpoint in fixed tables sends the datagrams of the endpoint for many peers: both get the
//! same calls, datagrams and random numbers.

use crate::common::split_mix::SplitMix;
use core::net::SocketAddr;
use ebbtide_core::cc::{Algorithm, ControlConfig, Fasor};
use ebbtide_core::device::{
    DeviceConfig, DeviceEndpoint, DeviceExchangeId, DevicePoll, DeviceReceived, DeviceTables, Io,
};
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Limits, Output, Received, Reliability,
};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use ebbtide_core::{ExchangeId, PeerId};
use rand_core::Rng;

const PEERS: u8 = 3;
const EXCHANGES: usize = 6;
const MESSAGE: usize = 64;
/// Confirmable responses of which the device acknowledges a copy again. It rejects those of earlier ones.
const ACKNOWLEDGED: usize = 4;

/// The address that the endpoint for many peers knows for a number.
fn address(number: u8) -> PeerId {
    PeerId::Address(SocketAddr::from(([192, 0, 2, number], 5683)))
}

/// What leaves, and what is told of exchanges, numbered in the order in which they began.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    datagrams: Vec<(u8, Vec<u8>)>,
    answered: Option<usize>,
    failed: Vec<usize>,
    due: Option<Instant>,
}

struct Both<'t> {
    many: Endpoint,
    few: DeviceEndpoint<'t, u8, Fasor>,
    rng: SplitMix,
    now: Instant,
    exchanges: Vec<(ExchangeId, DeviceExchangeId)>,
    /// Datagrams on their way to the peers, which are scripts.
    wire: Vec<(u8, Vec<u8>)>,
    /// The Confirmable responses that were acknowledged, by peer and message ID.
    acknowledged: Vec<(u8, u16)>,
    sent: usize,
    failed: usize,
}

impl<'t> Both<'t> {
    fn new(
        tables: &'t mut DeviceTables<u8, Fasor, 4, EXCHANGES, MESSAGE>,
        seed: u64,
        nstart: u16,
    ) -> Self {
        let mut control = ControlConfig::new(Algorithm::FasorToken);
        control.settings.nstart = Some(nstart);
        let limits =
            Limits { peers: 4, exchanges: EXCHANGES, message_bytes: MESSAGE, ..Limits::default() };
        let device = DeviceConfig { settings: control.settings, ..DeviceConfig::fasor_token() };
        let config = EndpointConfig { control, limits, ..EndpointConfig::default() };
        let mut rng = SplitMix(seed);
        let many = Endpoint::new(config, Box::new(SplitMix(seed)));
        // The endpoint for many peers draws the seeds of its hash tables.
        for _ in 0..3 {
            rng.next_u64();
        }
        let few = tables.endpoint(device);
        Self {
            many,
            few,
            rng,
            now: Instant::ZERO,
            exchanges: Vec::new(),
            wire: Vec::new(),
            acknowledged: Vec::new(),
            sent: 0,
            failed: 0,
        }
    }

    /// Makes the same call at both, and compares what follows.
    fn step(
        &mut self,
        many: impl FnOnce(
            &mut Endpoint,
            Instant,
            &mut Outcome,
            &mut Vec<(ExchangeId, DeviceExchangeId)>,
        ) -> Option<ExchangeId>,
        few: impl FnOnce(
            &mut DeviceEndpoint<'t, u8, Fasor>,
            &mut Io<'_, u8>,
            &mut Outcome,
            &[(ExchangeId, DeviceExchangeId)],
        ) -> Option<DeviceExchangeId>,
    ) {
        let (mut of_many, mut of_few) = (Outcome::default(), Outcome::default());
        let began = many(&mut self.many, self.now, &mut of_many, &mut self.exchanges);
        let mut left = Vec::new();
        let mut io = Io {
            now: self.now,
            rng: &mut self.rng,
            send: &mut |to, datagram: &[u8]| left.push((to, datagram.to_vec())),
        };
        let also = few(&mut self.few, &mut io, &mut of_few, &self.exchanges);
        assert_eq!(began.is_some(), also.is_some(), "both accept a message, or none");
        self.exchanges.extend(began.zip(also));
        let number = |fits: &dyn Fn(&(ExchangeId, DeviceExchangeId)) -> bool| {
            self.exchanges.iter().rposition(fits).expect("it has begun")
        };
        loop {
            match self.few.poll(&mut io) {
                DevicePoll::Failed { exchange, .. } => {
                    of_few.failed.push(number(&|it| it.1 == exchange));
                }
                DevicePoll::Wait(at) => {
                    of_few.due = at;
                    break;
                }
            }
        }
        of_few.datagrams = left;
        loop {
            match self.many.poll_output() {
                Output::Transmit(transmit) => {
                    let to = (0..=PEERS).find(|number| address(*number) == transmit.to);
                    of_many.datagrams.push((to.expect("a peer"), transmit.datagram.to_vec()));
                }
                Output::Event(Event::Failed { exchange, .. }) => {
                    of_many.failed.push(number(&|it| it.0 == exchange));
                }
                Output::Timeout(at) => {
                    of_many.due = at;
                    break;
                }
                Output::Event(_) => unreachable!("there is one kind of event"),
            }
        }
        of_many.failed.sort_unstable();
        of_few.failed.sort_unstable();
        assert_eq!(of_many, of_few, "at {:?}", self.now);
        for (to, datagram) in &of_few.datagrams {
            if let [0x60, 0, high, low] = datagram[..] {
                let response = (*to, u16::from_be_bytes([high, low]));
                if !self.recent().contains(&response) {
                    self.acknowledged.push(response);
                }
            }
        }
        self.sent += of_few.datagrams.len();
        self.failed += of_few.failed.len();
        self.wire.extend(of_few.datagrams);
    }

    fn request(&mut self, to: u8, code: Code, observe: bool) {
        let path = [
            Opt { number: OptionNumber::OBSERVE, value: b"" },
            Opt { number: OptionNumber::URI_PATH, value: b"t" },
        ];
        let options = &path[usize::from(!observe)..];
        let content = Content { code, options, payload: b"" };
        self.step(
            |many, now, _, _| {
                many.request(now, address(to), &content, Reliability::Confirmable).ok()
            },
            |few, io, _, _| few.request(io, to, &content).ok(),
        );
    }

    fn cancel(&mut self, which: usize) {
        self.step(
            |many, now, _, all| {
                many.cancel(now, all[which].0);
                None
            },
            |few, io, _, all| {
                few.cancel(io, all[which].1);
                None
            },
        );
    }

    /// The responses of which the device acknowledges a copy again.
    fn recent(&self) -> &[(u8, u16)] {
        &self.acknowledged[self.acknowledged.len().saturating_sub(ACKNOWLEDGED)..]
    }

    fn arrive(&mut self, from: u8, datagram: &[u8]) {
        if let [_, _, high, low, ..] = *datagram {
            let response = (from, u16::from_be_bytes([high, low]));
            if self.acknowledged.contains(&response) && !self.recent().contains(&response) {
                return;
            }
        }
        self.step(
            |many, now, told, all| {
                let exchange = match many.handle_datagram(now, address(from), datagram) {
                    Received::Response { exchange, .. }
                    | Received::Notification { exchange, .. }
                    | Received::Reset { exchange, .. } => Some(exchange),
                    _ => None,
                };
                told.answered = exchange.and_then(|id| all.iter().rposition(|it| it.0 == id));
                None
            },
            |few, io, told, all| {
                let exchange = match few.receive(io, from, datagram) {
                    DeviceReceived::Response { exchange, .. }
                    | DeviceReceived::Notification { exchange, .. }
                    | DeviceReceived::Reset(exchange) => Some(exchange),
                    _ => None,
                };
                told.answered = exchange.and_then(|id| all.iter().rposition(|it| it.1 == id));
                None
            },
        );
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.step(
            |many, now, _, _| {
                many.handle_timeout(now);
                None
            },
            |_, _, _, _| None,
        );
    }
}

/// What a peer may answer to a message: by its own rules, which are not always those of the RFC.
fn answer(to: &[u8], rng: &mut SplitMix) -> Option<Vec<u8>> {
    let message = Message::parse(to).ok()?;
    let (id, token) = (message.message_id(), message.token().unwrap());
    let drawn = rng.next_u32();
    let own = MessageId((drawn >> 16) as u16 & 0xff);
    let observe = [Opt { number: OptionNumber::OBSERVE, value: &[(drawn >> 8) as u8 | 1] }];
    let critical = [Opt { number: OptionNumber(9), value: b"x" }];
    let registered = message.option(OptionNumber::OBSERVE).is_some() && !drawn.is_multiple_of(5);
    let (kind, code, id, options): (_, _, _, &[Opt<'_>]) = match drawn % 32 {
        _ if !message.code().is_request() => return None,
        0..16 => {
            (Type::Acknowledgement, Code::CONTENT, id, if registered { &observe } else { &[] })
        }
        16..19 => (Type::Acknowledgement, Code::EMPTY, id, &[]),
        19..23 => (Type::Confirmable, Code::CONTENT, own, if registered { &observe } else { &[] }),
        23..25 => {
            (Type::NonConfirmable, Code::CONTENT, own, if registered { &observe } else { &[] })
        }
        25 => (Type::Reset, Code::EMPTY, id, &[]),
        26 => (Type::Acknowledgement, Code::CONTENT, id, &critical),
        27 => (Type::Acknowledgement, Code::CONTENT, MessageId(id.0 ^ 1), &[]),
        28 => (Type::Confirmable, Code::CONTENT, own, &critical),
        29 => (Type::Confirmable, Code::EMPTY, own, &[]),
        _ => return None,
    };
    let token = if code.is_empty() { Token::EMPTY } else { token };
    let mut datagram = vec![0; 64];
    let content = Content { code, options, payload: &[] };
    let length = content.encode(&mut datagram, kind, id, token).ok()?.len;
    datagram.truncate(length);
    Some(datagram)
}

/// One session, by a script: its first byte is NSTART and the seed of both, and each step takes
/// four of the others. Returns the datagrams that left, and the exchanges that failed. The fuzz
/// target `device` plays it as well.
pub(crate) fn play(script: &[u8]) -> (usize, usize) {
    let Some((first, steps)) = script.split_first() else { return (0, 0) };
    let seed = u64::from(*first);
    let mut tables = DeviceTables::new();
    let mut both = Both::new(&mut tables, seed, 1 + (seed % 3) as u16);
    let mut rng = SplitMix(seed ^ 0x5eed);
    for step in steps.as_chunks::<4>().0 {
        let drawn = u32::from_le_bytes(*step);
        let (at, which) = (drawn as usize >> 8, (drawn >> 4) as u8);
        // Only with a path that always takes the same time are two timers armed for one instant again and again.
        let varies = u64::from(drawn >> 20) * (seed & 1);
        both.pass(Duration::from_micros(20_000 + varies));
        match drawn % 16 {
            0..4 => {
                let code = [Code::GET, Code::PUT, Code::POST][at % 3];
                both.request(which % PEERS, code, code == Code::GET && which.is_multiple_of(4));
            }
            // The oldest datagram arrives, and is answered.
            4..10 if !both.wire.is_empty() => {
                let (peer, datagram) = both.wire.remove(0);
                if let Some(answer) = answer(&datagram, &mut rng) {
                    both.arrive(peer, &answer);
                }
            }
            // One stays on its way, or is lost, or its answer is changed.
            10 if !both.wire.is_empty() => {
                let (peer, datagram) = both.wire[at % both.wire.len()].clone();
                if let Some(answer) = answer(&datagram, &mut rng) {
                    both.arrive(peer, &answer);
                }
            }
            11 if !both.wire.is_empty() => {
                both.wire.remove(at % both.wire.len());
            }
            12 if !both.wire.is_empty() => {
                let (peer, datagram) = both.wire.remove(0);
                if let Some(mut answer) = answer(&datagram, &mut rng) {
                    let place = at % answer.len();
                    answer[place] ^= 1 << (which % 8);
                    // A request is the server's matter.
                    if !Message::parse(&answer).is_ok_and(|it| it.code().is_request()) {
                        both.arrive(peer, &answer);
                    }
                }
            }
            13 if !both.exchanges.is_empty() && which.is_multiple_of(4) => {
                both.cancel(at % both.exchanges.len());
            }
            14 => both.pass(Duration::from_millis(u64::from(drawn >> 20))),
            15 => both.pass(Duration::from_millis(u64::from(drawn >> 16))),
            _ => both.pass(Duration::from_millis(u64::from(which))),
        }
    }
    (both.sent, both.failed)
}

#[test]
fn the_datagrams_of_a_device_are_those_of_the_endpoint_for_many_peers() {
    let (mut sent, mut failed) = (0, 0);
    for seed in 0..120_u8 {
        let mut script = [0; 1601];
        SplitMix(seed.into()).fill_bytes(&mut script);
        script[0] = seed;
        let (more, ended) = play(&script);
        (sent, failed) = (sent + more, failed + ended);
    }
    assert!(sent > 10_000 && failed > 100, "{sent} datagrams, {failed} failures");
}
