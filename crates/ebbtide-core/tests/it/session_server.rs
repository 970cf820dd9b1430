//! Requests through the stages of a server's session.

use crate::common::server_session::{
    Ask, Bench, Does, HEADERS, SUBJECT, ask, at, code, echo_of, options, peer,
};
use ebbtide_core::PeerId;
use ebbtide_core::session::{ContentFormat, Response, Verify};
use ebbtide_core::wire::{Code, Message, OptionNumber, Type};
use std::net::SocketAddr;

const BLOCK1: u16 = 27;
const SIZE1: u16 = 60;
const BLOCK2: u16 = 23;
const ECHO: u16 = 252;
const REQUEST_TAG: u16 = 292;

fn trusting() -> Bench {
    Bench::new(
        |config| config.verify = Verify::None,
        |_, body| Does::Answers(Response::new(Code::CHANGED).payload(body.to_vec())),
    )
}

/// The values of an option.
fn values(bytes: &[u8], number: u16) -> Vec<Vec<u8>> {
    options(bytes)
        .into_iter()
        .filter(|(other, _)| *other == number)
        .map(|(_, value)| value)
        .collect()
}

fn block(id: u16, option: u8, payload: &[u8]) -> Ask {
    ask(Code::PUT, id, "up").option(BLOCK1, &[option]).payload(payload)
}

#[test]
fn a_repeated_last_block_is_answered_as_the_first_time_with_one_block_option() {
    let mut server = trusting();
    let first = server.take(peer(1), &block(1, 0x08, &[7; 16]).bytes());
    assert_eq!((code(&first[0]), options(&first[0])), (Code::CONTINUE, vec![(BLOCK1, vec![0x08])]));
    for id in 2..6 {
        let sent = server.take(peer(1), &block(id, 0x10, &[7; 4]).bytes());
        assert_eq!(code(&sent[0]), Code::CHANGED);
        assert_eq!(options(&sent[0]), [(BLOCK1, vec![0x10])], "copy {id}");
        assert_eq!(Message::parse(&sent[0]).unwrap().payload(), [7; 20]);
    }
    assert_eq!(server.calls, 1, "what is finished is not handled again");
}

#[test]
fn a_finished_upload_is_known_however_many_bodies_come_after_it() {
    let mut server = Bench::new(
        |config| {
            config.verify = Verify::None;
            config.max_block_bytes = 64;
        },
        |_, _| Does::Answers(Response::new(Code::CHANGED)),
    );
    server.take(peer(1), &block(1, 0x08, &[7; 16]).bytes());
    let last = block(2, 0x10, &[7; 4]);
    assert_eq!(code(&server.take(peer(1), &last.bytes())[0]), Code::CHANGED);
    // Others begin bodies and do not go on, until there is no room.
    for n in 2..100 {
        server.take(peer(n), &block(1, 0x08, &[n; 16]).bytes());
    }
    assert_eq!(server.session.load(server.now).uploads, 4 + 1);
    let copy = server.take(peer(1), &Ask { id: 3, ..last }.bytes());
    assert_eq!((code(&copy[0]), server.calls), (Code::CHANGED, 1));
    // A late copy of the first block changes nothing.
    server.take(peer(1), &block(4, 0x08, &[7; 16]).bytes());
    server.take(peer(1), &block(5, 0x08, &[7; 16]).bytes());
    // A new body in its place is another one.
    server.take(peer(1), &block(6, 0x08, &[8; 16]).bytes());
    server.take(peer(1), &block(7, 0x10, &[8; 4]).bytes());
    assert_eq!(server.calls, 2);
}

#[test]
fn the_blocks_of_a_body_that_was_refused_do_not_get_the_answer_of_the_body_before() {
    let mut server = trusting();
    server.take(peer(1), &block(1, 0x08, &[7; 16]).bytes());
    assert_eq!(code(&server.take(peer(1), &block(2, 0x10, &[7; 4]).bytes())[0]), Code::CHANGED);
    let announced = block(3, 0x08, &[7; 16]).option(SIZE1, &[0xff, 0xff, 0xff, 0xff]);
    let refused = server.take(peer(1), &announced.bytes());
    assert_eq!(code(&refused[0]), Code::REQUEST_ENTITY_TOO_LARGE);
    // A client that goes on all the same.
    let next = server.take(peer(1), &block(4, 0x18, &[7; 16]).bytes());
    assert_eq!(code(&next[0]), Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!((options(&next[0]), server.calls), (vec![(BLOCK1, vec![0x18])], 1));
}

#[test]
fn a_long_answer_to_an_upload_is_repeated_block_by_block_without_a_second_block_option() {
    let mut server = Bench::new(
        |config| {
            config.verify = Verify::None;
            config.block_size = 16;
        },
        |_, _| Does::Answers(Response::content(vec![5; 40])),
    );
    server.take(peer(1), &block(1, 0x08, &[7; 16]).bytes());
    let first = server.take(peer(1), &block(2, 0x10, &[7; 4]).bytes());
    let again = server.take(peer(1), &block(3, 0x10, &[7; 4]).bytes());
    assert_eq!(options(&first[0]), options(&again[0]));
    let numbers: Vec<u16> = options(&first[0]).iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [4, BLOCK2, BLOCK1, 28]);
    let second = server.take(peer(1), &ask(Code::PUT, 4, "up").option(BLOCK2, &[0x10]).bytes());
    assert_eq!(Message::parse(&second[0]).unwrap().payload(), [5; 16]);
    assert_eq!(server.calls, 1);
}

#[test]
fn a_post_whose_answer_is_long_is_handled_once_though_its_address_is_challenged() {
    let mut server = Bench::new(
        |_| {},
        |_, _| Does::Answers(Response::new(Code::CREATED).payload(vec![b'x'; 300])),
    );
    let post = |id| ask(Code::POST, id, "p").payload(b"order");
    let challenge = server.take(peer(1), &post(1).bytes());
    assert_eq!((code(&challenge[0]), server.calls), (Code::UNAUTHORIZED, 1));
    let echoed = post(2).option(ECHO, &echo_of(&challenge[0]));
    let answer = server.take(peer(1), &echoed.bytes());
    assert_eq!((code(&answer[0]), server.calls), (Code::CREATED, 1));
    assert_eq!(Message::parse(&answer[0]).unwrap().payload(), vec![b'x'; 300]);
    // The next one is another request, for which the answer carries a value.
    let next = post(3).option(ECHO, &echo_of(&answer[0]));
    let answer = server.take(peer(1), &next.bytes());
    assert_eq!((code(&answer[0]), server.calls), (Code::CREATED, 2));
}

#[test]
fn the_answer_to_a_challenged_request_is_not_given_to_another_request_that_echoes_its_value() {
    let mut server = Bench::new(
        |_| {},
        |_, body| Does::Answers(Response::new(Code::CREATED).payload(body.repeat(60))),
    );
    let post = |id, body: &[u8]| ask(Code::POST, id, "p").payload(body);
    let challenge = server.take(peer(1), &post(1, b"order").bytes());
    let echoed = post(2, b"other").option(ECHO, &echo_of(&challenge[0]));
    let answer = server.take(peer(1), &echoed.bytes());
    assert_eq!(Message::parse(&answer[0]).unwrap().payload(), b"other".repeat(60));
    assert_eq!(server.calls, 2);
}

#[test]
fn an_address_is_verified_once_it_has_echoed() {
    let mut server = Bench::new(|_| {}, |_, _| Does::Answers(Response::content(vec![1; 300])));
    let is_trusted = |server: &Bench| server.session.trusts_source(server.now, peer(1).source());
    let challenge = server.take(peer(1), &ask(Code::GET, 1, "x").bytes());
    assert!(!is_trusted(&server));
    let echoed = ask(Code::GET, 2, "x").option(ECHO, &echo_of(&challenge[0]));
    server.take(peer(1), &echoed.bytes());
    assert!(is_trusted(&server));
}

#[test]
fn posts_of_unknown_addresses_are_challenged_before_their_handlers_once_many_answers_wait() {
    let mut server = Bench::new(
        |config| config.max_withheld = 8,
        |_, _| Does::Answers(Response::new(Code::CREATED).payload(vec![b'x'; 300])),
    );
    for n in 1..=100 {
        let sent = server.take(peer(n), &ask(Code::POST, n.into(), "p").bytes());
        assert_eq!(code(&sent[0]), Code::UNAUTHORIZED);
    }
    assert_eq!(server.calls, 4, "half of the room");
    assert_eq!(server.session.load(at(100)).withheld, 4);
    // Whoever echoes late has to find its answer: they stay for twice EXCHANGE_LIFETIME.
    assert_eq!(server.session.load(at(593)).withheld, 4);
    assert_eq!(server.session.load(at(594)).withheld, 0);
}

#[test]
fn a_post_with_a_short_answer_needs_no_echo() {
    let mut server = Bench::new(|_| {}, |_, _| Does::Answers(Response::new(Code::CHANGED)));
    let sent = server.take(peer(1), &ask(Code::POST, 1, "p").bytes());
    assert_eq!(code(&sent[0]), Code::CHANGED);
}

#[test]
fn no_answer_is_longer_than_three_times_its_request_before_the_address_has_echoed() {
    for length in 0..200 {
        let mut server =
            Bench::new(|_| {}, move |_, _| Does::Answers(Response::content(vec![1; length])));
        let request = ask(Code::GET, 1, "x").bytes();
        let sent = server.take(peer(1), &request);
        let bytes: usize = sent.iter().map(|datagram| datagram.len() + HEADERS).sum();
        assert!(bytes <= 3 * (request.len() + HEADERS), "{length}: {bytes}");
        // It is not stricter than it must be either: all but the last byte of what is allowed is used.
        let plain = 4 + 2 + usize::from(length > 0) + length + HEADERS;
        let challenged = code(&sent[0]) == Code::UNAUTHORIZED;
        assert_eq!(challenged, plain > 3 * (request.len() + HEADERS), "{length}");
    }
}

#[test]
fn a_separate_answer_counts_the_acknowledgement_and_is_repeated_no_more_than_allowed() {
    let mut server = Bench::new(|_| {}, |_, _| Does::Waits);
    let request = ask(Code::GET, 1, "x").bytes();
    assert!(server.take(peer(1), &request).is_empty());
    let acknowledgement = server.pending[0].acknowledge();
    server.send_one(&acknowledgement);
    let mut bytes: usize = server.drain().iter().map(|datagram| datagram.len() + HEADERS).sum();
    assert_eq!(bytes, 4 + HEADERS);
    let sent = server.answer(Response::content(vec![1; 30]));
    assert_eq!(Message::parse(&sent[0]).unwrap().kind(), Type::Confirmable);
    bytes += sent.iter().map(|datagram| datagram.len() + HEADERS).sum::<usize>();
    assert!(bytes <= 3 * (request.len() + HEADERS), "{bytes}");
}

#[test]
fn each_request_for_a_long_answer_proves_its_own_address_and_port() {
    let mut server = Bench::new(|_| {}, |_, _| Does::Answers(Response::content(vec![1; 500])));
    let get = |id| ask(Code::GET, id, "x");
    let challenge = server.take(peer(1), &get(1).bytes());
    let echoed = get(2).option(ECHO, &echo_of(&challenge[0]));
    let answer = server.take(peer(1), &echoed.bytes());
    assert_eq!(code(&answer[0]), Code::CONTENT);
    // A stranger forges an address that was verified, at that port or another one.
    let other_port = SocketAddr::from(([192, 0, 2, 1], 7)).into();
    for from in [peer(1), other_port] {
        assert_eq!(code(&server.take(from, &get(3).bytes())[0]), Code::UNAUTHORIZED);
    }
    assert_eq!(code(&server.take(other_port, &echoed.bytes())[0]), Code::UNAUTHORIZED);
    // The client itself has the next value.
    server.now = at(100 + 246);
    let next = get(4).option(ECHO, &echo_of(&answer[0]));
    assert_eq!(code(&server.take(peer(1), &next.bytes())[0]), Code::CONTENT);
    server.now = at(100 + 247);
    assert_eq!(code(&server.take(peer(1), &next.bytes())[0]), Code::UNAUTHORIZED);
}

#[test]
fn an_upload_that_is_longer_than_the_route_allows_is_refused_at_its_first_block() {
    let mut server = trusting();
    server.max_body = 100;
    let announced = block(1, 0x08, &[7; 16]).option(60, &[101]);
    let sent = server.take(peer(1), &announced.bytes());
    assert_eq!(code(&sent[0]), Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(options(&sent[0]), [(BLOCK1, vec![0x08]), (60, vec![100])]);
    let whole = ask(Code::PUT, 2, "up").payload(&[0; 101]);
    assert_eq!(code(&server.take(peer(1), &whole.bytes())[0]), Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!((server.calls, server.session.load(at(100)).uploads), (0, 0));
}

#[test]
fn later_blocks_of_an_observed_body_carry_no_observe_option() {
    let mut server = Bench::new(
        |config| {
            config.verify = Verify::None;
            config.block_size = 16;
        },
        |_, _| Does::Answers(Response::content(vec![5; 40])),
    );
    let first = server.take(peer(1), &ask(Code::GET, 1, "s").option(6, &[]).bytes());
    let has = |bytes: &[u8]| Message::parse(bytes).unwrap().option(OptionNumber::OBSERVE).is_some();
    assert!(has(&first[0]));
    let second = server.take(peer(1), &ask(Code::GET, 2, "s").option(BLOCK2, &[0x10]).bytes());
    assert_eq!(Message::parse(&second[0]).unwrap().payload(), [5; 16]);
    assert!(!has(&second[0]), "RFC 7959 section 2.6");
    assert_eq!((server.observers.len(), server.calls), (1, 1));
}

#[test]
fn the_block_size_of_a_registration_holds_for_the_notifications() {
    let mut server = Bench::new(
        |config| config.verify = Verify::None,
        |_, _| Does::Answers(Response::content(vec![5; 40])),
    );
    let registration = ask(Code::GET, 1, "s").option(6, &[]).option(BLOCK2, &[0x00]).bytes();
    let first = server.take(peer(1), &registration);
    assert_eq!(values(&first[0], BLOCK2), [[0x08]]);
    server.observers.changed(SUBJECT.id);
    let due = server.observers.pop_due(server.now).unwrap();
    let (request, sizes) =
        (Message::parse(&registration).unwrap(), server.session.datagram_sizes());
    let state = Response::content(vec![6; 20]);
    let sized = server.session.size_notification(server.now, &due, &request, state, sizes);
    assert_eq!(
        (sized.body().as_ref(), sized.options().get_uint(OptionNumber::BLOCK2)),
        ([6; 16].as_slice(), Some(8))
    );
    // RFC 7959 section 2.6: the others are requested without Observe.
    let second = server.take(peer(1), &ask(Code::GET, 2, "s").option(BLOCK2, &[0x10]).bytes());
    assert_eq!(Message::parse(&second[0]).unwrap().payload(), [6; 4]);
}

#[test]
fn a_notification_keeps_the_format_in_which_the_observation_began() {
    let mut server = Bench::new(
        |config| config.verify = Verify::None,
        |_, _| Does::Answers(Response::content("22.3 C").format(ContentFormat::TEXT)),
    );
    let registration = ask(Code::GET, 1, "s").option(6, &[]).bytes();
    let _ = server.take(peer(1), &registration);
    server.observers.changed(SUBJECT.id);
    let due = server.observers.pop_due(server.now).unwrap();
    let (request, sizes) =
        (Message::parse(&registration).unwrap(), server.session.datagram_sizes());
    let sized =
        |response| server.session.size_notification(server.now, &due, &request, response, sizes);
    let in_json = sized(Response::content("22.4").format(ContentFormat::JSON));
    assert_eq!((in_json.code(), in_json.body().len()), (Code::NOT_ACCEPTABLE, 0));
    let in_text = sized(Response::content("22.4 C").format(ContentFormat::TEXT));
    assert_eq!((in_text.code(), in_text.text().as_ref()), (Code::CONTENT, "22.4 C"));
    assert_eq!(sized(Response::new(Code::VALID)).code(), Code::VALID);
    let error = sized(Response::new(Code::NOT_FOUND).format(ContentFormat::JSON));
    assert_eq!(error.code(), Code::NOT_FOUND);
}

#[test]
fn the_reserved_size_of_a_block_is_a_bad_request() {
    let mut server = trusting();
    let answer = server.take(peer(1), &block(1, 0x0f, &[1; 16]).bytes());
    assert_eq!(code(&answer[0]), Code::BAD_REQUEST);
    let answer = server.take(peer(1), &ask(Code::GET, 2, "s").option(BLOCK2, &[0x07]).bytes());
    assert_eq!(code(&answer[0]), Code::BAD_REQUEST);
    assert_eq!(server.calls, 0);
}

#[test]
fn a_block_that_others_follow_has_the_length_that_it_names() {
    let mut server = trusting();
    for (id, length) in [(1, 15), (2, 17), (3, 0)] {
        let answer = server.take(peer(1), &block(id, 0x08, &vec![1; length]).bytes());
        assert_eq!(code(&answer[0]), Code::BAD_REQUEST, "{length} bytes");
        assert_eq!(values(&answer[0], BLOCK1), [vec![0x08]], "it names the block");
    }
    assert_eq!(server.calls, 0);
}

#[test]
fn a_block_of_a_response_is_given_whatever_its_request_says_about_more_and_none_beyond_the_end() {
    let mut server = Bench::new(
        |config| config.verify = Verify::None,
        |_, _| Does::Answers(Response::content(vec![5; 48])),
    );
    let mut ask = |id, option| {
        let request = ask(Code::GET, id, "s").option(BLOCK2, &[option]).bytes();
        server.take(peer(1), &request).remove(0)
    };
    assert_eq!(values(&ask(1, 0x00), BLOCK2), [vec![0x08]]);
    let second = ask(2, 0x18);
    assert_eq!((values(&second, BLOCK2), code(&second)), (vec![vec![0x18]], Code::CONTENT));
    assert_eq!(code(&ask(3, 0x20)), Code::CONTENT);
    assert_eq!(code(&ask(4, 0x30)), Code::BAD_REQUEST, "48 bytes end with the third block");
}

#[test]
fn two_uploads_of_one_client_are_distinguished_by_their_request_tags() {
    let mut server = trusting();
    let part = |id, tag: &[u8], option, byte| {
        block(id, option, &[byte; 16]).option(REQUEST_TAG, tag).bytes()
    };
    let sent = [(b"a", 0x08, 1), (b"b", 0x08, 2), (b"a", 0x10, 3), (b"b", 0x10, 4)];
    let answers: Vec<_> = (1..)
        .zip(sent)
        .map(|(id, (tag, option, byte))| server.take(peer(1), &part(id, tag, option, byte)))
        .collect();
    let body = |at: usize| Message::parse(&answers[at][0]).unwrap().payload().to_vec();
    assert_eq!(code(&answers[0][0]), Code::CONTINUE);
    assert_eq!(body(2), [[1; 16], [3; 16]].concat());
    assert_eq!(body(3), [[2; 16], [4; 16]].concat());
}

#[test]
fn a_request_that_is_answered_later_registers_its_observer_then() {
    let mut server = Bench::new(|config| config.verify = Verify::None, |_, _| Does::Waits);
    assert!(server.take(peer(1), &ask(Code::GET, 1, "s").option(6, &[]).bytes()).is_empty());
    assert!(server.observers.is_empty());
    let sent = server.answer(Response::content("state"));
    assert!(Message::parse(&sent[0]).unwrap().option(OptionNumber::OBSERVE).is_some());
    assert_eq!(server.observers.len(), 1);
}

#[test]
fn only_an_address_that_echoes_is_remembered_while_half_of_the_memory_is_taken() {
    let mut server = Bench::new(|_| {}, |_, _| Does::Answers(Response::new(Code::CHANGED)));
    for n in 0..40_000_u32 {
        let [_, _, a, b] = n.to_be_bytes();
        let from = PeerId::Address(std::net::SocketAddr::from(([192, 0, a, b], 5683)));
        server.take(from, &ask(Code::POST, 1, "p").bytes());
    }
    assert_eq!((server.endpoint.remembered(), server.calls), (32_768, 32_768));
    let post = |id| ask(Code::POST, id, "p");
    let challenge = server.take(peer(1), &post(9).bytes());
    assert_eq!(code(&challenge[0]), Code::UNAUTHORIZED);
    let echoed = post(10).option(ECHO, &echo_of(&challenge[0])).bytes();
    assert_eq!(code(&server.take(peer(1), &echoed)[0]), Code::CHANGED);
    // A copy of it is known.
    let calls = server.calls;
    assert_eq!(code(&server.take(peer(1), &echoed)[0]), Code::CHANGED);
    assert_eq!(server.calls, calls);
}
