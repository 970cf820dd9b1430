//! How many requests a cell may have in flight: a number that follows the round trips.

use std::time::Duration;
use tokio::time::Instant;

/// The first number of requests in flight, before anything is known.
const FIRST: u32 = 4;
/// The least, after any losses: of two clients, neither waits for what the other's devices do not answer.
const LEAST: u32 = 2;
/// Requests that may wait in the cell's own queues, so that its links are never idle, and beyond which there are too
/// many (the thresholds alpha and beta of TCP Vegas: Brakmo and Peterson, 1995).
const ENOUGH: u32 = 2;
const TOO_MANY: u32 = 4;
/// A delay that does not count as a queue, since the hosts' scheduling causes it too (the target of
/// CoDel, RFC 8289 section 4.4).
const TOLERATED: Duration = Duration::from_millis(5);
/// The age at which the shortest round trip is measured anew, since the path may have changed.
const BASE_AGE: Duration = Duration::from_secs(300);

/// See the [module](self). A round is as many answers as there are places. In each round the shortest round trip,
/// compared with the shortest ever, tells how many requests wait in the cell. A slow device does not matter
/// to it, since the fastest answer counts.
#[derive(Debug)]
pub(super) struct Budget {
    size: u32,
    max: u32,
    /// Until the first sign of a queue, the number doubles with each round.
    starting: bool,
    base: Option<Duration>,
    base_since: Option<Instant>,
    /// The number to return to after the round in which the base is measured anew.
    measuring: Option<u32>,
    mean: Option<Duration>,
    round: Round,
}

/// Answers to requests that were sent before the round began say how long the queue was then, and do not count.
#[derive(Debug, Default)]
struct Round {
    since: Option<Instant>,
    ends: u32,
    repeated: u32,
    fastest: Option<Duration>,
    /// Whether a request had to wait: otherwise a larger number would mean nothing.
    was_full: bool,
}

/// How an exchange ended.
#[derive(Copy, Clone, Debug)]
pub(crate) enum ExchangeEnd {
    /// The answer to the only transmission, after a round trip.
    Answered(Duration),
    /// The answer came, and the request may have been sent more than once.
    Repeated,
    /// No answer came.
    Lost,
    /// The time that it took says nothing about the path.
    Unmeasured,
}

/// Whether requests wait for the budget.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    Waiting,
    Satisfied,
}

impl Budget {
    pub(super) fn new(max: u32) -> Self {
        Self {
            size: FIRST.min(max.max(1)),
            max: max.max(1),
            starting: true,
            base: None,
            base_since: None,
            measuring: None,
            mean: None,
            round: Round::default(),
        }
    }

    /// The number of requests that may be in flight; at least one.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Whether it could be larger.
    pub(super) fn is_below_maximum(&self) -> bool {
        self.size < self.max
    }

    /// The mean round trip; `None` before the first answer.
    pub(super) fn mean(&self) -> Option<Duration> {
        self.mean
    }

    /// How long it takes until `ahead` requests have left the queue; `None` while the number still doubles.
    pub(super) fn wait(&self, ahead: usize) -> Option<Duration> {
        let mean = self.mean.filter(|_| !self.starting || self.size == self.max)?;
        let rounds = u32::try_from(ahead).unwrap_or(u32::MAX) / self.size;
        Some(mean.saturating_mul(rounds.saturating_add(1)))
    }

    /// An exchange has ended.
    pub(super) fn on_end(&mut self, now: Instant, end: ExchangeEnd, demand: Demand) {
        self.round.was_full |= demand == Demand::Waiting;
        match end {
            ExchangeEnd::Unmeasured => return,
            ExchangeEnd::Repeated | ExchangeEnd::Lost => self.round.repeated += 1,
            ExchangeEnd::Answered(span) => {
                let sent = now.checked_sub(span);
                self.mean = Some(self.mean.map_or(span, |mean| (mean * 7 + span) / 8));
                if self.base.is_none_or(|base| span < base) {
                    (self.base, self.base_since) = (Some(span), Some(now));
                }
                if sent < self.round.since {
                    return;
                }
                self.round.fastest = Some(self.round.fastest.map_or(span, |known| known.min(span)));
            }
        }
        self.round.ends += 1;
        if self.round.ends >= self.size {
            let next = Round { since: Some(now), ..Round::default() };
            let round = core::mem::replace(&mut self.round, next);
            self.on_round(now, &round);
        }
    }

    fn least(&self) -> u32 {
        LEAST.min(self.max)
    }

    fn on_round(&mut self, now: Instant, round: &Round) {
        if let Some(size) = self.measuring.take() {
            self.size = size;
            if let Some(fastest) = round.fastest {
                (self.base, self.base_since) = (Some(fastest), Some(now));
            }
            return;
        }
        // Some loss is the radio's and no sign of a full queue.
        if round.repeated * 4 > round.ends {
            self.starting = false;
            self.size = (self.size / 2).max(self.least());
            return;
        }
        let (Some(base), Some(fastest)) = (self.base, round.fastest) else { return };
        let delay = fastest.saturating_sub(base + TOLERATED);
        let waiting = f64::from(self.size) * delay.as_secs_f64() / fastest.as_secs_f64().max(1e-9);
        if waiting > f64::from(TOO_MANY) || self.starting && waiting > f64::from(ENOUGH) {
            let fewer = if self.starting { self.size * 3 / 4 } else { self.size - 1 };
            self.size = fewer.max(self.least());
            self.starting = false;
        } else if waiting < f64::from(ENOUGH) && round.was_full {
            self.size = if self.starting { self.size * 2 } else { self.size + 1 }.min(self.max);
        }
        let is_old = self.base_since.is_some_and(|since| now.duration_since(since) > BASE_AGE);
        if is_old && self.size > self.least() {
            // Half as many leave no queue, so the fastest of them shows the path alone.
            self.measuring = Some(self.size);
            self.size /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that takes this long for a request on its way, and serves so many a second.
    fn after_rounds(rounds: u32, delay: Duration, per_second: u32, max: u32) -> Budget {
        let (mut budget, mut now) = (Budget::new(max), crate::system::now());
        for _ in 0..rounds {
            let served = Duration::from_secs(1) * budget.size() / per_second;
            let span = delay.max(served);
            now += span;
            for _ in 0..budget.size() {
                budget.on_end(now, ExchangeEnd::Answered(span), Demand::Waiting);
            }
        }
        budget
    }

    #[test]
    fn it_fills_the_path_and_leaves_a_short_queue() {
        // 40 a second times 0.66 s are 26.4 requests on the way.
        let budget = after_rounds(100, Duration::from_millis(660), 40, 256);
        assert!((27..=32).contains(&budget.size()), "{budget:?}");
        let budget = after_rounds(100, Duration::from_millis(660), 1, 256);
        assert!(budget.size() <= 3 + TOO_MANY, "{budget:?}");
    }

    #[test]
    fn a_delay_that_hosts_cause_does_not_count_as_a_queue() {
        let budget = after_rounds(100, Duration::from_micros(30), 100_000, 256);
        assert_eq!(budget.size(), 256);
        let budget = after_rounds(100, Duration::from_micros(30), 1000, 256);
        assert!(budget.size() < 16, "{budget:?}");
    }

    #[test]
    fn it_does_not_exceed_its_maximum_nor_grow_without_demand() {
        assert_eq!(after_rounds(100, Duration::from_secs(1), 1_000_000, 10).size(), 10);
        let (mut budget, now) = (Budget::new(100), crate::system::now());
        for _ in 0..1000 {
            budget.on_end(now, ExchangeEnd::Answered(Duration::from_secs(1)), Demand::Satisfied);
        }
        assert_eq!(budget.size(), FIRST);
    }

    #[test]
    fn it_halves_when_many_are_repeated_and_not_for_a_few() {
        let mut budget = after_rounds(20, Duration::from_millis(660), 40, 256);
        let (before, now) = (budget.size(), crate::system::now());
        for n in 0..before {
            let end = if n % 5 == 0 {
                ExchangeEnd::Repeated
            } else {
                ExchangeEnd::Answered(Duration::from_millis(660))
            };
            budget.on_end(now, end, Demand::Satisfied);
        }
        assert_eq!(budget.size(), before, "a fifth is the radio's loss");
        for _ in 0..before {
            budget.on_end(now, ExchangeEnd::Lost, Demand::Waiting);
        }
        assert_eq!(budget.size(), before / 2);
        for _ in 0..before {
            budget.on_end(now, ExchangeEnd::Lost, Demand::Waiting);
        }
        assert!(budget.size() >= 1);
    }

    #[test]
    fn answers_to_earlier_requests_do_not_hide_the_queue_of_later_ones() {
        let (mut budget, start) = (Budget::new(256), crate::system::now());
        let (fast, slow) = (Duration::from_millis(600), Duration::from_secs(2));
        for _ in 0..FIRST {
            budget.on_end(start + fast, ExchangeEnd::Answered(fast), Demand::Waiting);
        }
        assert_eq!(budget.size(), 2 * FIRST);
        // They were sent with the first ones, and the path was empty.
        for _ in 0..2 * FIRST {
            budget.on_end(
                start + fast + Duration::from_millis(9),
                ExchangeEnd::Answered(fast),
                Demand::Waiting,
            );
        }
        assert_eq!(budget.size(), 2 * FIRST);
        for _ in 0..2 * FIRST {
            budget.on_end(start + fast + slow, ExchangeEnd::Answered(slow), Demand::Waiting);
        }
        assert!(budget.size() < 2 * FIRST && !budget.starting, "{budget:?}");
    }

    #[test]
    fn the_shortest_round_trip_is_measured_anew_with_half_as_many_requests() {
        let mut budget = after_rounds(20, Duration::from_millis(660), 40, 256);
        let (before, later) = (budget.size(), crate::system::now() + 3 * BASE_AGE);
        let slower = Duration::from_millis(700);
        for _ in 0..before {
            budget.on_end(later, ExchangeEnd::Answered(slower), Demand::Satisfied);
        }
        let during = budget.size();
        assert!(during <= before / 2 + 1 && budget.measuring.is_some(), "{budget:?}");
        for _ in 0..during {
            budget.on_end(later + slower, ExchangeEnd::Answered(slower), Demand::Satisfied);
        }
        assert!(budget.base == Some(slower) && budget.size() > during, "{budget:?}");
    }
}
