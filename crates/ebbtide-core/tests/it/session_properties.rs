//! Random sequences of what clients, forgers, handlers and time do to a server's session.

use crate::common::server_session::{Ask, Bench, Does, HEADERS, SUBJECT, ask, at, peer};
use ebbtide_core::PeerId;
use ebbtide_core::session::Response;
use ebbtide_core::time::Duration;
use ebbtide_core::wire::{Code, Message, OptionNumber, Type};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

const ECHO: u16 = 252;
const CLIENTS: u8 = 5;
/// Of `POST`, by payload.
type Runs = Rc<RefCell<BTreeMap<Vec<u8>, usize>>>;

/// What a client knows and has done.
#[derive(Default)]
struct Client {
    /// It has echoed, and is believed.
    verified: bool,
    sent_bytes: usize,
    got_bytes: usize,
    sent: Vec<Vec<u8>>,
    /// By message ID.
    asked: BTreeMap<u16, Ask>,
    challenged: Vec<(Ask, Vec<u8>)>,
    /// Confirmable messages of the server.
    to_acknowledge: Vec<[u8; 2]>,
    /// The next block of its upload.
    block: u8,
}

struct World {
    bench: Bench,
    clients: Vec<Client>,
    rng: ChaCha8Rng,
    next_id: u16,
    runs: Runs,
}

impl World {
    fn new(seed: u64) -> Self {
        let runs = Runs::default();
        let counted = runs.clone();
        let bench = Bench::new(
            |config| {
                config.block_size = 128;
                config.max_withheld = 8;
                config.max_block_bytes = 2000;
            },
            move |message, body| {
                let path = message.path().next().unwrap_or_default();
                match (message.code(), path) {
                    (Code::POST, _) => {
                        *counted.borrow_mut().entry(body.to_vec()).or_default() += 1;
                        let long = body.first().is_some_and(|first| first % 2 == 0);
                        let length = if long { 250 } else { 3 };
                        if body.first().is_some_and(|first| first % 3 == 0) {
                            return Does::Waits;
                        }
                        Does::Answers(Response::new(Code::CREATED).payload(vec![b'p'; length]))
                    }
                    (Code::PUT, _) => {
                        assert!(body.iter().enumerate().all(|(n, byte)| *byte == (n / 64) as u8));
                        Does::Answers(Response::new(Code::CHANGED).payload(body.to_vec()))
                    }
                    (_, b"slow") => Does::Waits,
                    (_, b"long") => Does::Answers(Response::content(vec![b'l'; 300])),
                    _ => Does::Answers(Response::content("s")),
                }
            },
        );
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        Self { bench, clients, rng, next_id: 0, runs }
    }

    fn draw(&mut self, below: u32) -> u32 {
        self.rng.next_u32() % below
    }

    fn deliver(&mut self, n: usize, datagram: &[u8]) {
        self.clients[n].sent_bytes += datagram.len() + HEADERS;
        self.bench.take(peer(n as u8), datagram);
        self.hear();
    }

    fn send(&mut self, n: usize, mut request: Ask) {
        self.next_id += 1;
        request.id = self.next_id;
        let bytes = request.bytes();
        self.clients[n].sent.push(bytes.clone());
        self.clients[n].asked.insert(request.id, request);
        self.deliver(n, &bytes);
    }

    /// What left reaches its clients, half of it: they learn of challenges and of what to acknowledge.
    fn hear(&mut self) {
        for (to, bytes) in std::mem::take(&mut self.bench.log) {
            let PeerId::Address(SocketAddr::V4(v4)) = to else { panic!("{to}") };
            let heard = self.draw(2) == 0;
            let client = &mut self.clients[usize::from(v4.ip().octets()[3])];
            client.got_bytes += bytes.len() + HEADERS;
            let unverified = !client.verified;
            let (got, sent) = (client.got_bytes, client.sent_bytes);
            assert!(!unverified || got <= 3 * sent, "{got} bytes to one that sent {sent}");
            if !heard {
                continue;
            }
            let message = Message::parse(&bytes).unwrap();
            if message.kind() == Type::Confirmable {
                client.to_acknowledge.push(message.message_id().0.to_be_bytes());
            }
            // Of a separate response the message ID is the server's. A copy of the challenge is ignored,
            // or the client would make two requests of one.
            if message.kind() == Type::Acknowledgement
                && let Some(echo) = message.option(OptionNumber::ECHO)
                && let Some(asked) = client.asked.remove(&message.message_id().0)
            {
                client.challenged.push((asked, echo.value.to_vec()));
            }
        }
    }

    fn step(&mut self) {
        let n = self.draw(CLIENTS.into()) as usize;
        let id = 0;
        match self.draw(13) {
            0 => self.send(n, ask(Code::GET, id, "s")),
            1 => self.send(n, ask(Code::GET, id, "long")),
            2 => self.send(n, ask(Code::GET, id, "slow")),
            3 | 4 => {
                let unique =
                    [self.draw(256) as u8, n as u8, (self.next_id >> 8) as u8, self.next_id as u8];
                self.send(n, ask(Code::POST, id, "p").payload(&unique));
            }
            5 if !self.clients[n].sent.is_empty() => {
                // A copy, late or early.
                let which = self.draw(self.clients[n].sent.len() as u32) as usize;
                let copy = self.clients[n].sent[which].clone();
                self.deliver(n, &copy);
            }
            6 if !self.bench.pending.is_empty() => {
                let length = [3, 300][self.draw(2) as usize];
                self.bench.answer(Response::content(vec![b'a'; length]));
                self.hear();
            }
            7 => {
                for which in 0..self.bench.pending.len() {
                    let acknowledgement = self.bench.pending[which].acknowledge();
                    if self.draw(2) == 0 {
                        self.bench.send_one(&acknowledgement);
                    }
                }
                self.bench.drain();
                self.hear();
            }
            8 => self.send(n, ask(Code::GET, id, "s").option(6, &[])),
            9 => {
                self.bench.observers.changed(SUBJECT.id);
                self.bench.notify(&Response::content("state"));
                self.bench.drain();
                self.hear();
            }
            10 => {
                let block = self.clients[n].block % 4;
                let option = block << 4 | 2 | if block < 3 { 8 } else { 0 };
                self.clients[n].block = if self.draw(8) == 0 { 0 } else { block + 1 };
                let request = ask(Code::PUT, id, "up").option(27, &[option]);
                self.send(n, request.payload(&[block; 64]));
            }
            11 if !self.clients[n].challenged.is_empty() => {
                let (request, echo) = self.clients[n].challenged.remove(0);
                if request.options.iter().any(|(number, _)| *number == ECHO) {
                    return;
                }
                // It echoes within a minute: the challenge is good.
                self.clients[n].verified = true;
                self.send(n, request.option(ECHO, &echo));
            }
            12 if !self.clients[n].to_acknowledge.is_empty() => {
                let [a, b] = self.clients[n].to_acknowledge.remove(0);
                let kind = if self.draw(4) == 0 { 0x70 } else { 0x60 };
                self.deliver(n, &[kind, 0, a, b]);
            }
            _ => {
                let later = self.bench.now + Duration::from_millis(self.draw(500).into());
                self.bench.advance(later);
                self.hear();
            }
        }
        let load = self.bench.session.load(self.bench.now);
        assert!(load.withheld <= 8 && load.block_bytes <= 2000, "{load:?}");
    }

    fn end(mut self, seed: u64) {
        for (payload, runs) in &*self.runs.borrow() {
            assert!(*runs <= 1, "seed {seed}: the handler ran {runs} times for {payload:?}");
        }
        while !self.bench.pending.is_empty() {
            self.bench.answer(Response::content("late"));
        }
        self.bench.advance(at(5000));
        let load = self.bench.session.load(self.bench.now);
        let held = (load.withheld, load.uploads, load.downloads, load.block_bytes, load.verified);
        assert_eq!(held, (0, 0, 0, 0, 0), "seed {seed}");
        assert_eq!(self.bench.endpoint.open_exchanges(), 0, "seed {seed}");
    }
}

#[test]
fn for_all_scripts_no_post_is_handled_twice_forged_addresses_get_little_and_nothing_is_left() {
    for seed in 0..1000 {
        let mut world = World::new(seed);
        for _ in 0..120 {
            world.step();
        }
        world.end(seed);
    }
}
