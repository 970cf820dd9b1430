//! A device's server and requests whose addresses may be forged (RFC 9175 section 2.4).

use crate::common::server_session::{Ask, HEADERS, ask, at, code, echo_of};
use crate::common::split_mix::SplitMix;
use ebbtide_core::cc::Fasor;
use ebbtide_core::device::{
    DeviceAnswer, DeviceConfig, DeviceEndpoint, DeviceHandler, DevicePoll, DeviceReceived,
    DeviceServer, DeviceTables, DeviceVerify, Io,
};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Block, Code, Message, OptionNumber, encode_uint};

type Tables = DeviceTables<u8, Fasor, 4, 4, 320>;
type Server = DeviceServer<u8, 4, 4, 320>;

const CHALLENGE: Code = Code::UNAUTHORIZED;
const ECHO: u16 = 252;

/// Answers of 250 bytes, and a state that has an own length and code.
struct Resources {
    posts: usize,
    state: DeviceAnswer,
}

impl DeviceHandler for Resources {
    fn answer(&mut self, message: &Message<'_>, offset: usize, room: &mut [u8]) -> DeviceAnswer {
        self.posts += usize::from(message.code() == Code::POST && offset == 0);
        match message.code() {
            Code::PUT => DeviceAnswer::new(Code::CHANGED),
            Code::GET if message.option(OptionNumber::OBSERVE).is_some() => {
                DeviceAnswer { subject: Some(1), ..DeviceAnswer::content(2) }
            }
            _ => {
                let length = room.len().min(250 - offset);
                room[..length].fill(b'l');
                DeviceAnswer { total: 250, etag: Some(1), ..DeviceAnswer::content(length) }
            }
        }
    }

    fn state(&mut self, _: u8, _: &mut [u8]) -> DeviceAnswer {
        self.state
    }
}

struct Node<'t> {
    endpoint: DeviceEndpoint<'t, u8, Fasor>,
    server: Server,
    resources: Resources,
    rng: SplitMix,
    now: Instant,
}

impl<'t> Node<'t> {
    fn new(tables: &'t mut Tables) -> Self {
        let resources = Resources { posts: 0, state: DeviceAnswer::content(2) };
        Self {
            endpoint: tables.endpoint(DeviceConfig::fasor_token()),
            server: Server::new(DeviceVerify::Challenge { key: (1, 2) }),
            resources,
            rng: SplitMix(3),
            now: at(100),
        }
    }

    fn call(
        &mut self,
        what: impl FnOnce(
            &mut Server,
            &mut DeviceEndpoint<'t, u8, Fasor>,
            &mut Io<'_, u8>,
            &mut Resources,
        ),
    ) -> Vec<Vec<u8>> {
        let mut left = Vec::new();
        let mut io = Io {
            now: self.now,
            rng: &mut self.rng,
            send: &mut |_, datagram: &[u8]| left.push(datagram.to_vec()),
        };
        what(&mut self.server, &mut self.endpoint, &mut io, &mut self.resources);
        self.server.notify(&mut self.endpoint, &mut io, &mut self.resources);
        while let DevicePoll::Failed { exchange, .. } = self.endpoint.poll(&mut io) {
            self.server.lost(exchange);
        }
        left
    }

    /// Takes a request, and returns the answers.
    fn ask(&mut self, from: u8, request: &Ask) -> Vec<Vec<u8>> {
        let bytes = request.bytes();
        self.call(|server, endpoint, io, resources| match endpoint.receive(io, from, &bytes) {
            DeviceReceived::Request(request, message) => {
                server.receive(endpoint, io, &request, &message, resources);
            }
            other => panic!("{other:?}"),
        })
    }

    /// The one answer.
    fn answer(&mut self, from: u8, request: &Ask) -> Vec<u8> {
        let mut answers = self.ask(from, request);
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }

    fn changed(&mut self) -> Vec<Vec<u8>> {
        self.call(|server, _, _, _| server.changed(1))
    }
}

fn block(number: u32, more: bool) -> Vec<u8> {
    encode_uint(Block::new(number, more, 0).unwrap().to_uint(), &mut [0; 4]).to_vec()
}

fn registration(id: u16) -> Ask {
    ask(Code::GET, id, "state").option(6, &[])
}

#[test]
fn a_long_answer_waits_until_the_address_has_echoed_a_challenge() {
    let mut tables = Tables::new();
    let mut node = Node::new(&mut tables);
    let challenge = node.answer(1, &ask(Code::GET, 1, "long"));
    assert_eq!(code(&challenge), CHALLENGE);
    let echo = echo_of(&challenge);
    let proved = ask(Code::GET, 2, "long").option(ECHO, &echo);
    let whole = node.answer(1, &proved);
    assert_eq!(
        (code(&whole), Message::parse(&whole).unwrap().payload().len()),
        (Code::CONTENT, 250)
    );
    assert_eq!(code(&node.answer(2, &proved)), CHALLENGE, "another address's value");
    assert_ne!(echo_of(&whole).len(), 0, "the value for the next request");
}

#[test]
fn a_request_that_may_not_be_processed_twice_has_an_answer_in_shorter_blocks() {
    let mut tables = Tables::new();
    let mut node = Node::new(&mut tables);
    let forged = ask(Code::POST, 1, "p");
    let answer = node.answer(1, &forged);
    assert!(answer.len() + HEADERS <= 3 * (forged.bytes().len() + HEADERS), "{}", answer.len());
    let message = Message::parse(&answer).unwrap();
    let block = Block::from_option(&message.option(OptionNumber::BLOCK2).unwrap()).unwrap();
    assert!(block.more() && block.size() >= 32, "{block:?}");
    assert_eq!(node.resources.posts, 1);
}

#[test]
fn a_message_that_was_challenged_is_a_duplicate_of_the_one_that_echoes() {
    let mut tables = Tables::new();
    let mut node = Node::new(&mut tables);
    for id in 1..=2 {
        node.ask(9, &ask(Code::POST, id, "p"));
    }
    // Half of the places are taken.
    let first = ask(Code::POST, 3, "p").payload(b"once");
    let challenge = node.answer(1, &first);
    assert_eq!(code(&challenge), CHALLENGE);
    let echo = echo_of(&challenge);
    let again = ask(Code::POST, 4, "p").payload(b"once").option(ECHO, &echo);
    assert_eq!(code(&node.answer(1, &again)), Code::CONTENT);
    assert_eq!(node.resources.posts, 3);
    node.ask(1, &first);
    node.ask(1, &again);
    assert_eq!(node.resources.posts, 3, "both are duplicates");
}

#[test]
fn a_body_whose_address_is_proved_takes_the_place_of_a_forged_one() {
    let mut tables = Tables::new();
    let mut node = Node::new(&mut tables);
    let piece =
        |id, number| ask(Code::PUT, id, "up").option(27, &block(number, true)).payload(&[b'u'; 16]);
    assert_eq!(code(&node.answer(9, &piece(1, 0))), Code::CONTINUE);
    let challenge = node.answer(1, &piece(1, 0));
    assert_eq!(code(&challenge), CHALLENGE);
    let echo = echo_of(&challenge);
    assert_eq!(code(&node.answer(1, &piece(2, 0).option(ECHO, &echo))), Code::CONTINUE);
    assert_eq!(code(&node.answer(9, &piece(2, 1))), Code::REQUEST_ENTITY_INCOMPLETE);
    let other = code(&node.answer(9, &piece(3, 0)));
    assert_eq!(other, CHALLENGE);
}

#[test]
fn a_body_that_is_complete_keeps_no_other_waiting() {
    let mut tables = Tables::new();
    let mut node = Node::new(&mut tables);
    let piece = |id, number: u32| {
        ask(Code::PUT, id, "up").option(27, &block(number, number == 0)).payload(&[b'u'; 16])
    };
    let echo = echo_of(&node.answer(1, &ask(Code::GET, 1, "long")));
    assert_eq!(code(&node.answer(1, &piece(2, 0).option(ECHO, &echo))), Code::CONTINUE);
    assert_eq!(code(&node.answer(2, &piece(1, 0))), CHALLENGE, "one is arriving");
    assert_eq!(code(&node.answer(1, &piece(3, 1))), Code::CHANGED);
    assert_eq!(code(&node.answer(2, &piece(2, 0))), Code::CONTINUE);
    assert_eq!(code(&node.answer(2, &piece(3, 1))), Code::CHANGED);
}

#[test]
fn half_of_the_observations_are_for_addresses_that_are_proved() {
    let mut tables = Tables::new();
    let mut node = Node::new(&mut tables);
    for from in 1..=2 {
        assert_eq!(code(&node.answer(from, &registration(1))), Code::CONTENT);
    }
    let challenge = node.answer(3, &registration(1));
    assert_eq!((code(&challenge), node.server.observers()), (CHALLENGE, 2));
    let echo = echo_of(&challenge);
    node.answer(3, &registration(2).option(ECHO, &echo));
    assert_eq!(node.server.observers(), 3);
}

#[test]
fn a_state_that_has_become_long_is_a_challenge_for_an_observer_that_has_acknowledged_none() {
    let mut tables = Tables::new();
    let mut node = Node::new(&mut tables);
    node.answer(1, &registration(1));
    node.resources.state = DeviceAnswer::content(200);
    let notifications = node.changed();
    assert_eq!(notifications.len(), 1);
    assert_eq!(code(&notifications[0]), CHALLENGE);
    assert_ne!(echo_of(&notifications[0]).len(), 0);
    assert_eq!(node.server.observers(), 0, "an error ends the observation");
}

#[test]
fn an_error_ends_the_observation_and_has_no_number() {
    let mut tables = Tables::new();
    let mut node = Node::new(&mut tables);
    node.answer(1, &registration(1));
    node.resources.state = DeviceAnswer::new(Code::NOT_FOUND);
    let notifications = node.changed();
    let message = Message::parse(&notifications[0]).unwrap();
    assert_eq!(message.code(), Code::NOT_FOUND);
    assert!(message.option(OptionNumber::OBSERVE).is_none());
    assert_eq!(node.server.observers(), 0);
}
