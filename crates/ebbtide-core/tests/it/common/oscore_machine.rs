//! Two peers that share a context of OSCORE, both with both roles, over a wire that loses, repeats,
//! delays, damages and reflects, driven by a script. They restart at any time.
//!
//! - No nonce protects two messages.
//! - What is accepted was said by the other one, and no request is accepted twice, whatever restarts.
//! - A response answers the request whose number it was protected for; notifications come in order.
//!
//! The test `oscore_machine` and the fuzz target `oscore_session` share this file.

use ebbtide_core::oscore::{
    Algorithm, Freshness, MasterSecret, NotificationOrder, Numbering, OscoreOption, OuterMessage,
    RequestNumber, SecurityContext, SequenceStore,
};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

const SECRET: MasterSecret<'static> = MasterSecret {
    secret: &[7; 16],
    salt: &[],
    id_context: None,
    algorithm: Algorithm::AesCcm16_64_128,
};
const IDS: [&[u8]; 2] = [b"a", b"b"];
/// Of messages that wait, requests that are open, and requests to answer: the oldest make room.
const MOST: usize = 24;

#[derive(Clone, Default)]
struct Disk(Rc<Cell<u64>>);

impl SequenceStore for Disk {
    fn reserve(&mut self, limit: u64) -> bool {
        assert!(limit > self.0.get(), "a limit only grows");
        self.0.set(limit);
        true
    }
}

/// A request that may be answered.
struct Asked {
    body: u32,
    number: RequestNumber,
    order: NotificationOrder,
    /// The last notification.
    heard: Option<u8>,
}

/// A request that was accepted.
struct Accepted {
    body: u32,
    number: RequestNumber,
    observes: bool,
    answers: u8,
}

struct Side {
    disk: Disk,
    context: SecurityContext<Disk>,
    /// The value of its Echo options.
    life: u8,
    asked: Vec<Asked>,
    accepted: Vec<Accepted>,
    /// The value that the other one wants echoed.
    echo: Option<u8>,
}

fn context(who: usize, numbering: Numbering, disk: &Disk) -> SecurityContext<Disk> {
    SecurityContext::resume(&SECRET, IDS[who], IDS[1 - who], numbering, disk.clone())
        .expect("good parameters")
}

struct Flying {
    to: usize,
    bytes: Vec<u8>,
}

/// What has happened in a script.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) accepted: usize,
    pub(crate) answered: usize,
    pub(crate) notified: usize,
    pub(crate) challenged: usize,
    pub(crate) refused: usize,
}

struct World {
    sides: [Side; 2],
    wire: Vec<Flying>,
    bodies: u32,
    /// By the side whose key they were used with, and the side whose number they have.
    nonces: BTreeSet<(usize, usize, u64)>,
    handled: BTreeSet<u32>,
    summary: Summary,
}

fn make_room<T>(places: &mut Vec<T>) {
    if places.len() >= MOST {
        places.remove(0);
    }
}

impl World {
    fn new() -> Self {
        let side = |who| {
            let disk = Disk::default();
            let context = context(who, Numbering::Fresh, &disk);
            Side { disk, context, life: 0, asked: Vec::new(), accepted: Vec::new(), echo: None }
        };
        Self {
            sides: [side(0), side(1)],
            wire: Vec::new(),
            bodies: 0,
            nonces: BTreeSet::new(),
            handled: BTreeSet::new(),
            summary: Summary::default(),
        }
    }

    fn send(&mut self, from: usize, body: u32, outer: &OuterMessage<'_>, content: &Content<'_>) {
        let options: Vec<_> = outer.options(content).collect();
        let sealed = Content { code: outer.code, options: &options, payload: outer.payload };
        let mut bytes = vec![0; 8 + sealed.encoded_len()];
        let token = Token::new(&body.to_be_bytes()).expect("four bytes");
        let id = MessageId(body as u16);
        let length = sealed.encode(&mut bytes, Type::NonConfirmable, id, token);
        bytes.truncate(length.expect("there is room").len);
        make_room(&mut self.wire);
        self.wire.push(Flying { to: 1 - from, bytes });
    }

    fn use_nonce(&mut self, key: usize, of: usize, number: u64) {
        assert!(self.nonces.insert((key, of, number)), "a nonce protects two messages");
    }

    fn request(&mut self, who: usize, observes: bool) {
        self.bodies += 1;
        let body = self.bodies;
        let payload = body.to_be_bytes();
        let echo = self.sides[who].echo.map(|life| [life]);
        let mut options = Vec::new();
        if observes {
            options.push(Opt { number: OptionNumber::OBSERVE, value: b"" });
        }
        options.extend(echo.iter().map(|value| Opt { number: OptionNumber::ECHO, value }));
        let code = if observes { Code::GET } else { Code::POST };
        let content = Content { code, options: &options, payload: &payload };
        let mut buf = [0; 64];
        let sealed = self.sides[who].context.protect_request(&content, &mut buf);
        let (outer, number) = sealed.expect("there are numbers and room");
        self.use_nonce(who, who, number.get());
        self.send(who, body, &outer, &content);
        let asked = &mut self.sides[who].asked;
        make_room(asked);
        asked.push(Asked { body, number, order: NotificationOrder::default(), heard: None });
    }

    /// An answer, or a challenge; of a registration a notification.
    fn respond(&mut self, who: usize, accepted: &Accepted, code: Code) {
        let mut payload = accepted.body.to_be_bytes().to_vec();
        payload.push(accepted.answers);
        let value = [self.sides[who].life];
        let option = match code {
            Code::UNAUTHORIZED => Some(Opt { number: OptionNumber::ECHO, value: &value }),
            _ if accepted.observes => Some(Opt { number: OptionNumber::OBSERVE, value: b"" }),
            _ => None,
        };
        let content = Content { code, options: option.as_slice(), payload: &payload };
        let mut buf = [0; 64];
        let context = &mut self.sides[who].context;
        let sealed = context.protect_response(accepted.number, &content, &mut buf);
        let outer = sealed.expect("there are numbers and room");
        let own = OscoreOption::decode(outer.value.as_slice()).and_then(|option| option.partial_iv);
        match own {
            Some(number) => self.use_nonce(who, who, number),
            None => self.use_nonce(who, 1 - who, accepted.number.get()),
        }
        self.send(who, accepted.body, &outer, &content);
    }

    fn deliver(&mut self, to: usize, bytes: &[u8]) {
        let Ok(message) = Message::parse(bytes) else { return };
        match message.code().is_request() {
            true => self.deliver_request(to, &message),
            false => self.deliver_response(to, &message),
        }
    }

    fn deliver_request(&mut self, to: usize, message: &Message<'_>) {
        let mut buf = vec![0; 2 * message.as_bytes().len()];
        let side = &mut self.sides[to];
        let Ok(opened) = side.context.unprotect_request(message, &mut buf) else {
            self.summary.refused += 1;
            return;
        };
        let plain = Message::parse(&buf[..opened.len]).expect("a message");
        let body = u32::from_be_bytes(plain.payload().try_into().expect("what was said"));
        let observes = plain.option(OptionNumber::OBSERVE).is_some();
        let accepted = Accepted { body, number: opened.number, observes, answers: 0 };
        if opened.freshness == Freshness::Unknown {
            let echo = plain.option(OptionNumber::ECHO).map(|echo| echo.value.to_vec());
            if echo.is_none_or(|echo| echo != [side.life]) {
                self.summary.challenged += 1;
                let accepted = Accepted { observes: false, ..accepted };
                return self.respond(to, &accepted, Code::UNAUTHORIZED);
            }
            if !side.context.accept(opened.number) {
                return;
            }
        }
        assert!(self.handled.insert(body), "handled twice");
        self.summary.accepted += 1;
        make_room(&mut self.sides[to].accepted);
        self.sides[to].accepted.push(accepted);
    }

    fn deliver_response(&mut self, to: usize, message: &Message<'_>) {
        let side = &mut self.sides[to];
        let mut buf = vec![0; 2 * message.as_bytes().len()];
        // Whichever it is taken for, it answers only one of them.
        for asked in &mut side.asked {
            let opened =
                side.context.unprotect_response(asked.number, &mut asked.order, message, &mut buf);
            let Ok(length) = opened else { continue };
            let plain = Message::parse(&buf[..length]).expect("a message");
            let (said, answers) = plain.payload().split_first_chunk::<4>().expect("what was said");
            assert_eq!(u32::from_be_bytes(*said), asked.body, "the answer to another request");
            if plain.code() == Code::UNAUTHORIZED {
                let echo = plain.option(OptionNumber::ECHO).expect("a challenge");
                side.echo = echo.value.first().copied();
            } else if plain.option(OptionNumber::OBSERVE).is_some() {
                let number = answers[0];
                assert!(asked.heard.is_none_or(|heard| heard < number), "out of order");
                asked.heard = Some(number);
                self.summary.notified += 1;
            } else {
                self.summary.answered += 1;
            }
            return;
        }
        self.summary.refused += 1;
    }

    fn restart(&mut self, who: usize) {
        let side = &mut self.sides[who];
        side.life = side.life.wrapping_add(1);
        side.context = context(who, Numbering::Resumed(side.disk.0.get()), &side.disk);
        (side.asked, side.accepted, side.echo) = (Vec::new(), Vec::new(), None);
    }
}

/// Plays a script. Of each step the first byte says what happens and to whom, the second one where.
pub(crate) fn play(script: &[u8]) -> Summary {
    let mut world = World::new();
    for step in script.chunks_exact(2) {
        let (who, what) = (usize::from(step[0] >> 7), step[0] & 0x1f);
        let at = usize::from(step[1]);
        match what {
            0..8 => world.request(who, what & 1 == 1),
            8..15 if !world.sides[who].accepted.is_empty() => {
                let at = at % world.sides[who].accepted.len();
                let mut accepted = world.sides[who].accepted.remove(at);
                world.respond(who, &accepted, Code::CONTENT);
                if accepted.observes && accepted.answers < u8::MAX {
                    accepted.answers += 1;
                    world.sides[who].accepted.push(accepted);
                }
            }
            15 if at < 32 => world.restart(who),
            _ if !world.wire.is_empty() => {
                let at = at % world.wire.len();
                let Flying { to, mut bytes } = world.wire.remove(at);
                match step[0] >> 5 & 3 {
                    // Once more, later.
                    0 if what >= 28 => {
                        world.deliver(to, &bytes);
                        make_room(&mut world.wire);
                        world.wire.push(Flying { to, bytes });
                    }
                    // Lost.
                    1 if what >= 28 => {}
                    // Back to its sender.
                    2 if what >= 28 => world.deliver(1 - to, &bytes),
                    // Damaged.
                    3 if what >= 28 => {
                        let place = usize::from(step[1]) * 7 % bytes.len();
                        bytes[place] ^= 1 << (what & 3);
                        world.deliver(to, &bytes);
                    }
                    _ => world.deliver(to, &bytes),
                }
            }
            _ => {}
        }
    }
    world.summary
}
