//! Proportional Integral controller Enhanced (RFC 8033): drops by chance what arrives, by how long
//! packets wait and whether they wait longer and longer.

use super::{Discipline, Fifo, LinkFacts, QueuedPacket, marked};
use crate::random::unit;
use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;

/// The parameters of RFC 8033 section 5.1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PieParameters {
    /// The wait that is aimed at (QDELAY_REF).
    pub target: Duration,
    /// How often the probability is computed (T_UPDATE).
    pub update: Duration,
    /// How long a burst may be before anything is dropped (MAX_BURST).
    pub burst: Duration,
}

impl Default for PieParameters {
    /// 15 ms, 15 ms and 150 ms (RFC 8033 section 5.1).
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            burst: Duration::from_millis(150),
        }
    }
}

/// The weights of the wait and of its trend, per second (RFC 8033 section 5.1).
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// The probability below which packets are marked in place of being dropped (`mark_ecnth`, section 5.1).
const MARK_BELOW: f64 = 0.1;

/// A queue under PIE.
#[derive(Debug)]
pub struct Pie {
    parameters: PieParameters,
    mtu: u32,
    ecn: bool,
    buffer: Option<u64>,
    queue: Fifo,
    probability: f64,
    /// The waiting time of the packet that left last.
    delay: Duration,
    /// `delay` at the last update.
    delay_before: Duration,
    burst_allowance: Duration,
    next_update: Instant,
    rng: ChaCha8Rng,
}

impl Pie {
    /// An empty queue.
    pub fn new(parameters: PieParameters, link: &LinkFacts, rng: ChaCha8Rng) -> Self {
        Self {
            parameters,
            mtu: link.mtu,
            ecn: link.ecn,
            buffer: link.buffer,
            queue: Fifo::default(),
            probability: 0.0,
            delay: Duration::ZERO,
            delay_before: Duration::ZERO,
            burst_allowance: parameters.burst,
            next_update: Instant::ZERO + parameters.update,
            rng,
        }
    }

    /// The updates that were due until now (RFC 8033 section 4.2).
    fn catch_up(&mut self, now: Instant) {
        while self.next_update <= now {
            self.update();
            if self.probability == 0.0 && self.delay == Duration::ZERO {
                // Nothing changes until a packet waits: those that are left are all alike.
                let behind = now.saturating_since(self.next_update).as_nanos();
                let step = self.parameters.update.as_nanos().max(1);
                let turns = u64::try_from(behind / step).unwrap_or(u64::MAX);
                let skipped = turns.saturating_mul(u64::try_from(step).unwrap_or(u64::MAX));
                self.next_update = self.next_update + Duration::from_nanos(skipped);
            }
            self.next_update = self.next_update + self.parameters.update;
        }
    }

    fn update(&mut self) {
        let seconds = |time: Duration| time.as_nanos() as f64 / 1e9;
        let (delay, before) = (seconds(self.delay), seconds(self.delay_before));
        let target = seconds(self.parameters.target);
        let mut step = ALPHA * (delay - target) + BETA * (delay - before);
        // Small probabilities change in small steps.
        step /= match self.probability {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        // Section 5.5: high probabilities rise by at most 0.02.
        if self.probability >= 0.1 && step > 0.02 {
            step = 0.02;
        }
        self.probability += step;
        if delay == 0.0 && before == 0.0 {
            self.probability *= 0.98;
        }
        // Waits above 250 ms end soon: Linux has this beside the RFC.
        if delay > 0.25 {
            self.probability += 0.02;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        if self.probability < 1e-12 {
            self.probability = 0.0;
        }
        self.burst_allowance = self.burst_allowance.saturating_sub(self.parameters.update);
        let half = self.parameters.target / 2;
        if self.probability == 0.0 && self.delay < half && self.delay_before < half {
            self.burst_allowance = self.parameters.burst;
        }
        self.delay_before = self.delay;
    }

    /// Whether a packet is dropped early (RFC 8033 sections 4.1 and 4.4).
    fn is_dropped_early(&mut self) -> bool {
        if self.burst_allowance > Duration::ZERO {
            return false;
        }
        let is_short = self.delay_before < self.parameters.target / 2;
        if (is_short && self.probability < 0.2) || self.queue.bytes <= 2 * u64::from(self.mtu) {
            return false;
        }
        unit(&mut self.rng) < self.probability
    }
}

impl Discipline for Pie {
    fn enqueue(&mut self, now: Instant, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        self.catch_up(now);
        if self.is_dropped_early() {
            // Section 5.1: beyond a probability of 0.1 packets are dropped all the same.
            if self.ecn && self.probability < MARK_BELOW {
                self.queue.offer(marked(packet), self.buffer, dropped);
            } else {
                dropped.push(packet);
            }
        } else {
            self.queue.offer(packet, self.buffer, dropped);
        }
    }

    fn dequeue(&mut self, now: Instant, _: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        self.catch_up(now);
        let packet = self.queue.pop();
        self.delay = match packet {
            Some(packet) if self.queue.bytes > 0 => now.saturating_since(packet.queued_at),
            _ => Duration::ZERO,
        };
        packet
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes
    }
}
