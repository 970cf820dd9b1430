//! A replication on a regular grid of times, for `run --series`.

use crate::record::{ExchangeRecord, OverTime, Recorder, Tagged, TimeGrid, TimeStep};
use ebbtide_core::time::{Instant, Micros};

/// The most steps of one replication. Beyond it steps become twice as long.
const MOST_STEPS: usize = 1 << 17;

/// Keeps a replication over time.
#[derive(Debug)]
pub(super) struct TimeRecorder {
    step_ns: u64,
    /// The step of the latest event, and when it begins: most events are in the same one.
    latest: usize,
    latest_ns: u64,
    all: Vec<Changes>,
    /// In the order of their numbers.
    clients: Vec<(u32, Vec<Changes>)>,
    queues: Vec<(u64, u64)>,
    /// The end of the step whose queues are to be sampled next.
    next_sample: Instant,
}

/// A step before the exchanges in flight are summed up.
#[derive(Copy, Clone, Debug, Default)]
struct Changes {
    step: TimeStep,
    began: u32,
    ended: u32,
}

impl Changes {
    fn add(&mut self, other: &Self) {
        let (own, more) = (&mut self.step, &other.step);
        own.sent += more.sent;
        own.timeouts += more.timeouts;
        own.delivered += more.delivered;
        own.failed += more.failed;
        own.unnecessary += more.unnecessary;
        self.began += other.began;
        self.ended += other.ended;
    }
}

impl TimeRecorder {
    /// A recorder that has seen nothing.
    pub(super) fn new(grid: &TimeGrid) -> Self {
        let mut clients = grid.clients.clone();
        clients.sort_unstable();
        clients.dedup();
        let step_ns = grid.step_ns.max(1);
        Self {
            step_ns,
            latest: 0,
            latest_ns: 0,
            all: Vec::new(),
            clients: clients.into_iter().map(|client| (client, Vec::new())).collect(),
            queues: Vec::new(),
            next_sample: Instant::from_nanos(step_ns),
        }
    }

    /// Where an instant belongs. Steps become longer if there would be too many.
    #[inline]
    fn place(&mut self, at: Instant) -> usize {
        // An instant before that step wraps to far behind it.
        if at.as_nanos().wrapping_sub(self.latest_ns) < self.step_ns {
            return self.latest;
        }
        self.find(at)
    }

    /// The place of an instant that is not in the latest step, which it becomes if it is later.
    #[inline(never)]
    fn find(&mut self, at: Instant) -> usize {
        let place = self.room_for(at);
        if place > self.latest {
            (self.latest, self.latest_ns) = (place, place as u64 * self.step_ns);
        }
        place
    }

    /// The place of an instant, after steps have become as long as it takes.
    fn room_for(&mut self, at: Instant) -> usize {
        loop {
            let place = usize::try_from(at.as_nanos() / self.step_ns).unwrap_or(usize::MAX);
            if place < MOST_STEPS {
                return place;
            }
            self.step_ns = self.step_ns.saturating_mul(2);
            (self.latest, self.latest_ns) = (0, 0);
            let own = self.clients.iter_mut().map(|(_, steps)| steps);
            for steps in own.chain([&mut self.all]) {
                let sum = |pair: &[Changes]| {
                    let mut sum = Changes::default();
                    pair.iter().for_each(|one| sum.add(one));
                    sum
                };
                *steps = steps.chunks(2).map(sum).collect();
            }
            // The state at the end of a step is that of its second half. A step that has only begun is taken again.
            self.queues = self.queues.chunks_exact(2).map(|pair| pair[1]).collect();
            self.sample_next();
        }
    }

    fn sample_next(&mut self) {
        let steps = self.queues.len() as u64 + 1;
        self.next_sample = Instant::from_nanos(steps.saturating_mul(self.step_ns));
    }

    #[inline]
    fn at(&mut self, at: Instant, client: u32, change: impl Fn(&mut Changes)) {
        let place = self.place(at);
        let apply = |steps: &mut Vec<Changes>| {
            if place >= steps.len() {
                steps.resize(place + 1, Changes::default());
            }
            change(&mut steps[place]);
        };
        apply(&mut self.all);
        if let Ok(own) = self.clients.binary_search_by_key(&client, |(number, _)| *number) {
            apply(&mut self.clients[own].1);
        }
    }

    /// The steps.
    pub(super) fn finish(mut self) -> OverTime {
        let own = self.clients.iter().map(|(_, steps)| steps.len()).max().unwrap_or(0);
        // Timers that nothing needs any more may be due long after the last packet.
        let waiting =
            self.queues.iter().rposition(|queues| *queues != (0, 0)).map_or(0, |last| last + 1);
        let length = self.all.len().max(own).max(waiting);
        let summed = |mut steps: Vec<Changes>| {
            steps.resize(length, Changes::default());
            let mut in_flight = 0u32;
            let sum = steps.into_iter().map(|one| {
                in_flight = (in_flight + one.began).saturating_sub(one.ended);
                TimeStep { in_flight, ..one.step }
            });
            sum.collect()
        };
        self.queues.resize(length, (0, 0));
        let clients = self.clients.into_iter().map(|(client, steps)| (client, summed(steps)));
        OverTime {
            step_ns: self.step_ns,
            clients: clients.collect(),
            all: summed(self.all),
            queues: self.queues,
        }
    }
}

impl Recorder for TimeRecorder {
    fn next_sample(&self) -> Instant {
        self.next_sample
    }

    fn sample_queues(&mut self, at: Instant, up: u64, down: u64) {
        // The end of a step is the beginning of the next one, for which there must be room.
        self.room_for(at);
        if self.next_sample == at {
            self.queues.push((up, down));
            self.sample_next();
        }
    }

    fn armed(&mut self, now: Instant, tagged: Tagged, _timeout: Micros) {
        self.at(now, tagged.client, |one| {
            one.step.sent += 1;
            one.step.timeouts += u32::from(tagged.ordinal > 0 && !tagged.probe);
        });
    }

    fn ended(&mut self, exchange: &ExchangeRecord) {
        let client = exchange.client;
        if let Some(first) = exchange.first_sent {
            self.at(first, client, |one| one.began += 1);
        }
        self.at(exchange.ended, client, |one| {
            one.ended += u32::from(exchange.first_sent.is_some());
            match exchange.answered {
                None => one.step.failed += 1,
                Some(ordinal) => {
                    one.step.delivered += 1;
                    let later = exchange.transmissions.saturating_sub(1 + u32::from(ordinal));
                    one.step.unnecessary += later;
                }
            }
        });
    }
}
