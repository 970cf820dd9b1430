//! Queue disciplines against straight transcriptions of their documents, step by step. Times and lengths are so coarse
//! that the two sides of most comparisons are equal now and then.

use ebbtide_core::time::{Duration, Instant};
use ebbtide_sim::net::queue::{
    CoDelParameters, Discipline, FqCoDelParameters, LinkFacts, PieParameters, QueueModel,
    QueuedPacket, RedParameters,
};
use ebbtide_sim::random::{Streams, uniform, unit};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};

const STEPS: u32 = 3000;
/// Steps after which packets come more often, or less.
const PHASE: u32 = 48;
const CLIENTS: u64 = 3;

fn stream(path: &str) -> ChaCha8Rng {
    Streams::new(11, 0).stream(path)
}

/// Packets that come, and calls for the next one, at these distances in nanoseconds.
fn compare(model: QueueModel, facts: &LinkFacts, reference: &mut dyn Discipline, gaps: &[u64]) {
    let mut tested = model.build(facts, stream("queue"));
    let mut luck = stream(&format!("{model:?} {facts:?}"));
    let (mut now, mut arrivals) = (Instant::ZERO, 0);
    let mut dropped_or_marked = 0;
    for id in 0..STEPS {
        if id % PHASE == 0 {
            arrivals = uniform(&mut luck, 1, 9);
        }
        now =
            now + Duration::from_nanos(gaps[uniform(&mut luck, 0, gaps.len() as u64 - 1) as usize]);
        let (mut dropped, mut expected) = (Vec::new(), Vec::new());
        if uniform(&mut luck, 0, 9) < arrivals {
            let client = uniform(&mut luck, 1, CLIENTS) as u32;
            let bytes = uniform(&mut luck, 1, 3) as u32;
            let packet = QueuedPacket { id, client, bytes, queued_at: now, is_marked: false };
            reference.enqueue(now, packet, &mut expected);
            tested.enqueue(now, packet, &mut dropped);
        } else {
            let packet = reference.dequeue(now, &mut expected);
            assert_eq!(tested.dequeue(now, &mut dropped), packet, "{model:?} {facts:?}: step {id}");
            dropped_or_marked += usize::from(packet.is_some_and(|packet| packet.is_marked));
        }
        dropped_or_marked += dropped.len();
        assert_eq!(dropped, expected, "{model:?} {facts:?}: step {id}");
        assert_eq!(tested.bytes(), reference.bytes(), "{model:?} {facts:?}: step {id}");
    }
    assert!(dropped_or_marked > 10, "{model:?} {facts:?}: {dropped_or_marked}");
}

/// A link for packets of at most two bytes, with and without a bound, with and without ECN.
fn links() -> impl Iterator<Item = LinkFacts> {
    let one =
        |buffer, ecn| LinkFacts { buffer, mtu: 2, transmission: Duration::from_nanos(2), ecn };
    [None, Some(20)].into_iter().flat_map(move |buffer| [one(buffer, false), one(buffer, true)])
}

#[derive(Debug)]
struct Buffer {
    packets: VecDeque<QueuedPacket>,
    facts: LinkFacts,
}

impl Buffer {
    fn new(facts: &LinkFacts) -> Self {
        Self { packets: VecDeque::new(), facts: facts.clone() }
    }

    fn bytes(&self) -> u64 {
        self.packets.iter().map(|packet| u64::from(packet.bytes)).sum()
    }

    fn offer(&mut self, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        match self.facts.buffer {
            Some(buffer) if self.bytes() + u64::from(packet.bytes) > buffer => dropped.push(packet),
            _ => self.packets.push_back(packet),
        }
    }

    /// What an early drop does: with ECN the packet is marked while `may_mark` holds.
    fn drop_early(
        &mut self,
        packet: QueuedPacket,
        may_mark: bool,
        dropped: &mut Vec<QueuedPacket>,
    ) {
        match self.facts.ecn && may_mark {
            true => self.offer(QueuedPacket { is_marked: true, ..packet }, dropped),
            false => dropped.push(packet),
        }
    }
}

/// RFC 8289 section 5, with the marks of Linux.
#[derive(Debug)]
struct CoDelReference {
    buffer: Buffer,
    target: i64,
    interval: i64,
    /// 0: not above.
    first_above_time: i64,
    drop_next: i64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl CoDelReference {
    fn new(parameters: CoDelParameters, facts: &LinkFacts) -> Self {
        let nanos = |span: Duration| span.as_nanos() as i64;
        Self {
            buffer: Buffer::new(facts),
            target: nanos(parameters.target),
            interval: nanos(parameters.interval),
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    fn control_law(&self, at: i64) -> i64 {
        at + (self.interval as f64 / f64::from(self.count).sqrt()) as i64
    }

    fn dodeque(&mut self, now: i64) -> (Option<QueuedPacket>, bool) {
        let Some(packet) = self.buffer.packets.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let sojourn_time = now - packet.queued_at.as_nanos() as i64;
        if sojourn_time < self.target || self.buffer.bytes() <= u64::from(self.buffer.facts.mtu) {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            return (Some(packet), true);
        }
        (Some(packet), false)
    }
}

impl Discipline for CoDelReference {
    fn enqueue(&mut self, _: Instant, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        self.buffer.offer(packet, dropped);
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        let now = now.as_nanos() as i64;
        let ecn = self.buffer.facts.ecn;
        let mark = |packet: QueuedPacket| QueuedPacket { is_marked: true, ..packet };
        let (mut packet, mut ok_to_drop) = self.dodeque(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                if ecn {
                    self.drop_next = self.control_law(self.drop_next);
                    return packet.map(mark);
                }
                dropped.extend(packet);
                (packet, ok_to_drop) = self.dodeque(now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if ecn {
                packet = packet.map(mark);
            } else {
                dropped.extend(packet);
                (packet, _) = self.dodeque(now);
            }
            self.dropping = true;
            let delta = self.count - self.last_count;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16 * self.interval {
                self.count = delta;
            }
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        packet
    }

    fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }
}

const CODEL: CoDelParameters =
    CoDelParameters { target: Duration::from_nanos(4), interval: Duration::from_nanos(20) };
/// Sixteen intervals less what the control law adds are among them.
const CODEL_GAPS: [u64; 12] = [0, 1, 1, 2, 2, 4, 5, 10, 20, 150, 300, 320];

#[test]
fn codel_does_what_its_pseudocode_does() {
    for facts in links() {
        for gaps in [&CODEL_GAPS[..9], &CODEL_GAPS] {
            let mut reference = CoDelReference::new(CODEL, &facts);
            compare(QueueModel::CoDel(CODEL), &facts, &mut reference, gaps);
        }
    }
}

/// RFC 8290 section 4, with a queue for each client.
#[derive(Debug)]
struct FqCoDelReference {
    quantum: i64,
    facts: LinkFacts,
    queues: BTreeMap<u32, (CoDelReference, i64)>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

impl FqCoDelReference {
    fn new(quantum: i64, facts: &LinkFacts) -> Self {
        let unbounded = LinkFacts { buffer: None, ..facts.clone() };
        let queue = |client| (client, (CoDelReference::new(CODEL, &unbounded), 0));
        Self {
            quantum,
            facts: facts.clone(),
            queues: (1..=CLIENTS as u32).map(queue).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }
}

impl Discipline for FqCoDelReference {
    fn enqueue(&mut self, _: Instant, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        let client = packet.client;
        let (queue, credits) = self.queues.get_mut(&client).unwrap();
        queue.buffer.packets.push_back(packet);
        if !self.new.contains(&client) && !self.old.contains(&client) {
            *credits = self.quantum;
            self.new.push_back(client);
        }
        while self.facts.buffer.is_some_and(|buffer| self.bytes() > buffer) {
            // Of queues that are equally long the place of their hash decides: the test has its order of clients.
            let longest = self.queues.iter_mut().max_by_key(|(client, (queue, _))| {
                let place = HASH_ORDER.iter().position(|other| other == *client);
                (queue.bytes(), place)
            });
            let (_, (queue, _)) = longest.unwrap();
            dropped.extend(queue.buffer.packets.pop_front());
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let client = *list.front()?;
            let (queue, credits) = self.queues.get_mut(&client).unwrap();
            // A quantum has left already, or more.
            if *credits <= 0 {
                *credits += self.quantum;
                list.pop_front();
                self.old.push_back(client);
                continue;
            }
            if let Some(packet) = queue.dequeue(now, dropped) {
                *credits -= i64::from(packet.bytes);
                return Some(packet);
            }
            list.pop_front();
            if is_new && !self.old.is_empty() {
                self.old.push_back(client);
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.queues.values().map(|(queue, _)| queue.bytes()).sum()
    }
}

/// The clients in the order of their queues, from the test's seed.
const HASH_ORDER: [u32; 3] = [1, 2, 3];

#[test]
fn fq_codel_does_what_its_document_says() {
    for facts in links() {
        for quantum in [None, Some(1), Some(3)] {
            let parameters = FqCoDelParameters { codel: CODEL, quantum, ..Default::default() };
            let mut reference = FqCoDelReference::new(quantum.unwrap_or(2).into(), &facts);
            compare(QueueModel::FqCoDel(parameters), &facts, &mut reference, &CODEL_GAPS);
        }
    }
}

/// RFC 8033 sections 4 and 5, with the rule of Linux for long waits.
#[derive(Debug)]
struct PieReference {
    buffer: Buffer,
    parameters: PieParameters,
    drop_prob: f64,
    qdelay: Duration,
    qdelay_old: Duration,
    burst_allowance: Duration,
    last_update: Instant,
    rng: ChaCha8Rng,
}

impl PieReference {
    fn new(parameters: PieParameters, facts: &LinkFacts) -> Self {
        Self {
            buffer: Buffer::new(facts),
            parameters,
            drop_prob: 0.0,
            qdelay: Duration::ZERO,
            qdelay_old: Duration::ZERO,
            burst_allowance: parameters.burst,
            last_update: Instant::ZERO,
            rng: stream("queue"),
        }
    }

    fn calculate_until(&mut self, now: Instant) {
        while now.saturating_since(self.last_update) >= self.parameters.update {
            self.last_update = self.last_update + self.parameters.update;
            self.calculate_drop_prob();
        }
    }

    fn calculate_drop_prob(&mut self) {
        let seconds = |span: Duration| span.as_nanos() as f64 / 1e9;
        let (now, old) = (seconds(self.qdelay), seconds(self.qdelay_old));
        let mut p = 0.125 * (now - seconds(self.parameters.target)) + 1.25 * (now - old);
        if self.drop_prob < 0.000_001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.000_01 {
            p /= 512.0;
        } else if self.drop_prob < 0.000_1 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if now == 0.0 && old == 0.0 {
            self.drop_prob *= 0.98;
        }
        if now > 0.25 {
            self.drop_prob += 0.02;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        // Nothing as small as this is ever drawn.
        if self.drop_prob < 1e-12 {
            self.drop_prob = 0.0;
        }
        self.burst_allowance = self.burst_allowance.saturating_sub(self.parameters.update);
        let half = self.parameters.target / 2;
        if self.drop_prob == 0.0 && self.qdelay < half && self.qdelay_old < half {
            self.burst_allowance = self.parameters.burst;
        }
        self.qdelay_old = self.qdelay;
    }

    fn drop_early(&mut self) -> bool {
        let is_light = self.qdelay_old < self.parameters.target / 2 && self.drop_prob < 0.2;
        let few = self.buffer.bytes() <= 2 * u64::from(self.buffer.facts.mtu);
        !is_light && !few && unit(&mut self.rng) < self.drop_prob
    }
}

impl Discipline for PieReference {
    fn enqueue(&mut self, now: Instant, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        self.calculate_until(now);
        if self.burst_allowance == Duration::ZERO && self.drop_early() {
            let may_mark = self.drop_prob < 0.1;
            self.buffer.drop_early(packet, may_mark, dropped);
        } else {
            self.buffer.offer(packet, dropped);
        }
    }

    fn dequeue(&mut self, now: Instant, _: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        self.calculate_until(now);
        let packet = self.buffer.packets.pop_front();
        let waits = packet.filter(|_| !self.buffer.packets.is_empty());
        self.qdelay = waits.map_or(Duration::ZERO, |packet| now.saturating_since(packet.queued_at));
        packet
    }

    fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }
}

#[test]
fn pie_does_what_its_pseudocode_does() {
    let millis = Duration::from_millis;
    let parameters = PieParameters { target: millis(10), update: millis(15), burst: millis(30) };
    // Multiples of half the target, of the time between updates, and of what Linux calls long.
    let gaps = [0, 0, 1, 2, 5, 5, 10, 15, 30, 125, 250].map(|gap| gap * 1_000_000);
    for facts in links() {
        for gaps in [&gaps[..8], &gaps] {
            let mut reference = PieReference::new(parameters, &facts);
            compare(QueueModel::Pie(parameters), &facts, &mut reference, gaps);
        }
    }
}

/// Floyd and Jacobson 1993, sections 4 and 7, with the second method of the latter.
#[derive(Debug)]
struct RedReference {
    buffer: Buffer,
    parameters: RedParameters,
    average: f64,
    count: u32,
    /// Since when the queue is empty.
    q_time: Option<Instant>,
    rng: ChaCha8Rng,
}

impl RedReference {
    fn new(parameters: RedParameters, facts: &LinkFacts) -> Self {
        let (buffer, rng) = (Buffer::new(facts), stream("queue"));
        Self { buffer, parameters, average: 0.0, count: 0, q_time: Some(Instant::ZERO), rng }
    }

    fn marks(&mut self) -> bool {
        let (min, max) = (self.parameters.min as f64, self.parameters.max as f64);
        let marks = if self.average < min {
            self.count = 0;
            return false;
        } else if self.average < max {
            let p_b = self.parameters.max_probability * (self.average - min) / (max - min);
            let rest = 1.0 - f64::from(self.count) * p_b;
            rest <= 0.0 || unit(&mut self.rng) * rest < p_b
        } else {
            true
        };
        self.count = if marks { 0 } else { self.count + 1 };
        marks
    }
}

impl Discipline for RedReference {
    fn enqueue(&mut self, now: Instant, packet: QueuedPacket, dropped: &mut Vec<QueuedPacket>) {
        let weight = self.parameters.weight;
        if let Some(q_time) = self.q_time.take() {
            let m =
                now.saturating_since(q_time).as_nanos() / self.buffer.facts.transmission.as_nanos();
            self.average *= (0..m).map(|_| 1.0 - weight).product::<f64>();
        } else {
            self.average += weight * (self.buffer.bytes() as f64 - self.average);
        }
        if self.marks() {
            let may_mark = self.average < self.parameters.max as f64;
            self.buffer.drop_early(packet, may_mark, dropped);
        } else {
            self.buffer.offer(packet, dropped);
        }
        if self.buffer.packets.is_empty() {
            self.q_time = Some(now);
        }
    }

    fn dequeue(&mut self, now: Instant, _: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        let packet = self.buffer.packets.pop_front();
        if packet.is_some() && self.buffer.packets.is_empty() {
            self.q_time = Some(now);
        }
        packet
    }

    fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }
}

#[test]
fn red_does_what_its_paper_says() {
    // Powers of these weights are exact, in whatever order they are multiplied.
    for (weight, max_probability) in [(1.0, 0.5), (0.5, 0.5), (0.5, 1.0), (0.25, 0.25)] {
        for facts in links() {
            let parameters = RedParameters { min: 4, max: 12, max_probability, weight };
            let mut reference = RedReference::new(parameters, &facts);
            compare(QueueModel::Red(parameters), &facts, &mut reference, &[0, 1, 2, 2, 4, 5, 20]);
        }
    }
}
