//! Punctual wake-ups on a machine that wakes late.
//!
//! A thread that sleeps until a packet is due is late by the time that its processor takes to
//! wake: some tens of microseconds, and occasionally milliseconds if the machine is a virtual one
//! whose idle processors are given to others. The thread therefore wakes early by a margin, and
//! polls the clock for the rest. The margin follows the wake-ups measured so far, so a machine
//! that wakes fast pays little for it, and nothing is paid while no packet is under way.

use ebbtide_core::time::{Duration, Instant};

/// The limits of the margin. Wake-ups that take longer than the largest margin make packets late,
/// which is measured.
const MIN_MARGIN: Duration = Duration::from_micros(20);
const MAX_MARGIN: Duration = Duration::from_millis(4);
/// The initial margin, chosen so that the first packets of a short run are on time.
const INITIAL_MARGIN: Duration = Duration::from_millis(2);
/// A wake-up beyond the margin raises it by half, and any other one lowers it by a 500th. Both
/// balance if one of 200 is beyond it: ln(3/2) = 0.4 against 200/500.
const LOWER_BY: u32 = 500;

/// The duration of a nap.
pub(super) const NAP: Duration = Duration::from_micros(60);
/// The thread may be awake for this many times as long as it has slept, but no longer than `AWAKE`
/// without a nap. The kernel stops a thread of real-time priority that hardly sleeps for 50 ms in
/// every second.
const AWAKE_PER_SLEPT: u32 = 8;
const AWAKE: Duration = Duration::from_millis(20);

/// Statistics of this machine's wake-ups, and how long the thread may continue without a nap.
#[derive(Debug)]
pub(super) struct WakeUps {
    margin: Duration,
    nap_at: Instant,
}

impl WakeUps {
    /// Without any measurements.
    pub(super) fn new(now: Instant) -> Self {
        Self { margin: INITIAL_MARGIN, nap_at: now + AWAKE }
    }

    /// How long before a packet is due the thread must wake.
    pub(super) const fn margin(&self) -> Duration {
        self.margin
    }

    /// Records a sleep that ended this long after it should have.
    pub(super) fn woke(&mut self, late: Duration) {
        let next = if late > self.margin {
            self.margin + self.margin / 2
        } else {
            self.margin - self.margin / LOWER_BY
        };
        self.margin = next.clamp(MIN_MARGIN, MAX_MARGIN);
    }

    /// Records that the thread has slept this long until now, or has only polled for work.
    pub(super) fn slept(&mut self, now: Instant, span: Duration) {
        if span >= NAP {
            let earned = self.nap_at.max(now) + span * AWAKE_PER_SLEPT;
            self.nap_at = earned.min(now + AWAKE);
        }
    }

    /// Whether it has been awake for too long.
    pub(super) fn is_nap_due(&self, now: Instant) -> bool {
        now >= self.nap_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    fn at(span: Duration) -> Instant {
        Instant::ZERO + span
    }

    #[test]
    fn the_margin_falls_to_what_wake_ups_take() {
        let mut wake_ups = WakeUps::new(Instant::ZERO);
        for _ in 0..5_000 {
            wake_ups.woke(70 * US);
        }
        assert!((60 * US..=110 * US).contains(&wake_ups.margin()), "{:?}", wake_ups.margin());
    }

    #[test]
    fn one_wake_up_of_a_hundred_that_is_slow_keeps_the_margin_above_it() {
        let mut wake_ups = WakeUps::new(Instant::ZERO);
        let mut late = 0;
        for number in 1..=20_000 {
            let took = if number % 100 == 0 { 900 * US } else { 70 * US };
            late += u32::from(number > 10_000 && took > wake_ups.margin());
            wake_ups.woke(took);
        }
        // Half of the hundred slow ones.
        assert!((40..=60).contains(&late), "{late}");
    }

    #[test]
    fn the_margin_stays_within_its_bounds() {
        let mut wake_ups = WakeUps::new(Instant::ZERO);
        for _ in 0..100 {
            wake_ups.woke(50_000 * US);
        }
        assert_eq!(wake_ups.margin(), MAX_MARGIN);
        for _ in 0..100_000 {
            wake_ups.woke(Duration::ZERO);
        }
        assert_eq!(wake_ups.margin(), MIN_MARGIN);
    }

    #[test]
    fn a_thread_that_hardly_sleeps_naps_for_a_tenth_of_its_time() {
        let mut wake_ups = WakeUps::new(Instant::ZERO);
        let (mut now, mut napped) = (Duration::ZERO, Duration::ZERO);
        while now < Duration::from_secs(1) {
            now += US;
            if wake_ups.is_nap_due(at(now)) {
                now += NAP;
                napped += NAP;
                wake_ups.slept(at(now), NAP);
            }
        }
        assert!((100_000 * US..120_000 * US).contains(&napped), "{napped:?}");
    }

    #[test]
    fn one_that_sleeps_most_of_the_time_never_naps() {
        let mut wake_ups = WakeUps::new(Instant::ZERO);
        let mut now = Duration::ZERO;
        for _ in 0..1_000 {
            now += 10_000 * US;
            wake_ups.slept(at(now), 10_000 * US);
            now += 2_000 * US;
            assert!(!wake_ups.is_nap_due(at(now)));
        }
    }
}
