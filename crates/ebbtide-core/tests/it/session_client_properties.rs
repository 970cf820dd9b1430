//! Whatever is lost, whatever overtakes what, and whichever sizes the server prefers: each body arrives
//! whole, in both directions.

use crate::common::transfer::put;
use ebbtide_core::session::client::{Loss, Outgoing, Step, Transfer, TransferSettings};
use ebbtide_core::session::{BlockSizes, BurstMark, Response};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Block, Code, OptionNumber};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A server that puts one body together and answers with it.
struct Server {
    rng: ChaCha8Rng,
    /// It takes blocks in any order, and says so.
    any_order: bool,
    /// The size exponent that it prefers; it may come to prefer a smaller one.
    szx: u8,
    tag: Vec<u8>,
    body: Vec<u8>,
    /// Of a server that takes any order: which bytes are there.
    here: Vec<bool>,
    finished: Option<Vec<u8>>,
}

impl Server {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.next_u32() % 100 < percent
    }

    fn answer(&mut self, message: &Outgoing) -> Response {
        let option =
            |number| message.options.get_uint(number).map(|v| Block::from_uint(v).unwrap());
        if let Some(block) = option(OptionNumber::BLOCK2).filter(|block| block.num() > 0) {
            return self.give(block);
        }
        let Some(block) = option(OptionNumber::BLOCK1) else {
            self.finished = Some(message.payload.to_vec());
            return self.give(Block::new(0, false, self.szx).unwrap());
        };
        let tag = message.options.get(OptionNumber::REQUEST_TAG).unwrap().value.to_vec();
        if tag != self.tag {
            (self.tag, self.finished) = (tag, None);
            self.body.clear();
            self.here.clear();
        }
        let (start, end) =
            (block.offset() as usize, block.offset() as usize + message.payload.len());
        let first = option(OptionNumber::BLOCK1).is_some_and(|block| block.num() == 0);
        assert_eq!(message.options.get_uint(OptionNumber::SIZE1).is_some(), first);
        if !self.any_order && start > self.body.len() {
            return Response::new(Code::REQUEST_ENTITY_INCOMPLETE);
        }
        self.body.resize(self.body.len().max(end), 0);
        self.here.resize(self.body.len(), false);
        self.body[start..end].copy_from_slice(&message.payload);
        self.here[start..end].fill(true);
        if block.more() {
            let mut answer = Response::new(Code::CONTINUE);
            let szx = block.szx().min(self.szx);
            // Its own number, or that of the same byte in smaller blocks.
            let num = if self.chance(50) { block.num() } else { block.offset() >> (szx + 4) };
            let num = if szx == block.szx() { block.num() } else { num };
            answer
                .options_mut()
                .push_uint(OptionNumber::BLOCK1, Block::new(num, true, szx).unwrap().to_uint());
            if first && self.any_order {
                BurstMark { burst: 0, behind: 0, sequence: 0 }.push(answer.options_mut());
            }
            if self.szx > 0 && self.chance(3) {
                self.szx -= 1;
            }
            return answer;
        }
        if self.here.contains(&false) {
            return Response::new(Code::REQUEST_ENTITY_INCOMPLETE);
        }
        self.finished = Some(self.body[..end].to_vec());
        let mut answer = self.give(Block::new(0, false, self.szx).unwrap());
        answer.options_mut().push_uint(OptionNumber::BLOCK1, block.to_uint());
        answer
    }

    /// A block of the answer, no larger than wanted, and no larger than it prefers now.
    fn give(&mut self, wanted: Block) -> Response {
        let body = self.finished.clone().unwrap();
        let start = wanted.offset() as usize;
        let szx = wanted.szx().min(self.szx);
        let end = (start + (16 << szx)).min(body.len());
        let mut answer =
            Response::new(Code::CHANGED).payload(body[start..end].to_vec()).etag(b"v1");
        let block = Block::new((start >> (szx + 4)) as u32, end < body.len(), szx).unwrap();
        answer.options_mut().push_uint(OptionNumber::BLOCK2, block.to_uint());
        answer
    }
}

/// What becomes of one transfer; panics unless its body arrives and comes back whole.
fn run(seed: u64, length: usize, in_flight: u8, any_order: bool, lost: u32) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut server = Server {
        any_order,
        szx: (rng.next_u32() % 7) as u8,
        tag: Vec::new(),
        body: Vec::new(),
        here: Vec::new(),
        finished: None,
        rng: ChaCha8Rng::seed_from_u64(seed ^ 1),
    };
    let mut settings =
        TransferSettings::new(BlockSizes::of_datagrams(16 << (rng.next_u32() % 7)), 1 << 20);
    settings.in_flight = in_flight;
    settings.patience.until = Some(Instant::MAX);
    let request = put(length);
    let body = request.payload.clone();
    let mut transfer = Transfer::new(request, settings);
    let (mut now, mut under_way) = (Instant::ZERO, Vec::<Outgoing>::new());
    for _ in 0..100_000 {
        match transfer.poll(now, &mut rng) {
            Step::Send(message) => under_way.push(message),
            Step::Cancel(id) => under_way.retain(|message| message.id != id),
            Step::Done(result) => {
                let answer = result.unwrap();
                assert_eq!(answer.code(), Code::CHANGED, "{}", answer.text());
                assert!(*answer.body() == body, "another body came back");
                assert!(server.finished.unwrap() == body, "another body arrived");
                return;
            }
            Step::Wait(at) if under_way.is_empty() => now = at.expect("it waits for nothing"),
            Step::Wait(_) => {
                // Mostly in their order, sometimes one overtakes others.
                let index = if rng.next_u32() % 4 == 0 {
                    rng.next_u32() as usize % under_way.len()
                } else {
                    0
                };
                let message = under_way.remove(index);
                now = now + Duration::from_millis(1);
                let fate = rng.next_u32() % 100;
                if fate < lost {
                    transfer.handle_loss(now, message.id, Loss::Unanswered);
                    continue;
                }
                let answer = server.answer(&message);
                if fate < 2 * lost {
                    transfer.handle_loss(now, message.id, Loss::Unanswered);
                } else {
                    transfer.handle_response(now, message.id, answer);
                }
            }
        }
    }
    panic!("it does not end");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_body_arrives_whole_block_by_block(seed: u64, length in 0usize..6000, lost in 0u32..20) {
        run(seed, length, 1, false, lost);
    }

    #[test]
    fn a_body_arrives_whole_with_many_blocks_in_flight(
        seed: u64,
        length in 0usize..6000,
        in_flight in 2u8..64,
        lost in 0u32..20,
    ) {
        run(seed, length, in_flight, true, lost);
    }
}
