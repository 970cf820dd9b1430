//! Fair shares: who takes as much as it can is refused first, and a newcomer finds room.

use crate::common::server_session::{Ask, Bench, Does, ask, at, code, peer};
use ebbtide_core::session::{Observers, Registration, Response, Subject, Verify};
use ebbtide_core::wire::{Block, Code, Message, OptionNumber, encode_uint};
use ebbtide_core::{PeerId, PeerToken};
use std::net::{Ipv6Addr, SocketAddr};

const MEGABYTE: usize = 1_000_000;

fn bench(max_block_bytes: usize) -> Bench {
    Bench::new(
        |config| {
            config.max_block_bytes = max_block_bytes;
            config.verify = Verify::None;
        },
        |_, body| Does::Answers(Response::new(Code::CHANGED).payload(body.len().to_string())),
    )
}

/// A block of an upload of `total` bytes; the first one announces them.
fn block(number: u32, total: usize, id: u16, path: &str) -> Ask {
    let offset = number as usize * 1024;
    let more = offset + 1024 < total;
    let option = Block::new(number, more, 6).unwrap().to_uint();
    let put = ask(Code::PUT, id, path).option(27, encode_uint(option, &mut [0; 4]));
    let size = u32::try_from(total).unwrap();
    let put = if number == 0 { put.option(60, encode_uint(size, &mut [0; 4])) } else { put };
    put.payload(&vec![b'u'; (total - offset).min(1024)])
}

fn send(bench: &mut Bench, from: PeerId, ask: &Ask) -> Vec<u8> {
    bench.log.clear();
    bench.take(from, &ask.bytes()).pop().expect("an answer")
}

#[test]
fn eight_uploads_that_fill_the_room_finish_and_a_ninth_is_refused_at_its_first_block() {
    const EACH: usize = 15 * MEGABYTE;
    let mut bench = bench(8 * EACH);
    for number in 0..EACH.div_ceil(1024) as u32 {
        let last = number as usize + 1 == EACH.div_ceil(1024);
        for n in 1..=8 {
            let answer = send(&mut bench, peer(n), &block(number, EACH, number as u16, "up"));
            let expected = if last { Code::CHANGED } else { Code::CONTINUE };
            assert_eq!(code(&answer), expected, "block {number} of client {n}");
            if last {
                let message = Message::parse(&answer).unwrap();
                assert_eq!(message.payload(), EACH.to_string().as_bytes());
            }
        }
        // At the beginning, where all is only announced, and later, where half is here.
        if number % 5000 == 1 {
            let answer = send(&mut bench, peer(9), &block(0, EACH, number as u16, "up"));
            assert_eq!(code(&answer), Code::SERVICE_UNAVAILABLE);
            let message = Message::parse(&answer).unwrap();
            let max_age = message.option(OptionNumber::MAX_AGE).and_then(|opt| opt.as_uint());
            assert_eq!(max_age, Some(10));
        }
        assert!(bench.session.load(bench.now).block_bytes <= 8 * EACH);
    }
    let answer = send(&mut bench, peer(9), &block(0, EACH, 60_000, "up"));
    assert_eq!(code(&answer), Code::CONTINUE, "there is room again");
}

#[test]
fn one_address_cannot_announce_all_the_room() {
    let mut bench = bench(64 * MEGABYTE);
    let begin = |bench: &mut Bench, from, n: u16| {
        let path = format!("up{n}");
        let first = code(&send(bench, from, &block(0, 15 * MEGABYTE, 2 * n, &path)));
        if first == Code::CONTINUE {
            // It goes on, so that nobody makes it go.
            send(bench, from, &block(1, 15 * MEGABYTE, 2 * n + 1, &path));
        }
        first
    };
    let greedy: Vec<_> = (0..4).map(|n| begin(&mut bench, peer(1), n)).collect();
    let (yes, no) = (Code::CONTINUE, Code::SERVICE_UNAVAILABLE);
    assert_eq!(greedy, [yes, yes, no, no], "half of the room is the most");
    // Other ports of the address are the same client, other addresses are not.
    let other_port = PeerId::Address(SocketAddr::from(([192, 0, 2, 1], 9999)));
    assert_eq!(begin(&mut bench, other_port, 10), no);
    assert_eq!(begin(&mut bench, peer(2), 20), yes);
    assert_eq!(begin(&mut bench, peer(3), 30), yes);
}

fn register(observers: &mut Observers, remote: PeerId, token: u32, max: usize) -> bool {
    let registration = Registration {
        remote,
        token: PeerToken::new(&token.to_be_bytes()),
        local: None,
        unverified: false,
        subject: Subject { id: 1, confirmable: false },
        request: &[0x40, 1, 0, 0],
        sent: 0,
        format: None,
    };
    observers.register(at(1), &registration, max).is_some()
}

#[test]
fn one_address_cannot_take_all_places_of_observers() {
    let mut observers = Observers::new(7);
    let taken = (0..2000).filter(|n| register(&mut observers, peer(1), *n, 1000)).count();
    assert_eq!(taken, 500, "one holds as much as it leaves free");
    let taken = (0..2000).filter(|n| register(&mut observers, peer(2), *n, 1000)).count();
    assert_eq!(taken, 250);
    assert_eq!(observers.refused(), 1500 + 1750);
    for n in 3..53 {
        assert!(register(&mut observers, peer(n), 1, 1000), "newcomer {n}");
    }
    // Who gives places back may have them again.
    for token in 0..400 {
        observers.deregister(peer(1), &PeerToken::new(&u32::to_be_bytes(token)));
    }
    let taken = (3000..5000).filter(|n| register(&mut observers, peer(1), *n, 1000)).count();
    assert!((200..=400).contains(&taken), "{taken}");
}

#[test]
fn the_addresses_of_an_ipv6_prefix_share_the_places_of_observers() {
    let host = |prefix: u128, n: u128| {
        PeerId::Address(SocketAddr::from((
            Ipv6Addr::from_bits((0x2001_0db8 << 96) | prefix << 64 | n),
            5683,
        )))
    };
    let mut observers = Observers::new(7);
    let taken = (0..2000_u32).filter(|n| register(&mut observers, host(1, (*n).into()), *n, 1000));
    assert_eq!(taken.count(), 500);
    assert!(register(&mut observers, host(2, 1), 1, 1000));
}

#[test]
fn one_address_that_fetches_much_does_not_drive_out_what_another_fetches() {
    // Each body is of 100 kB, and there is room for ten of them.
    let mut bench = Bench::new(
        |config| {
            config.max_block_bytes = MEGABYTE;
            config.verify = Verify::None;
        },
        |_, _| Does::Answers(Response::content(vec![b'd'; MEGABYTE / 10])),
    );
    let fetch = |bench: &mut Bench, from: PeerId, n: u16, number: u32| {
        let option = Block::new(number, false, 6).unwrap().to_uint();
        let block2 = (23, encode_uint(option, &mut [0; 4]).to_vec());
        let mut get = ask(Code::GET, n, &format!("f{}", n / 100));
        get.options.push(block2);
        let before = bench.calls;
        assert_eq!(code(&send(bench, from, &get)), Code::CONTENT);
        bench.calls > before
    };
    let modest = [peer(1), peer(2)];
    for (n, from) in modest.into_iter().enumerate() {
        assert!(fetch(&mut bench, from, 100 * n as u16, 0), "the first block asks the handler");
    }
    for n in 0..300 {
        assert!(fetch(&mut bench, peer(9), 1000 + 100 * n, 0));
    }
    for (n, from) in modest.into_iter().enumerate() {
        assert!(!fetch(&mut bench, from, 100 * n as u16 + 1, 1), "it is still kept");
    }
    // Its own earlier bodies went instead: the handler is asked again.
    assert!(fetch(&mut bench, peer(9), 1001, 1));
    assert!(bench.session.load(bench.now).block_bytes <= MEGABYTE);
}

#[test]
fn a_first_download_finds_room_beside_clients_with_many() {
    let mut bench = Bench::new(
        |config| {
            config.max_block_bytes = MEGABYTE;
            config.verify = Verify::None;
        },
        |_, _| Does::Answers(Response::content(vec![b'd'; MEGABYTE / 2])),
    );
    let mut fetch = |from, id, path: &str, number| {
        let option = Block::new(number, false, 6).unwrap().to_uint();
        let get = ask(Code::GET, id, path).option(23, encode_uint(option, &mut [0; 4]));
        send(&mut bench, from, &get);
        bench.calls
    };
    fetch(peer(1), 1, "a", 0);
    fetch(peer(1), 2, "b", 0);
    let asked = fetch(peer(2), 3, "c", 0);
    assert_eq!(asked, 3);
    assert_eq!(fetch(peer(2), 4, "c", 1), asked, "the newcomer's is kept");
    assert_eq!(fetch(peer(1), 5, "b", 1), asked, "of the other's two one is");
    assert_eq!(fetch(peer(1), 6, "a", 1), asked + 1, "and the older one is not");
}
