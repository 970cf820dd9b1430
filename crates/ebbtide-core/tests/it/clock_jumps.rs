//! A clock that jumps: hours forward, as after a suspended virtual machine, and back.

use crate::common::server_session::{Bench, Does, ask, at, code, peer};
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Event, Failure, Output, Reliability};
use ebbtide_core::session::{Response, Verify};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Block, Code, Content, encode_uint};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

const HOURS: Duration = Duration::from_secs(9 * 3600);

fn endpoint() -> Endpoint {
    Endpoint::new(EndpointConfig::default(), Box::new(ChaCha8Rng::seed_from_u64(5)))
}

/// Datagrams that leave, and the failures that are reported.
fn drain(endpoint: &mut Endpoint) -> (usize, Vec<Failure>) {
    let (mut sent, mut failed) = (0, Vec::new());
    loop {
        match endpoint.poll_output() {
            Output::Transmit(_) => sent += 1,
            Output::Event(Event::Failed { reason, .. }) => failed.push(reason),
            Output::Event(_) => {}
            Output::Timeout(_) => return (sent, failed),
        }
    }
}

fn send(endpoint: &mut Endpoint, now: Instant, to: u8) {
    let content = Content { code: Code::GET, options: &[], payload: &[] };
    endpoint.request(now, peer(to), &content, Reliability::Confirmable).unwrap();
}

#[test]
fn requests_that_were_under_way_end_once_and_no_late_copies_leave() {
    let mut endpoint = endpoint();
    for to in 1..=50 {
        send(&mut endpoint, at(1), to);
    }
    assert_eq!(drain(&mut endpoint).0, 50);
    let late = at(1) + HOURS;
    endpoint.handle_timeout(late);
    let (sent, failed) = drain(&mut endpoint);
    // No copy leaves after EXCHANGE_LIFETIME (RFC 7252 section 4.8.2): the peer may take it for another message.
    assert_eq!((sent, failed.len()), (0, 50), "{failed:?}");
    assert_eq!(endpoint.open_exchanges(), 0);
    // What follows is sent at once, with the timeouts that it always has.
    send(&mut endpoint, late, 1);
    assert_eq!(drain(&mut endpoint), (1, Vec::new()));
    assert!(matches!(endpoint.poll_output(), Output::Timeout(Some(due)) if due > late));
}

#[test]
fn a_clock_that_is_set_back_ends_nothing_and_delays_nothing() {
    let mut endpoint = endpoint();
    let late = at(1) + HOURS;
    send(&mut endpoint, late, 1);
    drain(&mut endpoint);
    let Output::Timeout(Some(due)) = endpoint.poll_output() else { panic!("no timeout") };
    // The latest instant counts.
    endpoint.handle_timeout(at(1));
    send(&mut endpoint, at(1), 2);
    assert_eq!(drain(&mut endpoint), (1, Vec::new()));
    endpoint.handle_timeout(due);
    assert_eq!(drain(&mut endpoint).1, Vec::new());
    assert_eq!(endpoint.open_exchanges(), 2);
}

#[test]
fn a_server_serves_on_after_the_clock_has_jumped() {
    let mut bench = Bench::new(
        |config| config.verify = Verify::None,
        |message, body| match message.code() {
            Code::GET => Does::Answers(Response::content(vec![b's'; 3000])),
            _ => Does::Answers(Response::new(Code::CHANGED).payload(body.len().to_string())),
        },
    );
    let block = |number: u32, more, id| {
        let option = Block::new(number, more, 6).unwrap().to_uint();
        let put = ask(Code::PUT, id, "up").option(27, encode_uint(option, &mut [0; 4]));
        put.payload(&[b'u'; 1024]).bytes()
    };
    let first = |sent: Vec<Vec<u8>>| code(sent.last().expect("an answer"));
    let observe = ask(Code::GET, 1, "state").option(6, &[]).bytes();
    assert_eq!(first(bench.take(peer(1), &observe)), Code::CONTENT);
    assert_eq!(first(bench.take(peer(2), &block(0, true, 2))), Code::CONTINUE);
    let held = bench.session.load(bench.now);
    assert_eq!((held.uploads, held.downloads), (1, 1));

    bench.advance(bench.now + HOURS);
    // What paused is given up; its client begins anew.
    assert_eq!(first(bench.take(peer(2), &block(1, false, 3))), Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(first(bench.take(peer(2), &block(0, true, 4))), Code::CONTINUE);
    assert_eq!(first(bench.take(peer(2), &block(1, false, 5))), Code::CHANGED);
    let held = bench.session.load(bench.now);
    assert_eq!(held.downloads, 0, "it was given up with the others");
    // Who observes is told the next change.
    assert_eq!(bench.observers.len(), 1);
    bench.observers.changed(1);
    bench.log.clear();
    bench.notify(&Response::content("new"));
    bench.drain();
    assert_eq!(bench.log.len(), 1);
    assert_eq!(bench.log[0].0, peer(1));
}
