//! Several requests of one client to one resource, and requests that echo late.

use crate::common::server_session::{Bench, Does, ask, code, echo_of, peer};
use ebbtide_core::session::{Response, Verify};
use ebbtide_core::time::Duration;
use ebbtide_core::wire::{Code, Message};

const BLOCK1: u16 = 27;
const BLOCK2: u16 = 23;
const ECHO: u16 = 252;

fn payload(sent: &[Vec<u8>]) -> &[u8] {
    Message::parse(&sent[0]).unwrap().payload()
}

/// A server that answers with forty bytes of what the request begins with, in blocks of 16.
fn repeating(verify: Verify) -> Bench {
    Bench::new(
        |config| {
            config.verify = verify;
            config.block_size = 16;
        },
        |_, body| Does::Answers(Response::new(Code::CHANGED).payload(vec![body[0]; 40])),
    )
}

#[test]
fn later_blocks_of_two_answers_from_one_resource_are_not_mixed() {
    let mut server = repeating(Verify::None);
    for (id, code) in [(1, Code::POST), (10, Code::FETCH)] {
        let first = server.take(peer(1), &ask(code, id, "p").payload(b"a").bytes());
        let second = server.take(peer(1), &ask(code, id + 1, "p").payload(b"b").bytes());
        assert_eq!((payload(&first), payload(&second)), (&[b'a'; 16][..], &[b'b'; 16][..]));
        for (n, body) in [b"a", b"b"].into_iter().enumerate() {
            let block = ask(code, id + 2 + n as u16, "p").option(BLOCK2, &[0x10]).payload(body);
            let sent = server.take(peer(1), &block.bytes());
            assert_eq!(payload(&sent), [body[0]; 16]);
        }
    }
}

#[test]
fn a_later_block_asked_for_without_the_body_is_one_of_the_latest_answer() {
    let mut server = repeating(Verify::None);
    server.take(peer(1), &ask(Code::POST, 1, "p").payload(b"a").bytes());
    server.take(peer(1), &ask(Code::POST, 2, "p").payload(b"b").bytes());
    let sent = server.take(peer(1), &ask(Code::POST, 3, "p").option(BLOCK2, &[0x10]).bytes());
    assert_eq!(payload(&sent), [b'b'; 16]);
}

#[test]
fn a_fetch_whose_body_came_in_blocks_is_not_handled_again_without_it() {
    let mut server = repeating(Verify::None);
    let block = |id, option: u8, payload: &[u8]| {
        ask(Code::FETCH, id, "p").option(BLOCK1, &[option]).payload(payload).bytes()
    };
    server.take(peer(1), &block(1, 0x08, &[b'a'; 16]));
    server.take(peer(1), &block(2, 0x10, b"a"));
    assert_eq!(server.calls, 1);
    // The response is no longer kept.
    server.advance(server.now + Duration::from_secs(300));
    let sent = server.take(peer(1), &ask(Code::FETCH, 3, "p").option(BLOCK2, &[0x10]).bytes());
    assert_eq!((code(&sent[0]), server.calls), (Code::REQUEST_ENTITY_INCOMPLETE, 1));
}

#[test]
fn a_post_that_echoes_after_minutes_is_not_handled_twice() {
    let mut server = Bench::new(
        |_| (),
        |_, _| Does::Answers(Response::new(Code::CHANGED).payload(vec![7; 200])),
    );
    let post = ask(Code::POST, 1, "p").payload(b"a");
    let sent = server.take(peer(1), &post.bytes());
    assert_eq!((code(&sent[0]), server.calls), (Code::UNAUTHORIZED, 1));
    server.advance(server.now + Duration::from_secs(300));
    let late = |id, echo: &[u8]| ask(Code::POST, id, "p").option(ECHO, echo).payload(b"a").bytes();
    let sent = server.take(peer(1), &late(2, &echo_of(&sent[0])));
    assert_eq!(code(&sent[0]), Code::UNAUTHORIZED, "that challenge is not fresh any more");
    let sent = server.take(peer(1), &late(3, &echo_of(&sent[0])));
    assert_eq!((code(&sent[0]), payload(&sent).len()), (Code::CHANGED, 200));
    assert_eq!(server.calls, 1);
}
