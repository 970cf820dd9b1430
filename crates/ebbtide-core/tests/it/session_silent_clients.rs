//! What leaves for a client that asked once, proved its address, and is silent since, or for the victim of
//! someone who forges its address.

use crate::common::server_session::{Ask, Bench, Does, ask, code, echo_of, options, peer};
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::{Endpoint, EndpointConfig};
use ebbtide_core::session::Response;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Message, Type};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::net::SocketAddr;

const Q_BLOCK1: u16 = 19;
const Q_BLOCK2: u16 = 31;
const SIZE1: u16 = 60;
const REQUEST_TAG: u16 = 292;
const ECHO: u16 = 252;
/// MAX_PAYLOADS of RFC 9177 section 7.2.
const SET: usize = 10;
const BLOCKS: usize = 100;

fn server() -> Bench {
    let long = |_: &Message<'_>, _: &[u8]| Does::Answers(Response::content(vec![7; BLOCKS * 1024]));
    let mut server = Bench::new(|_| {}, long);
    let config = EndpointConfig { q_block: true, ..EndpointConfig::default() };
    server.endpoint = Endpoint::new(config, Box::new(ChaCha8Rng::seed_from_u64(2)));
    server
}

/// A Non-confirmable request for a body in blocks, or for some of its blocks.
fn burst(id: u16, path: &str, wanted: &[u8]) -> Ask {
    let request = Ask { kind: Type::NonConfirmable, ..ask(Code::GET, id, path) };
    wanted.iter().fold(request, |request, value| request.option(Q_BLOCK2, &[*value]))
}

const WHOLE: &[u8] = &[0x0e];

fn value_for(server: &mut Bench, client: PeerId) -> Vec<u8> {
    echo_of(&server.take(client, &burst(1, "a", WHOLE).bytes())[0])
}

fn blocks(sent: &[Vec<u8>]) -> usize {
    let is_block =
        |datagram: &&Vec<u8>| options(datagram).iter().any(|(number, _)| *number == Q_BLOCK2);
    sent.iter().filter(is_block).count()
}

/// Lets time pass at which bodies go on, and counts blocks.
fn wait(server: &mut Bench, span: Duration) -> usize {
    let (end, mut left): (Instant, _) = (server.now + span, 0);
    while let Some(due) = server.session.poll_timeout().filter(|due| *due <= end) {
        server.now = server.now.max(due);
        for finished in server.session.handle_timeout(server.now) {
            server.send_one(&finished);
        }
        left += blocks(&server.drain());
    }
    server.now = end;
    left
}

#[test]
fn a_body_ends_after_two_sets_without_a_sign_of_its_receiver() {
    let mut server = server();
    let echo = value_for(&mut server, peer(1));
    let sent = server.take(peer(1), &burst(2, "a", WHOLE).option(ECHO, &echo).bytes());
    assert_eq!(blocks(&sent), SET);
    assert_eq!(wait(&mut server, Duration::from_secs(200)), SET);
}

#[test]
fn a_request_for_the_next_set_lets_the_body_go_on_at_once() {
    let mut server = server();
    let echo = value_for(&mut server, peer(1));
    let sent = server.take(peer(1), &burst(2, "a", WHOLE).option(ECHO, &echo).bytes());
    assert_eq!(blocks(&sent), SET);
    let next = |from: u8| {
        Ask { kind: Type::NonConfirmable, ..ask(Code::GET, 2 + u16::from(from), "a") }.option(
            Q_BLOCK2,
            &(u16::from(from) << 4 | 0x0e).to_be_bytes()[usize::from(from < 16)..],
        )
    };
    for from in [10, 20, 30] {
        assert_eq!(blocks(&server.take(peer(1), &next(from).bytes())), SET, "{from}");
    }
    assert_eq!(
        wait(&mut server, Duration::from_secs(200)),
        SET,
        "and one more, as if the request were lost"
    );
}

#[test]
fn bodies_for_one_silent_client_share_the_pace_of_one() {
    let mut server = server();
    let echo = value_for(&mut server, peer(1));
    let mut at_once = 0;
    for n in 0..50 {
        let path = format!("body{n}");
        let request = burst(2 + n, &path, WHOLE).option(ECHO, &echo);
        at_once += blocks(&server.take(peer(1), &request.bytes()));
    }
    assert_eq!(at_once, 2 * SET);
    for _ in 0..10 {
        let left = wait(&mut server, Duration::from_secs(2));
        assert!(left <= 2 * SET, "{left} blocks in a NON_TIMEOUT");
    }
}

#[test]
fn a_forged_request_for_missing_blocks_repeats_no_block_twice() {
    let mut server = server();
    let echo = value_for(&mut server, peer(1));
    server.take(peer(1), &burst(2, "a", WHOLE).option(ECHO, &echo).bytes());
    let missing: Vec<u8> = (0..8).map(|num| num << 4 | 6).collect();
    let (mut repeated, mut refused) = (0, 0);
    for id in 0..200 {
        // Later ones are not within the pace of the sender.
        server.now = server.now + Duration::from_secs(1);
        let sent = server.take(peer(1), &burst(100 + id, "a", &missing).bytes());
        repeated += blocks(&sent);
        refused += usize::from(sent.iter().any(|datagram| code(datagram) == Code::UNAUTHORIZED));
    }
    assert!((BLOCKS / 2..=BLOCKS).contains(&repeated), "{repeated}");
    assert!(refused > 150, "{refused}");
    // The client itself echoes, and gets what it misses.
    let echo = value_for(&mut server, peer(1));
    server.now = server.now + Duration::from_secs(3);
    let sent = server.take(peer(1), &burst(400, "a", &missing).option(ECHO, &echo).bytes());
    assert_eq!(blocks(&sent), missing.len() + SET, "and the next set, since it is there");
}

#[test]
fn one_block_that_proves_the_address_of_an_upload_does_so_for_its_others() {
    let mut server = server();
    let block = |id: u16, num: u8, tag: u8| {
        let request = Ask { kind: Type::NonConfirmable, ..ask(Code::PUT, id, "a") };
        let value = num << 4 | if num < 2 { 0x08 } else { 0 };
        request
            .option(Q_BLOCK1, &[value])
            .option(SIZE1, &[48])
            .option(REQUEST_TAG, &[tag])
            .payload(&[1; 16])
    };
    let challenge = server.take(peer(1), &block(1, 0, 1).bytes());
    assert_eq!(code(&challenge[0]), Code::UNAUTHORIZED);
    let echoed = block(2, 0, 1).option(ECHO, &echo_of(&challenge[0]));
    assert!(server.take(peer(1), &echoed.bytes()).is_empty());
    assert!(server.take(peer(1), &block(3, 1, 1).bytes()).is_empty());
    // Not for another upload, nor for another port.
    let other_port = SocketAddr::from(([192, 0, 2, 1], 7)).into();
    for (from, tag) in [(peer(1), 2), (other_port, 1)] {
        let sent = server.take(from, &block(4, 1, tag).bytes());
        assert_eq!(code(&sent[0]), Code::UNAUTHORIZED);
    }
    let before = server.calls;
    server.take(peer(1), &block(5, 2, 1).bytes());
    assert_eq!(server.calls, before + 1, "it is whole");
}
