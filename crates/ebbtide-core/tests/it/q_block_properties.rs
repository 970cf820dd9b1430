//! What holds for every body over every path that lets something through: all of it arrives, nothing
//! leaves faster than RFC 9177 section 7.2 allows, and nobody spins.

use crate::common::seeded;
use ebbtide_core::q_block::{BlockArrival, QBlockParameters, Receiver, Receiving, Sender, Sending};
use ebbtide_core::time::{Duration, Instant};
use proptest::collection::vec;
use proptest::prelude::*;
use rand_core::Rng;
use std::collections::BTreeMap;

#[derive(Copy, Clone, Debug)]
enum Word {
    Block(u32),
    Continue(u32),
    /// The first place in `Line::lists`.
    Missing(usize),
    /// The answer to a whole upload.
    Done,
}

/// One direction of a path: it loses so many messages of a hundred, and delays the others.
struct Channel {
    rng: Box<dyn Rng + Send>,
    lost_percent: u32,
}

impl Channel {
    fn new(seed: u64, lost_percent: u32) -> Self {
        Self { rng: seeded(seed), lost_percent }
    }

    fn send(&mut self, now: Instant) -> Option<Instant> {
        let (fate, delay) = (self.rng.next_u32() % 100, self.rng.next_u32() % 1_500);
        (fate >= self.lost_percent).then_some(now + Duration::from_millis(delay.into()))
    }
}

/// When each block left, and each Continue that the sender heard came.
#[derive(Default)]
struct Record {
    left: Vec<(Instant, u32)>,
    continued: Vec<Instant>,
}

/// Carries one body over the path. Panics if it does not get there.
fn carry(
    mut sender: Sender,
    blocks: u32,
    params: QBlockParameters,
    mut ways: [Channel; 2],
    answers: bool,
) -> Record {
    let (mut now, mut order) = (Instant::ZERO, 0u64);
    // A server learns of a body with its first block; a client asked for one.
    let mut receiver = (!answers).then(|| Receiver::new(now, blocks, params));
    let mut here = vec![false; blocks as usize];
    let mut flying: BTreeMap<(Instant, u64), Word> = BTreeMap::new();
    let mut lists: Vec<Vec<u32>> = Vec::new();
    let mut record = Record::default();
    let mut complete = false;
    for step in 0.. {
        assert!(step < 2_000 + 200 * blocks as usize, "no end in sight");
        let mut wake: Option<Instant>;
        let mut say = |way: usize, now, word| {
            order += 1;
            if let Some(arrives) = ways[way].send(now) {
                flying.insert((arrives, order), word);
            }
        };
        loop {
            match sender.poll(now) {
                Sending::Block(num) => {
                    record.left.push((now, num));
                    say(0, now, Word::Block(num));
                }
                Sending::Wait(at) => {
                    wake = at;
                    assert!(at.is_none_or(|at| at > now), "it spins");
                    break;
                }
                Sending::GiveUp => panic!("the sender gave up"),
            }
        }
        while let (Some(machine), false) = (&mut receiver, complete) {
            match machine.poll(now) {
                Receiving::Complete => {
                    complete = true;
                    say(1, now, Word::Done);
                }
                Receiving::Continue(from) => say(1, now, Word::Continue(from)),
                Receiving::Missing => {
                    let list: Vec<u32> = machine.missing().collect();
                    assert!(!list.is_empty() && list.len() <= params.set() as usize);
                    assert!(list.is_sorted_by(|a, b| a < b));
                    assert!(list.iter().all(|&num| !here[num as usize]));
                    machine.sent(now, 20);
                    say(1, now, Word::Missing(lists.len()));
                    lists.push(list);
                }
                Receiving::Wait(at) => {
                    assert!(at > now, "it spins");
                    wake = wake.into_iter().chain([at]).min();
                    break;
                }
                Receiving::GiveUp => panic!("the receiver gave up"),
            }
        }
        if complete && !answers {
            break;
        }
        let arrives = flying.first_key_value().map(|((at, _), _)| *at);
        let Some(next) = arrives.into_iter().chain(wake).min() else { panic!("nobody wakes") };
        now = next;
        if arrives != Some(now) {
            continue;
        }
        match flying.pop_first().map(|(_, word)| word) {
            Some(Word::Block(num)) if complete => {
                // Answered as the first time (RFC 9177 section 4.3).
                order += 1;
                if let Some(arrives) = ways[1].send(now) {
                    flying.insert((arrives, order), Word::Done);
                }
                assert!(here[num as usize]);
            }
            Some(Word::Block(num)) => {
                let machine = receiver.get_or_insert_with(|| Receiver::new(now, blocks, params));
                let arrival = machine.on_block(now, num);
                let before = std::mem::replace(&mut here[num as usize], true);
                assert_eq!(
                    arrival,
                    if before { BlockArrival::Duplicate } else { BlockArrival::New }
                );
            }
            Some(Word::Continue(from)) => {
                assert!(here[..from as usize].iter().all(|here| *here));
                record.continued.push(now);
                sender.on_continue(from);
            }
            Some(Word::Missing(place)) => sender.on_missing(lists[place].iter().copied()),
            Some(Word::Done) | None => break,
        }
    }
    assert!(here.iter().all(|here| *here), "the whole body is here");
    record
}

/// At most a set of new blocks and a set of repeated ones within NON_TIMEOUT, and another of each
/// for every Continue.
fn is_paced(record: &Record, params: &QBlockParameters) -> bool {
    let span = params.non_timeout.to_duration();
    record.left.iter().enumerate().all(|(first, &(begin, _))| {
        let within = |at: Instant| at >= begin && at < begin + span;
        let left = record.left[first..].iter().take_while(|(at, _)| within(*at)).count();
        // A Continue before the first of them may have let it go.
        let earlier = record.continued.iter().filter(|at| within(**at)).count() + 1;
        left <= 2 * params.set() as usize * (1 + earlier)
    })
}

fn lost_percent() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 1..=10_u32, 10..=50_u32]
}

fn parameters() -> impl Strategy<Value = QBlockParameters> {
    (1..=12_u8, 1..3_000_u32).prop_map(|(max_payloads, timeout)| QBlockParameters {
        max_payloads,
        non_timeout: ebbtide_core::time::Micros::from_millis(timeout),
        // Half of all lost in both directions: each request has a chance of a quarter.
        non_max_retransmit: 60,
        ..QBlockParameters::DEFAULT
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn an_upload_arrives_and_is_answered(
        blocks in 1..120_u32, params in parameters(), there in lost_percent(), back in lost_percent(), seed: u64,
    ) {
        let sender = Sender::upload(blocks, true, params, &mut *seeded(seed));
        let record = carry(sender, blocks, params, [Channel::new(!seed, there), Channel::new(seed ^ 1, back)], true);
        prop_assert!(is_paced(&record, &params));
    }

    #[test]
    fn a_download_arrives(
        blocks in 1..120_u32, params in parameters(), there in lost_percent(), back in lost_percent(), seed: u64,
    ) {
        let sender = Sender::download(blocks, params, &mut *seeded(seed));
        let record = carry(sender, blocks, params, [Channel::new(!seed, there), Channel::new(seed ^ 1, back)], false);
        prop_assert!(is_paced(&record, &params));
    }

    #[test]
    fn a_sender_that_is_told_nonsense_keeps_its_pace_and_its_bounds(
        blocks in 0..60_u32, params in parameters(), words in vec((0..4_u8, 0..80_u32, 0..4_000_u64), 1..200),
        seed: u64,
    ) {
        let mut sender = Sender::upload(blocks, true, params, &mut *seeded(seed));
        let (mut now, mut record) = (Instant::ZERO, Record::default());
        for (what, num, millis) in words {
            for polls in 0.. {
                prop_assert!(polls <= 2 * params.set());
                match sender.poll(now) {
                    Sending::Block(num) => {
                        prop_assert!(num < blocks);
                        record.left.push((now, num));
                    }
                    Sending::Wait(at) => {
                        prop_assert!(at.is_none_or(|at| at > now));
                        break;
                    }
                    Sending::GiveUp => break,
                }
            }
            now = now + Duration::from_millis(if what == 3 { millis } else { 0 });
            match what {
                0 => {
                    record.continued.push(now);
                    sender.on_continue(num);
                }
                1 => sender.on_missing(num..num + 30),
                2 => sender.on_missing([num]),
                _ => {}
            }
        }
        prop_assert!(is_paced(&record, &params));
    }
}
