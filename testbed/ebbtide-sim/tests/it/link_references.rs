//! Links against straight models of them, packet by packet, with instants and lengths so coarse that packets often
//! come at the nanosecond at which something else happens.

use ebbtide_core::time::{Duration, Instant};
use ebbtide_sim::net::queue::{LinkFacts, QueueModel, QueuedPacket};
use ebbtide_sim::net::{
    Delay, Fate, Link, LinkCounts, Loss, LossModel, ManagedLink, RateStep, Schedule, Serialiser,
    TargetedLoss,
};
use ebbtide_sim::random::{Probability, Streams, exponential, uniform};
use rand_chacha::ChaCha8Rng;
use std::ops::Range;
use std::sync::Arc;

const GIGABIT: u64 = 1_000_000_000;
const DELAY: u64 = 3;

fn stream(path: &str) -> ChaCha8Rng {
    Streams::new(13, 0).stream(path)
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn no_loss() -> Loss<ChaCha8Rng> {
    Loss::new(LossModel::None, stream("loss"), stream("states"))
}

fn pick<T: Copy>(luck: &mut ChaCha8Rng, values: &[T]) -> T {
    values[uniform(luck, 0, values.len() as u64 - 1) as usize]
}

/// A packet that was transmitted.
#[derive(Clone, Copy)]
struct Transmitted {
    client: u32,
    bytes: u32,
    came: u64,
    start: u64,
    left: u64,
}

/// A link of a rate, a buffer, a fixed delay, and losses on purpose.
struct LinkModel {
    rate: u64,
    buffer: Option<u64>,
    target: TargetedLoss,
    outage: Range<u64>,
    transmitted: Vec<Transmitted>,
    fates: Vec<Fate>,
    /// When the busy period began, and its bits so far.
    busy: (u64, u128),
}

impl LinkModel {
    fn free_at(&self) -> u64 {
        self.transmitted.last().map_or(0, |packet| packet.left)
    }

    fn waiting(&self, now: u64) -> u64 {
        let waiting = self.transmitted.iter().filter(|packet| packet.start > now);
        waiting.map(|packet| u64::from(packet.bytes)).sum()
    }

    fn send(&mut self, now: u64, client: u32, bytes: u32) -> Fate {
        let fate = self.decide(now, client, bytes);
        self.fates.push(fate);
        fate
    }

    fn decide(&mut self, now: u64, client: u32, bytes: u32) -> Fate {
        let free_at = self.free_at();
        let full = |buffer: u64| self.waiting(now) + u64::from(bytes) > buffer;
        if free_at > now && self.buffer.is_some_and(full) {
            return Fate::Dropped;
        }
        let start = free_at.max(now);
        if now > free_at {
            self.busy = (now, 0);
        }
        self.busy.1 += u128::from(bytes) * 8;
        let left = self.busy.0 + (self.busy.1 * 1_000_000_000 / u128::from(self.rate)) as u64;
        self.transmitted.push(Transmitted { client, bytes, came: now, start, left });
        let TargetedLoss { count, client: whose, after, skip } = self.target;
        let is_meant = |packet: &&Transmitted| {
            whose.is_none_or(|whose| whose == packet.client) && packet.left >= after.as_nanos()
        };
        let number = self.transmitted.iter().filter(is_meant).count() as u32;
        let is_target = self.transmitted.last().filter(is_meant).is_some()
            && (skip + 1..=skip + count).contains(&number);
        match is_target || self.outage.start <= left && left < self.outage.end {
            true => Fate::Lost { left: at(left) },
            false => Fate::Delivered { at: at(left + DELAY) },
        }
    }

    /// What the link has counted at `now`, all packets having been sent before.
    fn counts_until(&self, now: u64) -> LinkCounts {
        let of = |fate: fn(&Fate) -> bool| self.fates.iter().filter(|it| fate(it)).count() as u64;
        let all = || self.transmitted.iter();
        let lengths = |these: fn(&Fate) -> bool| {
            let fates = self.fates.iter().filter(|fate| **fate != Fate::Dropped);
            let taken = all().zip(fates).filter(|(_, fate)| these(fate));
            taken.map(|(packet, _)| u64::from(packet.bytes)).sum()
        };
        let is_delivered = |fate: &Fate| matches!(fate, Fate::Delivered { .. });
        let waits = all().map(|packet| {
            u128::from(packet.bytes) * u128::from(packet.start.min(now) - packet.came.min(now))
        });
        LinkCounts {
            sent: self.fates.len() as u64,
            delivered: of(is_delivered),
            dropped_queue: of(|fate| *fate == Fate::Dropped),
            lost_link: of(|fate| matches!(fate, Fate::Lost { .. })),
            marked: 0,
            bytes_serialised: lengths(|_| true),
            bytes_delivered: lengths(is_delivered),
            busy_ns: all().map(|packet| packet.left.min(now) - packet.start.min(now)).sum(),
            queue_max: all().map(|packet| self.waited_at(packet.came)).max().unwrap_or(0),
            queue_byte_ns: waits.sum(),
        }
    }

    /// Bytes of the packets that had come at `now` and waited then.
    fn waited_at(&self, now: u64) -> u64 {
        let waited =
            self.transmitted.iter().filter(|packet| packet.came <= now && packet.start > now);
        waited.map(|packet| u64::from(packet.bytes)).sum()
    }
}

#[test]
fn a_link_does_with_each_packet_what_its_model_does() {
    for run in 0..120 {
        let mut luck = stream(&format!("link/{run}"));
        let rate = pick(&mut luck, &[GIGABIT, 2 * GIGABIT, 3 * GIGABIT, 7 * GIGABIT]);
        let from = uniform(&mut luck, 0, 200);
        let mut model = LinkModel {
            rate,
            buffer: pick(&mut luck, &[None, Some(2), Some(6), Some(20)]),
            target: TargetedLoss {
                count: uniform(&mut luck, 0, 3) as u32,
                client: pick(&mut luck, &[None, Some(1)]),
                after: at(uniform(&mut luck, 0, 100)),
                skip: uniform(&mut luck, 0, 3) as u32,
            },
            outage: from..from + uniform(&mut luck, 0, 30),
            transmitted: Vec::new(),
            fates: Vec::new(),
            busy: (0, 0),
        };
        let mut link =
            Link::new(rate, model.buffer, Delay::fixed(DELAY), no_loss(), stream("delay"));
        link.add_losses([model.target]);
        link.add_outages([model.outage.clone()]);
        let mut now = 0;
        for step in 0..100 {
            now += pick(&mut luck, &[0, 1, 2, 3, 8, 8, 16, 30]);
            let (client, bytes) =
                (uniform(&mut luck, 1, 2) as u32, uniform(&mut luck, 1, 3) as u32);
            assert_eq!(link.queued_bytes(at(now)), model.waiting(now), "run {run}, step {step}");
            let fate = link.send_of(Some(client), at(now), bytes);
            assert_eq!(fate, model.send(now, client, bytes), "run {run}, step {step}");
            assert_eq!(link.free_at(), at(model.free_at()));
            for now in [now, now + 5] {
                let (counts, expected) = (link.counts_until(at(now)), model.counts_until(now));
                assert_eq!(counts, expected, "run {run}, step {step}");
            }
        }
        assert_eq!(link.counts(), model.counts_until(u64::MAX));
    }
}

#[test]
fn a_managed_link_with_tail_drop_is_a_link() {
    for run in 0..120 {
        let mut luck = stream(&format!("managed/{run}"));
        let rate = pick(&mut luck, &[GIGABIT, 3 * GIGABIT]);
        let buffer = pick(&mut luck, &[None, Some(4), Some(12)]);
        let facts =
            LinkFacts { buffer, mtu: 3, transmission: Duration::from_nanos(24), ecn: false };
        let queue = QueueModel::TailDrop.build(&facts, stream("queue"));
        let delay = Delay::fixed(DELAY);
        let mut managed = ManagedLink::new(rate, queue, delay, no_loss(), stream("delay"));
        let mut link = Link::new(rate, buffer, delay, no_loss(), stream("delay"));
        let target = TargetedLoss { count: 2, skip: 3, ..TargetedLoss::default() };
        managed.add_losses([target]);
        link.add_losses([target]);
        let outages = [100..120, 400..401];
        managed.add_outages(outages.clone());
        link.add_outages(outages);
        let (mut expected, mut fates) = (Vec::new(), Vec::new());
        let (mut now, mut timeout) = (0, None);
        for id in 0..100 {
            now += pick(&mut luck, &[0, 1, 2, 8, 8, 16, 30]);
            work_until(&mut managed, Some(at(now)), &mut timeout);
            let packet = QueuedPacket {
                id,
                client: 1,
                bytes: uniform(&mut luck, 1, 3) as u32,
                queued_at: at(now),
                is_marked: false,
            };
            expected.push(link.send(at(now), packet.bytes));
            managed.send(at(now), packet);
            assert_eq!(managed.queued_bytes(), link.queued_bytes(at(now)), "run {run}, step {id}");
        }
        work_until(&mut managed, None, &mut timeout);
        fates.extend(std::iter::from_fn(|| managed.poll_fate()));
        fates.sort_by_key(|(packet, _)| packet.id);
        assert_eq!(fates.into_iter().map(|(_, fate)| fate).collect::<Vec<_>>(), expected);
        assert_eq!(managed.counts(), link.counts(), "run {run}");
        assert_eq!(managed.free_at(), link.free_at());
    }
}

/// Calls a link when it asks for it, until an instant or until it asks no more.
fn work_until(
    link: &mut ManagedLink<ChaCha8Rng>,
    end: Option<Instant>,
    timeout: &mut Option<Instant>,
) {
    loop {
        if let Some(due) = link.poll_timeout() {
            assert!(timeout.is_none(), "one at a time");
            assert_eq!(link.poll_timeout(), None, "each instant is given once");
            *timeout = Some(due);
        }
        match *timeout {
            Some(due) if end.is_none_or(|end| due <= end) => link.handle_timeout(due),
            _ => return,
        }
        *timeout = None;
    }
}

/// The rate of a schedule at each nanosecond.
struct ScheduleModel {
    steps: Vec<RateStep>,
    period: Option<u64>,
    free_at: u64,
    /// What the nanosecond before `free_at` could have carried beyond, in bits a second.
    surplus: u64,
}

impl ScheduleModel {
    fn rate(&self, now: u64) -> u64 {
        let phase = self.period.map_or(now, |period| now % period);
        self.steps.iter().rfind(|step| step.from <= phase).unwrap().bits_per_second
    }

    fn accept(&mut self, now: u64, bytes: u32) -> (Instant, Instant) {
        if now > self.free_at {
            (self.free_at, self.surplus) = (now, 0);
        }
        let mut now = self.free_at;
        while self.rate(now) == 0 {
            now += 1;
        }
        let start = now;
        let mut need = u64::from(bytes) * 8 * GIGABIT - self.surplus;
        self.surplus = 0;
        while need > 0 {
            let rate = self.rate(now);
            self.surplus = rate.saturating_sub(need);
            need = need.saturating_sub(rate);
            now += 1;
        }
        self.free_at = now;
        (at(start), at(now))
    }
}

#[test]
fn a_scheduled_link_carries_what_the_rate_of_each_nanosecond_allows() {
    for run in 0..300 {
        let mut luck = stream(&format!("schedule/{run}"));
        let (mut steps, mut from) = (Vec::new(), 0);
        for _ in 0..uniform(&mut luck, 1, 4) {
            // At most a byte in a nanosecond.
            let rate = pick(&mut luck, &[0, 1, 2, 3, 4, 8]) * GIGABIT;
            steps.push(RateStep { from, bits_per_second: rate, delay: Delay::fixed(0) });
            from += uniform(&mut luck, 1, 12);
        }
        let period = pick(&mut luck, &[None, Some(from)]);
        let Ok(schedule) = Schedule::new(steps.clone(), period) else { continue };
        let mut link = Serialiser::scheduled(Arc::new(schedule));
        let mut model = ScheduleModel { steps, period, free_at: 0, surplus: 0 };
        let mut now = 0;
        for step in 0..40 {
            now += pick(&mut luck, &[0, 0, 1, 2, 4, 8, 20]);
            let bytes = uniform(&mut luck, 1, 3) as u32;
            let expected = model.accept(now, bytes);
            assert_eq!(link.accept(at(now), bytes), expected, "run {run}, step {step}");
        }
    }
}

#[test]
fn the_time_driven_chain_changes_its_state_at_the_instants_that_were_drawn() {
    let [mean_good_ns, mean_bad_ns] = [3, 2];
    let (good, bad) = (Probability::new(0.0), Probability::new(1.0));
    for run in 0..100 {
        let bad_share = Probability::new(0.4);
        let states = || stream(&format!("chain/{run}"));
        let model = LossModel::TimeDriven { good, bad, mean_good_ns, mean_bad_ns, bad_share };
        let mut loss = Loss::new(model, stream("packets"), states());
        let mut draws = states();
        let mut is_bad = bad_share.draw(&mut draws);
        let mut until = 0;
        for now in 0..100 {
            if now == 0 {
                until =
                    exponential(&mut draws, if is_bad { mean_bad_ns } else { mean_good_ns }).max(1);
            }
            while until <= now {
                is_bad = !is_bad;
                until +=
                    exponential(&mut draws, if is_bad { mean_bad_ns } else { mean_good_ns }).max(1);
            }
            assert_eq!(loss.loses(at(now)), is_bad, "run {run}, {now} ns");
        }
    }
}
