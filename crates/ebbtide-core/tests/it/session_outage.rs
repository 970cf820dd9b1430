//! An observer whose path was down for a while, and that registers anew.

use crate::common::server_session::{Ask, Bench, Does, SUBJECT, ask, peer};
use ebbtide_core::session::{Response, Verify};
use ebbtide_core::time::Duration;
use ebbtide_core::wire::{Code, Message, OptionNumber, Type};
use std::cell::Cell;
use std::rc::Rc;

const OBSERVE: u16 = 6;

/// A registration with the same token as all others.
fn registration(id: u16) -> Vec<u8> {
    let Ask { options, .. } = ask(Code::GET, id, "s").option(OBSERVE, &[]);
    let mut bytes = Ask { options, ..ask(Code::GET, id, "s") }.bytes();
    bytes[4] = 9;
    bytes
}

fn state_of(datagram: &[u8]) -> (Type, u8, u64) {
    let message = Message::parse(datagram).unwrap();
    let observe = message.option(OptionNumber::OBSERVE).expect("a state").as_uint().unwrap();
    (message.kind(), message.payload()[0], observe.into())
}

struct World {
    server: Bench,
    state: Rc<Cell<u8>>,
}

impl World {
    fn new() -> Self {
        let state = Rc::new(Cell::new(0));
        let told = Rc::clone(&state);
        let server = Bench::new(
            |config| config.verify = Verify::None,
            move |_, _| Does::Answers(Response::content(vec![told.get()])),
        );
        Self { server, state }
    }

    /// The state changes; the notifications that leave because of it.
    fn change(&mut self) -> Vec<Vec<u8>> {
        self.state.set(self.state.get() + 1);
        self.server.observers.changed(SUBJECT.id);
        self.notify()
    }

    fn notify(&mut self) -> Vec<Vec<u8>> {
        self.server.notify(&Response::content(vec![self.state.get()]));
        self.server.drain()
    }

    fn acknowledge(&mut self, notification: &[u8]) -> Vec<Vec<u8>> {
        self.server.take(peer(1), &[0x60, 0, notification[2], notification[3]]);
        self.notify()
    }
}

#[test]
fn after_an_outage_the_next_state_leaves_at_once_and_the_outdated_one_no_more() {
    let mut world = World::new();
    world.server.take(peer(1), &registration(1));
    let sent = world.change();
    assert_eq!(state_of(&sent[0]).1, 1);
    world.acknowledge(&sent[0]);
    // From now on nothing arrives for twelve seconds.
    let lost = world.change();
    assert_eq!(state_of(&lost[0]).1, 2);
    for _ in 0..5 {
        assert!(world.change().is_empty(), "one at a time");
    }
    world.server.advance(world.server.now + Duration::from_secs(12));
    let answer = world.server.take(peer(1), &registration(2));
    let (_, state, observe) = state_of(&answer[0]);
    assert_eq!(state, 7, "the newest");
    assert!(world.notify().is_empty(), "which the observer has");
    let from = world.server.log.len();
    for _ in 0..3 {
        let sent = world.change();
        assert_eq!(sent.len(), 1);
        let (kind, state, newer) = state_of(&sent[0]);
        assert_eq!((kind, state), (Type::Confirmable, world.state.get()));
        assert!(newer > observe);
        assert!(world.acknowledge(&sent[0]).is_empty());
    }
    world.server.advance(world.server.now + Duration::from_secs(300));
    assert_eq!(world.server.log.len(), from + 3, "the outdated one is not repeated");
    assert_eq!((world.server.observers.len(), world.server.observers.vanished()), (1, 0));
}

#[test]
fn an_event_under_way_stays_under_way() {
    let mut world = World::new();
    world.server.take(peer(1), &registration(1));
    let sent = world.change();
    world.acknowledge(&sent[0]);
    world.server.observers.event(SUBJECT.id, &Response::content("first"));
    world.server.observers.event(SUBJECT.id, &Response::content("second"));
    let first = world.notify();
    world.server.take(peer(1), &registration(2));
    assert!(world.notify().is_empty(), "it has not arrived yet");
    assert_eq!(world.acknowledge(&first[0]).len(), 1);
}
