//! The server in fixed tables sends the datagrams of the server of hosts: both get the same
//! datagrams from the same clients, of whom some forge addresses.

use crate::common::server_session::{Bench, Does, HEADERS, SUBJECT, ask, peer};
use crate::common::split_mix::SplitMix;
use ebbtide_core::PeerId;
use ebbtide_core::cc::{Algorithm, ControlConfig, Fasor};
use ebbtide_core::device::{
    DeviceAnswer, DeviceConfig, DeviceEndpoint, DeviceHandler, DevicePoll, DeviceReceived,
    DeviceServer, DeviceTables, DeviceVerify, Io,
};
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Output};
use ebbtide_core::session::Response;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Block, Code, Message, OptionNumber, Type, encode_uint};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::cell::Cell;
use std::rc::Rc;

const CLIENTS: u8 = 3;
const BLOCK: usize = 128;
const MESSAGE: usize = 64 + BLOCK;
const OBSERVERS: usize = 4;
const REMEMBERED: usize = 200;
type Device = DeviceServer<PeerId, OBSERVERS, REMEMBERED, MESSAGE>;

/// The body of a response, by the last segment of its path.
fn body(path: &[u8], state: u8) -> Vec<u8> {
    match path {
        b"long" => (0..=255).chain(0..44).collect(),
        b"state" => vec![state; 5],
        _ => b"s".to_vec(),
    }
}

fn path<'m>(message: &Message<'m>) -> &'m [u8] {
    message.option(OptionNumber::URI_PATH).map_or(&b""[..], |option| option.value)
}

/// The datagrams without the texts of errors, which a device spares.
fn without_texts(datagrams: &[(PeerId, Vec<u8>)]) -> Vec<(PeerId, &[u8])> {
    let cut = |(to, bytes): &'_ (PeerId, Vec<u8>)| {
        let message = Message::parse(bytes).expect("a message");
        let text = if message.code().class() < 4 { 0 } else { message.payload().len() };
        (*to, bytes.len() - text - usize::from(text > 0))
    };
    datagrams.iter().map(|it| (cut(it).0, &it.1[..cut(it).1])).collect()
}

/// The device's resources.
struct Resources {
    state: Rc<Cell<u8>>,
    calls: usize,
}

impl DeviceHandler for Resources {
    fn answer(&mut self, message: &Message<'_>, offset: usize, room: &mut [u8]) -> DeviceAnswer {
        self.calls += 1;
        match message.code() {
            Code::POST => DeviceAnswer::new(Code::CREATED),
            Code::PUT => DeviceAnswer::new(Code::CHANGED),
            _ => {
                let body = body(path(message), self.state.get());
                let rest = body.get(offset..).unwrap_or_default();
                let length = rest.len().min(room.len());
                room[..length].copy_from_slice(&rest[..length]);
                let subject = (path(message) == b"state").then_some(SUBJECT.id as u8);
                let etag = (body.len() > BLOCK).then_some(7);
                let total = body.len();
                DeviceAnswer { subject, etag, total, ..DeviceAnswer::content(length) }
            }
        }
    }

    fn state(&mut self, subject: u8, room: &mut [u8]) -> DeviceAnswer {
        assert_eq!(u32::from(subject), SUBJECT.id);
        room[..5].fill(self.state.get());
        DeviceAnswer::content(5)
    }
}

struct Both<'t> {
    many: Bench,
    few: DeviceEndpoint<'t, PeerId, Fasor>,
    server: Device,
    resources: Resources,
    rng: SplitMix,
    state: Rc<Cell<u8>>,
    /// The datagrams of the last step.
    left: Vec<(PeerId, Vec<u8>)>,
    due: Option<Instant>,
}

type Tables = DeviceTables<PeerId, Fasor, 4, 4, MESSAGE>;

impl<'t> Both<'t> {
    fn new(tables: &'t mut Tables, seed: u64) -> Self {
        let state = Rc::new(Cell::new(0));
        let of_many = state.clone();
        let mut many = Bench::new(
            |config| config.block_size = BLOCK,
            move |message, _| {
                Does::Answers(match message.code() {
                    Code::POST => Response::new(Code::CREATED),
                    Code::PUT => Response::new(Code::CHANGED),
                    _ => {
                        let body = body(path(message), of_many.get());
                        let response = Response::content(body.clone());
                        if body.len() > BLOCK { response.etag(&[0, 0, 0, 7]) } else { response }
                    }
                })
            },
        );
        many.max_observers = OBSERVERS;
        let control = ControlConfig::new(Algorithm::FasorToken);
        let config = EndpointConfig { control, ..EndpointConfig::default() };
        many.endpoint = Endpoint::new(config, Box::new(SplitMix(seed)));
        let mut rng = SplitMix(seed);
        // The endpoint for many peers draws the seeds of its hash tables.
        let _ = [(); 3].map(|()| rng.next_u64());
        // The generator of the bench's session.
        let mut keys = ChaCha8Rng::seed_from_u64(1);
        let server =
            Device::new(DeviceVerify::Challenge { key: (keys.next_u64(), keys.next_u64()) });
        let few = tables.endpoint(DeviceConfig::fasor_token());
        let resources = Resources { state: state.clone(), calls: 0 };
        Self { many, few, server, resources, rng, state, left: Vec::new(), due: None }
    }

    /// The device's step, and the comparison with the other's, which was made.
    fn compare(
        &mut self,
        few: impl FnOnce(
            &mut Device,
            &mut DeviceEndpoint<'t, PeerId, Fasor>,
            &mut Io<'_, PeerId>,
            &mut Resources,
        ),
    ) {
        self.many.notify(&Response::content(body(b"state", self.state.get())));
        self.many.drain();
        let due = match self.many.endpoint.poll_output() {
            Output::Timeout(at) => at,
            other => panic!("{other:?}"),
        };
        let mut left = Vec::new();
        let mut io = Io {
            now: self.many.now,
            rng: &mut self.rng,
            send: &mut |to, datagram: &[u8]| left.push((to, datagram.to_vec())),
        };
        few(&mut self.server, &mut self.few, &mut io, &mut self.resources);
        self.due = loop {
            self.server.notify(&mut self.few, &mut io, &mut self.resources);
            match self.few.poll(&mut io) {
                DevicePoll::Failed { exchange, .. } => self.server.lost(exchange),
                DevicePoll::Wait(at) => break at,
            }
        };
        let of_many = std::mem::take(&mut self.many.log);
        assert_eq!(without_texts(&of_many), without_texts(&left), "at {:?}", self.many.now);
        assert_eq!(due, self.due, "at {:?}", self.many.now);
        assert_eq!(self.many.observers.len(), self.server.observers());
        self.left = left;
    }

    fn arrive(&mut self, from: PeerId, datagram: &[u8]) {
        self.many.take(from, datagram);
        self.compare(|server, few, io, resources| match few.receive(io, from, datagram) {
            DeviceReceived::Request(request, message) => {
                server.receive(few, io, &request, &message, resources);
            }
            DeviceReceived::Acknowledged(exchange) => server.acknowledged(exchange),
            DeviceReceived::Reset(exchange) => server.lost(exchange),
            _ => {}
        });
    }

    fn change(&mut self) {
        self.state.set(self.state.get().wrapping_add(1));
        self.many.observers.changed(SUBJECT.id);
        self.compare(|server, _, _, _| server.changed(SUBJECT.id as u8));
    }

    /// Lets time pass, timer by timer.
    fn pass(&mut self, span: Duration) -> Vec<(PeerId, Vec<u8>)> {
        let end = self.many.now + span;
        let mut all = Vec::new();
        while let Some(due) = self.due.filter(|due| *due <= end) {
            self.many.advance(due);
            self.compare(|_, _, _, _| {});
            all.append(&mut self.left);
        }
        self.many.advance(end);
        self.compare(|_, _, _, _| {});
        all.append(&mut self.left);
        all
    }
}

/// What is counted of a session.
#[derive(Default)]
struct Counts {
    datagrams: usize,
    challenges: usize,
    notifications: usize,
}

/// A client, who may be a victim whose address is forged.
#[derive(Default)]
struct Client {
    sent: Vec<Vec<u8>>,
    value: Option<Vec<u8>>,
    /// Confirmable messages to it.
    heard: Vec<[u8; 2]>,
    uploads: bool,
    observes: bool,
    /// The next block of its upload.
    block: u32,
    sent_bytes: usize,
    got_bytes: usize,
    is_proved: bool,
}

fn request(client: &mut Client, rng: &mut SplitMix, id: u16) -> Vec<u8> {
    let drawn = rng.next_u32();
    let mut asked = match drawn % 12 {
        0..2 => ask(Code::GET, id, "short"),
        2..4 => ask(Code::GET, id, "long"),
        4 => {
            // Blocks that are near the limit of an amplification are estimated differently.
            let block = Block::new((drawn >> 8) % 12, false, (drawn >> 16) as u8 % 2).unwrap();
            ask(Code::GET, id, "long").option(23, encode_uint(block.to_uint(), &mut [0; 4]))
        }
        5 => ask(Code::POST, id, "made").payload(&drawn.to_be_bytes()),
        6 => ask(Code::PUT, id, "put").payload(b"state"),
        // A device takes one body at a time.
        7 if client.uploads => {
            let more = client.block < 3;
            let block = Block::new(client.block, more, 0).unwrap();
            client.block = if more { client.block + 1 } else { 0 };
            if client.block < 2 {
                // Late copies of the blocks of a complete body are answered 2.31 by a device, and 4.08 by a host.
                client.sent.retain(|bytes| path(&Message::parse(bytes).unwrap()) != b"up");
            }
            let value = encode_uint(block.to_uint(), &mut [0; 4]).to_vec();
            ask(Code::PUT, id, "up").option(27, &value).payload(&[b'u'; 16])
        }
        8 => ask(Code::GET, id, "nothing").option(9, b"critical"),
        // The servers notify several observers in different orders.
        10 if client.observes => ask(Code::GET, id, "state").option(6, &[1]),
        _ if client.observes => ask(Code::GET, id, "state").option(6, &[]),
        _ => ask(Code::GET, id, "state"),
    };
    if let Some(value) = client.value.clone().filter(|_| drawn & 0x100_0000 > 0) {
        asked = asked.option(252, &value);
    }
    if drawn >> 29 == 0 {
        asked.kind = Type::NonConfirmable;
    }
    let observes = asked.options.iter().any(|it| it.0 == 6);
    let mut bytes = asked.bytes();
    if observes {
        // The token of the observation.
        bytes[4..6].fill(0);
    }
    bytes
}

/// One session, by a seed.
fn play(seed: u64, counts: &mut Counts) {
    let mut tables = DeviceTables::new();
    let mut both = Both::new(&mut tables, seed);
    let mut rng = SplitMix(seed ^ 0x5eed);
    let mut clients: [Client; CLIENTS as usize] = Default::default();
    clients[0].uploads = true;
    clients[1].observes = true;
    for step in 0..150 {
        let drawn = rng.next_u32();
        let which = drawn as usize >> 8;
        let n = (drawn >> 4) as usize % clients.len();
        let (client, from) = (&mut clients[n], peer(n as u8 + 1));
        let mut left = both.pass(Duration::from_micros(20_000 + u64::from(drawn >> 20)));
        let datagram = match drawn % 16 {
            0..7 => {
                let bytes = request(client, &mut rng, step);
                client.is_proved |= client.value.as_ref().is_some_and(|value| {
                    bytes.windows(value.len()).any(|window| window == value.as_slice())
                });
                let is_last = client.block == 0 && path(&Message::parse(&bytes).unwrap()) == b"up";
                if !is_last {
                    client.sent.push(bytes.clone());
                }
                Some(bytes)
            }
            7 | 8 if !client.sent.is_empty() => {
                Some(client.sent[which % client.sent.len()].clone())
            }
            9..12 if !client.heard.is_empty() => {
                let [high, low] = client.heard.remove(0);
                client.is_proved = true;
                Some(vec![if drawn % 16 == 11 { 0x70 } else { 0x60 }, 0, high, low])
            }
            12 | 13 => {
                both.change();
                None
            }
            14 => {
                left.append(&mut both.pass(Duration::from_millis(u64::from(drawn >> 16))));
                None
            }
            _ => None,
        };
        if let Some(datagram) = datagram {
            clients[n].sent_bytes += datagram.len() + HEADERS;
            both.arrive(from, &datagram);
        }
        left.append(&mut both.left);
        counts.datagrams += left.len();
        for (to, bytes) in left {
            let n = (1..=CLIENTS).find(|n| peer(*n) == to).expect("a client") - 1;
            let client = &mut clients[usize::from(n)];
            client.got_bytes += bytes.len() + HEADERS;
            let (got, sent) = (client.got_bytes, client.sent_bytes);
            assert!(client.is_proved || got <= 3 * sent, "{got} bytes for {sent}");
            let message = Message::parse(&bytes).unwrap();
            if let Some(echo) = message.option(OptionNumber::ECHO) {
                counts.challenges += usize::from(message.code() == Code::UNAUTHORIZED);
                client.value = Some(echo.value.to_vec());
            }
            if message.kind() == Type::Confirmable {
                counts.notifications += 1;
                client.heard.push(message.message_id().0.to_be_bytes());
            }
        }
    }
}

#[test]
fn the_datagrams_of_a_devices_server_are_those_of_the_server_of_hosts() {
    let mut counts = Counts::default();
    for seed in 0..300 {
        play(seed, &mut counts);
    }
    let Counts { datagrams, challenges, notifications } = counts;
    assert!(
        datagrams > 20_000 && challenges > 500 && notifications > 2_000,
        "{datagrams} datagrams, {challenges} challenges, {notifications} notifications"
    );
}
