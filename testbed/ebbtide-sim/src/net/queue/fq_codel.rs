//! Flow Queue CoDel (RFC 8290): a queue under CoDel for each flow, served in turn.

use super::codel::{CoDelParameters, CodelState, QueueFacts};
use super::{Discipline, Fifo, LinkFacts, QueuedPacket};
use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use std::collections::VecDeque;

/// The parameters of RFC 8290 section 5.2.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FqCoDelParameters {
    /// The parameters of each queue.
    pub codel: CoDelParameters,
    /// How many queues there are, at least 1; flows are hashed to them.
    pub queues: u32,
    /// Bytes that a queue may send in its turn; `None` is the MTU.
    pub quantum: Option<u32>,
}

impl Default for FqCoDelParameters {
    /// 1024 queues (RFC 8290 section 5.2.5), each by CoDel's defaults.
    fn default() -> Self {
        Self { codel: CoDelParameters::default(), queues: 1024, quantum: None }
    }
}

/// Where a queue waits for its turn.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum List {
    #[default]
    Neither,
    New,
    Old,
}

#[derive(Clone, Debug, Default)]
struct ClientQueue {
    packets: Fifo,
    codel: CodelState,
    /// Bytes that it may still send in this turn; below zero it has sent more.
    credits: i64,
    list: List,
}

/// Queues in turn.
#[derive(Debug)]
pub struct FqCoDel {
    parameters: FqCoDelParameters,
    quantum: i64,
    facts: QueueFacts,
    buffer: Option<u64>,
    queues: Vec<ClientQueue>,
    /// Queues that have just become active: they go first, once.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    bytes: u64,
    /// Perturbs the hash, so that which flows share a queue is a matter of luck.
    salt: u64,
}

impl FqCoDel {
    /// Empty queues.
    pub fn new(parameters: FqCoDelParameters, link: &LinkFacts, mut rng: ChaCha8Rng) -> Self {
        let quantum = i64::from(parameters.quantum.unwrap_or(link.mtu).max(1));
        Self {
            parameters,
            quantum,
            facts: QueueFacts::of_link(link),
            buffer: link.buffer,
            queues: vec![ClientQueue::default(); parameters.queues.max(1) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            salt: rng.next_u64(),
        }
    }

    /// The queue of a flow.
    fn place(&self, client: u32) -> usize {
        // The finaliser of splitmix64: every bit of the client's number moves every bit of the hash.
        let mut hash = self.salt ^ u64::from(client).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        // Below the number of queues, which fits.
        ((u128::from(hash) * self.queues.len() as u128) >> 64) as usize
    }

    /// Drops from the head of the longest queue until the rest fits (RFC 8290 section 4.1).
    fn shed(&mut self, dropped: &mut Vec<QueuedPacket>) {
        while self.buffer.is_some_and(|buffer| self.bytes > buffer) {
            let longest = self.queues.iter_mut().max_by_key(|queue| queue.packets.bytes);
            let Some(packet) = longest.and_then(|queue| queue.packets.pop()) else { return };
            self.bytes -= u64::from(packet.bytes);
            dropped.push(packet);
        }
    }
}

impl Discipline for FqCoDel {
    fn enqueue(&mut self, _: Instant, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        let place = self.place(packet.client);
        let queue = &mut self.queues[place];
        queue.packets.push(packet);
        self.bytes += u64::from(packet.bytes);
        if queue.list == List::Neither {
            (queue.list, queue.credits) = (List::New, self.quantum);
            self.new.push_back(place);
        }
        self.shed(dropped);
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        loop {
            // RFC 8290 section 4.2: new queues first.
            let from = if self.new.is_empty() { List::Old } else { List::New };
            let list = if from == List::New { &mut self.new } else { &mut self.old };
            let place = *list.front()?;
            let queue = &mut self.queues[place];
            if queue.credits <= 0 {
                queue.credits += self.quantum;
                queue.list = List::Old;
                list.pop_front();
                self.old.push_back(place);
                continue;
            }
            let before = dropped.len();
            let (parameters, link) = (&self.parameters.codel, &self.facts);
            let packet = queue.codel.dequeue(now, parameters, link, &mut queue.packets, dropped);
            let gone = dropped[before..].iter().map(|packet| u64::from(packet.bytes));
            self.bytes -= gone.sum::<u64>();
            let Some(packet) = packet else {
                list.pop_front();
                // A new queue that is empty becomes an old one, lest it go first again and again.
                if from == List::New && !self.old.is_empty() {
                    queue.list = List::Old;
                    self.old.push_back(place);
                } else {
                    queue.list = List::Neither;
                }
                continue;
            };
            self.bytes -= u64::from(packet.bytes);
            queue.credits -= i64::from(packet.bytes);
            return Some(packet);
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
