//! A request that must not be processed twice and is challenged: whichever of its messages come, in
//! whichever order, its handler runs once.

use crate::common::server_session::{Ask, Bench, Does, ask, code, echo_of, peer};
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Limits};
use ebbtide_core::session::Response;
use ebbtide_core::time::Duration;
use ebbtide_core::wire::{Code, Message, MessageId};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

const ECHO: u16 = 252;

/// A server of which half of the memory against duplicates is taken by strangers; it answers with the
/// ordinal of the call.
fn pressed() -> Bench {
    let mut calls = 0;
    let mut server = Bench::new(
        |_| {},
        move |_, _| {
            calls += 1;
            Does::Answers(Response::new(Code::CHANGED).payload(vec![calls]))
        },
    );
    let limits = Limits { remembered_messages: 40, ..Limits::default() };
    let config = EndpointConfig { limits, ..EndpointConfig::default() };
    server.endpoint = Endpoint::new(config, Box::new(ChaCha8Rng::seed_from_u64(2)));
    for n in 100..120 {
        server.take(peer(n), &ask(Code::POST, 1, "p").bytes());
    }
    assert!(server.endpoint.is_dedup_half_full());
    server
}

fn post(id: u16) -> Ask {
    ask(Code::POST, id, "p").payload(b"on")
}

fn echoing(id: u16, echo: &[u8]) -> Vec<u8> {
    post(id).option(ECHO, echo).bytes()
}

fn payload(datagram: &[u8]) -> Vec<u8> {
    Message::parse(datagram).unwrap().payload().to_vec()
}

/// Another request of the client shows that it is there.
fn verify(server: &mut Bench, from: PeerId, id: u16) {
    let other = ask(Code::POST, id, "other");
    let challenge = server.take(from, &other.bytes());
    let echoed = ask(Code::POST, id + 1, "other").option(ECHO, &echo_of(&challenge[0]));
    assert_eq!(code(&server.take(from, &echoed.bytes())[0]), Code::CHANGED);
}

#[test]
fn a_late_copy_of_a_message_that_was_forgotten_is_known_once_its_client_has_echoed() {
    let mut server = pressed();
    let challenge = server.take(peer(1), &post(9).bytes());
    assert!(!server.endpoint.is_remembered(server.now, peer(1), MessageId(9)));
    let before = server.calls;
    let echoed = echoing(10, &echo_of(&challenge[0]));
    let answer = server.take(peer(1), &echoed);
    assert_eq!((code(&answer[0]), server.calls), (Code::CHANGED, before + 1));
    for _ in 0..3 {
        assert!(server.take(peer(1), &post(9).bytes()).is_empty());
        assert_eq!(server.take(peer(1), &echoed), answer);
    }
    assert_eq!(server.calls, before + 1);
}

#[test]
fn an_echo_that_comes_after_a_late_copy_was_processed_gets_its_answer() {
    let mut server = pressed();
    let challenge = server.take(peer(1), &post(9).bytes());
    verify(&mut server, peer(1), 20);
    let before = server.calls;
    let late = server.take(peer(1), &post(9).bytes());
    assert_eq!((code(&late[0]), server.calls), (Code::CHANGED, before + 1));
    let echoed = echoing(10, &echo_of(&challenge[0]));
    for _ in 0..3 {
        let answer = server.take(peer(1), &echoed);
        assert_eq!((code(&answer[0]), payload(&answer[0])), (Code::CHANGED, payload(&late[0])));
        let message = Message::parse(&answer[0]).unwrap();
        assert_eq!((message.message_id().0, message.token_bytes()), (10, &[10, 7][..]));
        assert!(server.take(peer(1), &post(9).bytes()).is_empty());
    }
    assert_eq!(server.calls, before + 1);
}

#[test]
fn an_echo_that_comes_when_the_late_copies_are_no_longer_known_is_refused() {
    let mut server = pressed();
    let challenge = server.take(peer(1), &post(9).bytes());
    verify(&mut server, peer(1), 20);
    server.take(peer(1), &post(9).bytes());
    let before = server.calls;
    server.advance(server.now + Duration::from_secs(247));
    assert!(!server.endpoint.is_remembered(server.now, peer(1), MessageId(9)));
    let sent = server.take(peer(1), &echoing(10, &echo_of(&challenge[0])));
    assert_eq!((code(&sent[0]), server.calls), (Code::SERVICE_UNAVAILABLE, before));
}

#[test]
fn a_value_that_is_echoed_in_several_requests_makes_none_of_them_a_copy() {
    let mut server = pressed();
    let challenge = server.take(peer(1), &post(9).bytes());
    let echo = echo_of(&challenge[0]);
    let before = server.calls;
    // RFC 9175 section 2.3 allows it, in the same request and in others.
    for id in 10..13 {
        assert_eq!(code(&server.take(peer(1), &echoing(id, &echo))[0]), Code::CHANGED);
    }
    let other = ask(Code::POST, 13, "p").payload(b"off").option(ECHO, &echo);
    assert_eq!(code(&server.take(peer(1), &other.bytes())[0]), Code::CHANGED);
    assert_eq!(server.calls, before + 4);
    assert!(server.take(peer(1), &post(9).bytes()).is_empty());
}

#[test]
fn a_value_that_is_not_ours_gets_a_challenge() {
    let mut server = pressed();
    verify(&mut server, peer(1), 20);
    let calls = server.calls;
    let challenge = server.take(peer(2), &post(9).bytes());
    for (id, echo) in [(10, echo_of(&challenge[0])), (11, vec![1; 12]), (12, vec![])] {
        let sent = server.take(peer(1), &echoing(id, &echo));
        assert_eq!((code(&sent[0]), server.calls), (Code::UNAUTHORIZED, calls), "{echo:?}");
    }
    // What may be processed again is answered all the same.
    let get = ask(Code::GET, 13, "p").option(ECHO, &[1; 12]);
    assert_eq!(code(&server.take(peer(1), &get.bytes())[0]), Code::CHANGED);
}

/// A server whose answers are longer than an unverified address gets.
fn long() -> Bench {
    let mut calls = 0;
    Bench::new(
        |config| config.max_withheld = 4,
        move |message, _| {
            calls += 1;
            match message.code() {
                Code::PATCH => Does::Waits,
                _ => Does::Answers(Response::new(Code::CHANGED).payload(vec![calls; 200])),
            }
        },
    )
}

#[test]
fn of_two_equal_posts_each_gets_the_answer_that_its_own_handler_gave() {
    let mut server = long();
    let first = server.take(peer(1), &post(1).bytes());
    let second = server.take(peer(1), &post(2).bytes());
    let echoes = [echo_of(&first[0]), echo_of(&second[0])];
    assert_eq!(server.calls, 2);
    let answer = server.take(peer(1), &echoing(3, &echoes[1]));
    assert_eq!(payload(&answer[0]), [2; 200]);
    let answer = server.take(peer(1), &echoing(4, &echoes[0]));
    assert_eq!(payload(&answer[0]), [1; 200]);
    assert_eq!(server.calls, 2);
}

#[test]
fn an_answer_that_found_no_room_is_an_error_and_its_handler_does_not_run_again() {
    let mut server = long();
    let patch = |id| ask(Code::PATCH, id, "p").payload(b"on");
    for id in 1..=6 {
        assert!(server.take(peer(1), &patch(id).bytes()).is_empty());
    }
    let sent: Vec<_> =
        (0..6).map(|_| server.answer(Response::new(Code::CHANGED).payload(vec![7; 200]))).collect();
    assert_eq!(server.session.load(server.now).withheld, 4);
    for (n, sent) in (1..).zip(&sent) {
        let echoed = patch(n + 10).option(ECHO, &echo_of(&sent[0])).bytes();
        let answer = server.take(peer(1), &echoed);
        let expected = if n <= 4 { Code::CHANGED } else { Code::SERVICE_UNAVAILABLE };
        assert_eq!(code(&answer[0]), expected, "{n}");
    }
    assert_eq!((server.calls, server.pending.len()), (6, 0));
}

#[test]
fn the_answer_to_an_upload_waits_for_the_echo_although_the_upload_has_gone() {
    let mut server = Bench::new(
        |config| config.max_block_bytes = 64,
        |_, body| Does::Answers(Response::new(Code::FORBIDDEN).payload(vec![body[0]; 200])),
    );
    let block = |id, option: u8, payload: &[u8]| {
        ask(Code::POST, id, "up").option(27, &[option]).payload(payload)
    };
    server.take(peer(1), &block(1, 0x08, &[7; 16]).bytes());
    let challenge = server.take(peer(1), &block(2, 0x10, &[7; 4]).bytes());
    assert_eq!((code(&challenge[0]), server.calls), (Code::UNAUTHORIZED, 1));
    server.advance(server.now + Duration::from_secs(240));
    // Others take its room.
    for n in 10..20 {
        server.take(peer(n), &block(1, 0x08, &[9; 16]).bytes());
    }
    let echoed = block(3, 0x10, &[7; 4]).option(ECHO, &echo_of(&challenge[0]));
    let answer = server.take(peer(1), &echoed.bytes());
    assert_eq!((code(&answer[0]), server.calls), (Code::FORBIDDEN, 1));
    assert!(payload(&answer[0]).iter().all(|byte| *byte == 7));
}
