//! Clients and servers that restart at any time, and attackers who replay what they captured: no
//! nonce protects two messages, and no request is handled twice.

use crate::common::split_mix::SplitMix;
use ebbtide_core::oscore::{
    Algorithm, Freshness, MasterSecret, Numbering, OscoreOption, SecurityContext, SequenceStore,
};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use rand_core::Rng;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Storage that survives its program, which may die before or after each write.
#[derive(Clone)]
struct Disk {
    stored: Rc<Cell<u64>>,
    /// How many steps the program lives.
    life: Rc<Cell<u32>>,
}

impl Disk {
    /// Lives one step; false if the program is dead.
    fn step(&self) -> bool {
        self.life.set(self.life.get().saturating_sub(1));
        self.life.get() > 0
    }
}

impl SequenceStore for Disk {
    fn reserve(&mut self, limit: u64) -> bool {
        assert!(limit > self.stored.get(), "a limit only grows");
        if !self.step() {
            return false;
        }
        self.stored.set(limit);
        self.step()
    }
}

const SECRET: MasterSecret<'static> = MasterSecret {
    secret: &[7; 16],
    salt: &[],
    id_context: None,
    algorithm: Algorithm::AesCcm16_64_128,
};

#[test]
fn no_nonce_is_used_twice_whenever_the_sender_dies() {
    let mut rng = SplitMix(8613);
    let disk = Disk { stored: Rc::default(), life: Rc::default() };
    let (mut used, mut sent) = (BTreeSet::new(), 0);
    for death in 0..1000 {
        disk.life.set(1 + rng.next_u32() % 300);
        let limit = disk.stored.get();
        let numbering = if death == 0 { Numbering::Fresh } else { Numbering::Resumed(limit) };
        let mut sender =
            SecurityContext::resume(&SECRET, b"c", b"s", numbering, disk.clone()).unwrap();
        let content = Content { code: Code::GET, options: &[], payload: &[] };
        let (before, mut last) = (sent, None);
        while disk.step() {
            let mut buf = [0; 32];
            let Ok((outer, number)) = sender.protect_request(&content, &mut buf) else { break };
            let seen = OscoreOption::decode(outer.value.as_slice()).unwrap().partial_iv.unwrap();
            assert_eq!(seen, number.get());
            assert!(used.insert(seen), "nonce {seen} again after death {death}");
            (sent, last) = (sent + 1, Some(seen));
        }
        let lost = disk.stored.get() - last.map_or(limit, |last| last + 1);
        assert!(lost <= 64 + (sent - before), "{lost} numbers were lost after {}", sent - before);
    }
    assert!(sent > 50_000, "{sent} requests were sent");
}

fn encode(code: Code, options: &[Opt<'_>], payload: &[u8]) -> Vec<u8> {
    let content = Content { code, options, payload };
    let mut buf = vec![0; 4 + content.encoded_len()];
    content.encode(&mut buf, Type::NonConfirmable, MessageId(0), Token::EMPTY).unwrap();
    buf
}

/// A server with a context that it resumes, and what it has handled in all its lives.
struct Server {
    disk: Disk,
    context: SecurityContext<Disk>,
    /// Its values of Echo: one for each life.
    life: u8,
    handled: BTreeSet<Vec<u8>>,
    challenges: u32,
}

impl Server {
    fn new() -> Self {
        let disk = Disk { stored: Rc::default(), life: Rc::new(Cell::new(u32::MAX)) };
        let context = SecurityContext::new(&SECRET, b"s", b"c", disk.clone()).unwrap();
        Self { disk, context, life: 0, handled: BTreeSet::new(), challenges: 0 }
    }

    fn restart(&mut self) {
        self.life += 1;
        let numbering = Numbering::Resumed(self.disk.stored.get());
        self.context =
            SecurityContext::resume(&SECRET, b"s", b"c", numbering, self.disk.clone()).unwrap();
    }

    /// Receives a datagram. Returns the value to echo if it asks for one.
    fn receive(&mut self, datagram: &[u8]) -> Option<[u8; 1]> {
        let mut buf = vec![0; 2 * datagram.len()];
        let opened =
            self.context.unprotect_request(&Message::parse(datagram).unwrap(), &mut buf).ok()?;
        let plain = Message::parse(&buf[..opened.len]).unwrap();
        if opened.freshness == Freshness::Unknown {
            let fresh =
                plain.option(OptionNumber::ECHO).is_some_and(|echo| echo.value == [self.life]);
            if !fresh {
                self.challenges += 1;
                let challenge = Content { code: Code::UNAUTHORIZED, options: &[], payload: &[] };
                let mut buf = [0; 64];
                let outer =
                    self.context.protect_response(opened.number, &challenge, &mut buf).unwrap();
                assert!(!outer.value.as_slice().is_empty(), "a challenge has a number of its own");
                return Some([self.life]);
            }
            if !self.context.accept(opened.number) {
                return None;
            }
        }
        assert!(self.handled.insert(plain.payload().to_vec()), "handled twice");
        None
    }
}

#[test]
fn a_captured_request_that_is_replayed_at_any_later_time_is_never_handled_twice() {
    for seed in 0..20 {
        let mut rng = SplitMix(seed);
        let mut server = Server::new();
        let client_disk = Disk { stored: Rc::default(), life: Rc::new(Cell::new(u32::MAX)) };
        let mut client = SecurityContext::new(&SECRET, b"c", b"s", client_disk.clone()).unwrap();
        let (mut captured, mut delayed) = (Vec::new(), Vec::new());
        let mut body = 0_u32;
        for _ in 0..2000 {
            match rng.next_u32() % 100 {
                0 => server.restart(),
                1 => {
                    let numbering = Numbering::Resumed(client_disk.stored.get());
                    client = SecurityContext::resume(
                        &SECRET,
                        b"c",
                        b"s",
                        numbering,
                        client_disk.clone(),
                    )
                    .unwrap();
                }
                // The attacker repeats something, or delays it for the first time.
                2..40 if !captured.is_empty() => {
                    let at = rng.next_u32() as usize % captured.len();
                    let datagram: &Vec<u8> = &captured[at];
                    server.receive(datagram);
                }
                40..50 if !delayed.is_empty() => {
                    let at = rng.next_u32() as usize % delayed.len();
                    let datagram: Vec<u8> = delayed.swap_remove(at);
                    server.receive(&datagram);
                }
                kind => {
                    // A request: new, or the one before with what the server gave to echo.
                    body += 1;
                    let mut echo: Option<[u8; 1]> = None;
                    for _ in 0..2 {
                        let payload = [body.to_be_bytes(), [echo.is_some().into(); 4]].concat();
                        let options: Vec<_> = echo
                            .iter()
                            .map(|value| Opt { number: OptionNumber::ECHO, value })
                            .collect();
                        let content =
                            Content { code: Code::POST, options: &options, payload: &payload };
                        let mut buf = [0; 64];
                        let (outer, _) = client.protect_request(&content, &mut buf).unwrap();
                        let options: Vec<_> = outer.options(&content).collect();
                        let datagram = encode(outer.code, &options, outer.payload);
                        captured.push(datagram.clone());
                        if kind < 60 {
                            delayed.push(datagram);
                            break;
                        }
                        echo = server.receive(&datagram);
                        if echo.is_none() {
                            break;
                        }
                    }
                }
            }
        }
        assert!(server.handled.len() > 500, "{} requests were handled", server.handled.len());
        assert!(server.life == 0 || server.challenges > 0);
    }
}

#[test]
fn nothing_is_sent_if_its_number_cannot_be_reserved() {
    let disk = Disk { stored: Rc::default(), life: Rc::new(Cell::new(1)) };
    let mut sender = SecurityContext::new(&SECRET, b"c", b"s", disk).unwrap();
    let content = Content { code: Code::GET, options: &[], payload: &[] };
    assert!(sender.protect_request(&content, &mut [0; 32]).is_err());
}

#[test]
fn a_context_ends_with_its_numbers() {
    let all = Numbering::Resumed(ebbtide_core::oscore::MAX_SEQUENCE_NUMBER);
    let disk = Disk { stored: Rc::default(), life: Rc::new(Cell::new(u32::MAX)) };
    let mut sender = SecurityContext::resume(&SECRET, b"c", b"s", all, disk).unwrap();
    let content = Content { code: Code::GET, options: &[], payload: &[] };
    assert!(sender.protect_request(&content, &mut [0; 32]).is_ok());
    for _ in 0..2 {
        assert!(sender.protect_request(&content, &mut [0; 32]).is_err());
    }
}
