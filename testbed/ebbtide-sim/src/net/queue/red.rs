//! Random Early Detection: drops by chance while the average queue is long.

use super::{Discipline, Fifo, LinkFacts, QueuedPacket, marked};
use crate::random::unit;
use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;

/// The parameters of Floyd and Jacobson's paper; queues are measured in bytes.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct RedParameters {
    /// The average below which nothing is dropped, bytes.
    pub min: u64,
    /// The average from which on everything is dropped, bytes.
    pub max: u64,
    /// The probability of a drop where the average reaches `max`, above 0 and at most 1.
    pub max_probability: f64,
    /// The weight of the present queue in the average, above 0 and at most 1.
    pub weight: f64,
}

/// A queue under RED.
#[derive(Debug)]
pub struct Red {
    parameters: RedParameters,
    buffer: Option<u64>,
    ecn: bool,
    transmission: Duration,
    queue: Fifo,
    average: f64,
    /// Packets that passed since the last drop, or since the average became long.
    passed: u32,
    /// Since when the queue is empty.
    idle_since: Option<Instant>,
    rng: ChaCha8Rng,
}

impl Red {
    /// An empty queue.
    pub fn new(parameters: RedParameters, link: &LinkFacts, rng: ChaCha8Rng) -> Self {
        Self {
            parameters,
            buffer: link.buffer,
            ecn: link.ecn,
            transmission: link.transmission,
            queue: Fifo::default(),
            average: 0.0,
            passed: 0,
            idle_since: Some(Instant::ZERO),
            rng,
        }
    }

    /// The average queue with a packet that arrives now.
    fn measure(&mut self, now: Instant) {
        let weight = self.parameters.weight;
        match self.idle_since.take() {
            None => self.average += weight * (self.queue.bytes as f64 - self.average),
            // As if so many packets had found it empty as could have left in that time. A power by
            // squaring of whole numbers: the same bits on every machine, unlike `powf`.
            Some(since) => {
                let idle = now.saturating_since(since).as_nanos();
                let packets = idle / self.transmission.as_nanos().max(1);
                self.average *= power(1.0 - weight, packets);
            }
        }
    }

    /// Whether a packet is dropped early.
    fn is_dropped_early(&mut self) -> bool {
        let RedParameters { min, max, max_probability, .. } = self.parameters;
        let (min, max) = (min as f64, max as f64);
        if self.average < min {
            self.passed = 0;
            return false;
        }
        if self.average >= max {
            self.passed = 0;
            return true;
        }
        let probability = max_probability * (self.average - min) / (max - min);
        // Grows with each packet that passes, so that the distances of drops are uniform (section 7).
        let rest = 1.0 - f64::from(self.passed) * probability;
        let is_dropped = rest <= 0.0 || unit(&mut self.rng) * rest < probability;
        self.passed = if is_dropped { 0 } else { self.passed.saturating_add(1) };
        is_dropped
    }
}

fn power(mut base: f64, mut exponent: u128) -> f64 {
    let mut product = 1.0;
    while exponent > 0 && product > 0.0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

impl Discipline for Red {
    fn enqueue(&mut self, now: Instant, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        self.measure(now);
        if self.is_dropped_early() {
            // Above `max` packets are dropped all the same (RFC 3168 section 7).
            if self.ecn && self.average < self.parameters.max as f64 {
                self.queue.offer(marked(packet), self.buffer, dropped);
            } else {
                dropped.push(packet);
            }
        } else {
            self.queue.offer(packet, self.buffer, dropped);
        }
        if self.queue.bytes == 0 {
            self.idle_since = Some(now);
        }
    }

    fn dequeue(&mut self, now: Instant, _: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        let packet = self.queue.pop();
        if self.queue.bytes == 0 && self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        packet
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes
    }
}
