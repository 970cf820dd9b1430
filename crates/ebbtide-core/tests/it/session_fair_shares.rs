//! Fair shares: who takes as much as it can is refused first, and a newcomer finds room.

use crate::common::server_session::{Ask, Bench, Does, ask, at, code, peer};
use ebbtide_core::endpoint::{Endpoint, EndpointConfig};
use ebbtide_core::session::{ObserverId, Observers, Registration, Response, Subject, Verify};
use ebbtide_core::wire::{Block, Code, Message, OptionNumber, encode_uint};
use ebbtide_core::{PeerId, PeerToken};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
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

/// The first block of an upload without an end, or the second one.
fn endless(number: u32, id: u16) -> Ask {
    endless_of(id / 2, number, id)
}

fn endless_of(upload: u16, number: u32, id: u16) -> Ask {
    let option = Block::new(number, true, 0).unwrap().to_uint();
    let put = ask(Code::PUT, id, &format!("up{upload}"));
    put.option(27, encode_uint(option, &mut [0; 4])).payload(&[b'u'; 16])
}

#[test]
fn one_address_cannot_hold_all_places_of_uploads_however_short_they_are() {
    let mut bench = bench(64 * MEGABYTE);
    let mut begun = 0;
    for n in 0..1100 {
        begun +=
            usize::from(code(&send(&mut bench, peer(1), &endless(0, 2 * n))) == Code::CONTINUE);
        // It goes on, so that nobody makes it go.
        send(&mut bench, peer(1), &endless(1, 2 * n + 1));
    }
    assert_eq!(begun, 512, "half of the places are the most");
    assert_eq!(code(&send(&mut bench, peer(2), &endless(0, 0))), Code::CONTINUE);
}

#[test]
fn uploads_of_one_address_that_begin_at_once_and_then_advance_leave_room_to_others() {
    const ALL: u16 = 1024;
    let mut bench = bench(64 * MEGABYTE);
    let advance = |bench: &mut Bench, number: u32| {
        let go_on = |n| endless_of(n, number, number as u16 * ALL + n);
        let codes = (0..ALL).map(|n| code(&send(bench, peer(1), &go_on(n))));
        codes.filter(|code| *code == Code::CONTINUE).count()
    };
    assert_eq!(advance(&mut bench, 0), 1024);
    assert_eq!(advance(&mut bench, 1), 1024);
    let begun = |bench: &mut Bench, from, count: u16| {
        let codes = (0..count).map(|n| {
            let begun = code(&send(bench, from, &endless_of(n, 0, 2 * n)));
            send(bench, from, &endless_of(n, 1, 2 * n + 1));
            begun
        });
        codes.filter(|code| *code == Code::CONTINUE).count()
    };
    assert_eq!(begun(&mut bench, peer(2), 600), 256, "half of what the first one leaves");
    for number in 0..5 {
        // What they lost was not within the share of the first one.
        assert!(advance(&mut bench, number + 2) >= 512);
        let last = number == 4;
        let answer = code(&send(&mut bench, peer(3), &block(number, 5000, number as u16, "up")));
        assert_eq!(answer, if last { Code::CHANGED } else { Code::CONTINUE });
    }
    // Those that advance no more make room.
    bench.now = at(106);
    assert_eq!(begun(&mut bench, peer(4), 600), 512);
}

#[test]
fn uploads_of_one_address_that_announce_at_once_or_not_at_all_leave_half_of_the_bytes() {
    const EACH: usize = 15 * MEGABYTE;
    let mut bench = bench(64 * MEGABYTE);
    for number in 0..2 {
        for n in 0..8 {
            let put = block(number, EACH, number as u16 * 8 + n, &format!("up{n}"));
            assert_eq!(code(&send(&mut bench, peer(1), &put)), Code::CONTINUE);
        }
    }
    assert_eq!(code(&send(&mut bench, peer(2), &block(0, EACH, 1, "up"))), Code::CONTINUE);
    assert_eq!(code(&send(&mut bench, peer(2), &block(1, EACH, 2, "up"))), Code::CONTINUE);
    assert_eq!(code(&send(&mut bench, peer(3), &block(0, EACH, 1, "up"))), Code::CONTINUE);

    // Of uploads without an announcement nobody knows how long they become.
    let mut bench = self::bench(MEGABYTE);
    let grow = |bench: &mut Bench, number: u32| {
        let mut grown = 0;
        for n in 0..4 {
            let option = Block::new(number, true, 6).unwrap().to_uint();
            let put = ask(Code::PUT, number as u16 * 4 + n, &format!("up{n}"));
            let put = put.option(27, encode_uint(option, &mut [0; 4])).payload(&[b'u'; 1024]);
            grown += usize::from(code(&send(bench, peer(1), &put)) == Code::CONTINUE);
        }
        grown
    };
    for number in 0..240 {
        assert_eq!(grow(&mut bench, number), 4);
    }
    let total = 250_000_usize;
    for number in 0..total.div_ceil(1024) as u32 {
        grow(&mut bench, 240 + number);
        let answer = code(&send(&mut bench, peer(2), &block(number, total, number as u16, "up")));
        let last = (number as usize + 1) * 1024 >= total;
        assert_eq!(answer, if last { Code::CHANGED } else { Code::CONTINUE }, "block {number}");
    }
}

/// A block of 1024 bytes, or the last one, of a body of `total` bytes in the blocks of RFC 9177.
fn quick(upload: u16, number: u32, total: u32, id: u16) -> Ask {
    let rest = total - number * 1024;
    let option = Block::new(number, rest > 1024, 6).unwrap().to_uint();
    let put = ask(Code::PUT, id, &format!("up{upload}"));
    let put = put.option(19, encode_uint(option, &mut [0; 4]));
    let put = put.option(60, encode_uint(total, &mut [0; 4])).option(292, b"tag");
    put.payload(&vec![b'u'; rest.min(1024) as usize])
}

#[test]
fn long_bodies_in_quick_blocks_of_one_address_displace_its_own() {
    let mut bench = bench(MEGABYTE);
    let config = EndpointConfig { q_block: true, ..EndpointConfig::default() };
    bench.endpoint = Endpoint::new(config, Box::new(ChaCha8Rng::seed_from_u64(2)));
    for n in 0..5 {
        bench.take(peer(2), &quick(n, 0, 3000, n).bytes());
    }
    assert_eq!(bench.session.load(bench.now).uploads, 5);
    for number in 0..400 {
        for n in 0..4 {
            let block = quick(n, number, 400 * 1024 + 1, number as u16 * 4 + n);
            bench.take(peer(1), &block.bytes());
        }
    }
    assert!(bench.session.refusals().uploads_evicted > 0);
    assert!(bench.session.load(bench.now).block_bytes <= MEGABYTE);
    // The bodies of the other one are whole with their last blocks.
    let before = bench.calls;
    for n in 0..5 {
        for number in 1..3 {
            let block = quick(n, number, 3000, 10 + 2 * n + number as u16);
            bench.take(peer(2), &block.bytes());
        }
    }
    assert_eq!(bench.calls - before, 5);
}

#[test]
fn beginnings_of_uploads_of_one_address_displace_its_own() {
    let mut bench = bench(64 * MEGABYTE);
    // Of a device with a long round trip, which has sent the first block only.
    assert_eq!(code(&send(&mut bench, peer(2), &endless(0, 0))), Code::CONTINUE);
    for n in 1..1100 {
        assert_eq!(code(&send(&mut bench, peer(1), &endless(0, 2 * n))), Code::CONTINUE);
    }
    assert!(bench.session.refusals().uploads_evicted > 0);
    assert_eq!(code(&send(&mut bench, peer(2), &endless(1, 1))), Code::CONTINUE);
}

fn register(observers: &mut Observers, remote: PeerId, token: u32, max: usize) -> bool {
    register_with(observers, remote, token, max, &[0x40, 1, 0, 0])
}

fn register_with(
    observers: &mut Observers,
    remote: PeerId,
    token: u32,
    max: usize,
    request: &[u8],
) -> bool {
    let registration = Registration {
        remote,
        token: PeerToken::new(&token.to_be_bytes()),
        local: None,
        unverified: false,
        subject: Subject { id: 1, confirmable: false },
        request,
        sent: 0,
        format: None,
    };
    observers.register(at(1), &registration, max).is_some()
}

#[test]
fn observers_with_long_requests_take_more_places() {
    let mut observers = Observers::new(7);
    let long = [0; 60_000];
    let taken = |observers: &mut Observers, from| {
        (0..100).filter(|n| register_with(observers, peer(from), *n, 4000, &long)).count()
    };
    assert_eq!(taken(&mut observers, 1), 4, "one holds as much as it leaves free");
    assert!(observers.held_bytes() > 4 * long.len(), "{}", observers.held_bytes());
    assert!(register(&mut observers, peer(2), 1, 4000));
    // A registration that becomes long finds no more room than another, and one that becomes short gives room back.
    assert!(register(&mut observers, peer(1), 200, 4000));
    assert!(!register_with(&mut observers, peer(1), 200, 4000, &long));
    for n in 0..4 {
        assert!(register(&mut observers, peer(1), n, 4000));
    }
    assert_eq!(observers.taken(), observers.len());
    assert_eq!(taken(&mut observers, 3), 4);
}

/// The notifications that may be sent now, by the last byte of their addresses.
fn notified(observers: &mut Observers, last: u8) -> Vec<ObserverId> {
    let all = std::iter::from_fn(|| observers.pop_due(at(2)));
    let [own, others]: [Vec<_>; 2] = {
        let mut parts = [Vec::new(), Vec::new()];
        all.for_each(|due| {
            parts[usize::from(due.remote.source() != peer(last).source())].push(due)
        });
        parts
    };
    assert!(others.iter().all(|due| due.confirmable));
    own.iter().map(|due| due.observer).collect()
}

#[test]
fn an_address_whose_observers_are_silent_holds_up_nobody_else() {
    const PORTS: u16 = 6000;
    let mut observers = Observers::new(7);
    for port in 0..PORTS {
        let from = PeerId::Address(SocketAddr::from(([192, 0, 2, 1], port)));
        assert!(register_confirmable(&mut observers, from));
    }
    // All of them have acknowledged one.
    observers.changed(1);
    let mut acknowledged = 0;
    while let Some(due) = observers.pop_due(at(1)) {
        observers.acknowledged(due.observer);
        acknowledged += 1;
    }
    assert_eq!(acknowledged, PORTS);
    assert!(register_confirmable(&mut observers, peer(2)));
    observers.changed(1);
    let silent = notified(&mut observers, 1);
    assert_eq!(silent.len(), 2048, "half of all that may be in flight");
    assert_eq!(observers.parked(), usize::from(PORTS) - silent.len());
    // The other one, which came last and has proved nothing, was among them: it is not due any more.
    assert!(notified(&mut observers, 2).is_empty() && !observers.any_due());
    observers.changed(1);
    assert!(notified(&mut observers, 2).is_empty(), "one at a time");
    // Each that ends makes room for the next of its own.
    for gone in &silent[..10] {
        observers.lost(*gone);
    }
    assert_eq!(notified(&mut observers, 1).len(), 10);
    silent[10..].iter().for_each(|gone| observers.lost(*gone));
    assert_eq!(notified(&mut observers, 1).len(), 2038);
}

fn register_confirmable(observers: &mut Observers, remote: PeerId) -> bool {
    let registration = Registration {
        remote,
        token: PeerToken::new(&[1]),
        local: None,
        unverified: false,
        subject: Subject { id: 1, confirmable: true },
        request: &[0x40, 1, 0, 0],
        sent: 0,
        format: None,
    };
    observers.register(at(1), &registration, 100_000).is_some()
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
