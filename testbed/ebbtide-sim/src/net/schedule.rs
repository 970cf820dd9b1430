//! Rates and delays that change with time: outages, handovers, recorded traces.

use super::Delay;

/// The rate and the delay of a link from one instant until the next step.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// From when on, ns since the start of the run or of the period.
    pub from: u64,
    /// The rate; 0 is an outage, during which packets wait.
    pub bits_per_second: u64,
    /// The propagation delay of packets that leave in this step.
    pub delay: Delay,
}

/// The steps of a link in the order of time, once or over and over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The first begins at 0; each begins after the one before it.
    steps: Vec<RateStep>,
    /// After which the first step holds again, ns.
    period: Option<u64>,
}

/// Why steps make no schedule.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// The first step does not begin at 0, or a step does not begin after the one before it.
    OutOfOrder,
    /// The period ends before the last step begins.
    ShortPeriod,
    /// Nothing would ever leave: the last rate is 0 and holds forever, or all rates are 0.
    NeverTransmits,
}

impl Schedule {
    /// A schedule of these steps, which begin anew after `period` nanoseconds if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the steps are not in order, or if a packet could wait forever.
    pub fn new(steps: Vec<RateStep>, period: Option<u64>) -> Result<Self, ScheduleError> {
        let begins_at_zero = steps.first().is_some_and(|step| step.from == 0);
        let in_order = steps.windows(2).all(|pair| pair[0].from < pair[1].from);
        if !begins_at_zero || !in_order {
            return Err(ScheduleError::OutOfOrder);
        }
        let last = steps.last().copied();
        match (period, last) {
            (Some(period), Some(last)) if period <= last.from => {
                return Err(ScheduleError::ShortPeriod);
            }
            (Some(_), _) if steps.iter().all(|step| step.bits_per_second == 0) => {
                return Err(ScheduleError::NeverTransmits);
            }
            (None, Some(last)) if last.bits_per_second == 0 => {
                return Err(ScheduleError::NeverTransmits);
            }
            _ => {}
        }
        Ok(Self { steps, period })
    }

    /// How long so many bytes take that are there from the start, s.
    pub fn seconds_for(&self, bytes: f64) -> f64 {
        // Bytes of a run: far below 2^64. The cast saturates.
        let need = u128::from((bytes * 8.0).round() as u64) * 1_000_000_000;
        self.transmit(self.opens_at(0), need).0 as f64 / 1e9
    }

    /// The step that holds at `at`, and when it ends.
    fn step_at(&self, at: u64) -> (RateStep, u64) {
        let (phase, turn) = match self.period {
            Some(period) => (at % period, at - at % period),
            None => (at, 0),
        };
        let index = self.steps.partition_point(|step| step.from <= phase).saturating_sub(1);
        let next = self.steps.get(index + 1).map(|step| step.from).or(self.period);
        let end = next.map_or(u64::MAX, |from| turn.saturating_add(from));
        (self.steps[index], end)
    }

    /// The propagation delay of what leaves at `at`.
    pub(super) fn delay_at(&self, at: u64) -> Delay {
        self.step_at(at).0.delay
    }

    /// The first instant from `at` on at which bits leave.
    pub(super) fn opens_at(&self, mut at: u64) -> u64 {
        loop {
            let (step, end) = self.step_at(at);
            if step.bits_per_second > 0 || end == u64::MAX {
                return at;
            }
            at = end;
        }
    }

    /// When `need` has left if its transmission begins at `at`, and what the link could have sent
    /// beyond it within that nanosecond. Both quantities are in bits times nanoseconds per second.
    pub(super) fn transmit(&self, mut at: u64, mut need: u128) -> (u64, u64) {
        loop {
            let (step, end) = self.step_at(at);
            let rate = u128::from(step.bits_per_second);
            let capacity = rate * u128::from(end - at);
            if need <= capacity {
                let ticks = if rate == 0 { 0 } else { need.div_ceil(rate) };
                // At most what one nanosecond carries, below 2^64; the ticks end within the step.
                let surplus = u64::try_from(ticks * rate - need).unwrap_or(0);
                return (at.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX)), surplus);
            }
            if end == u64::MAX {
                return (u64::MAX, 0);
            }
            need -= capacity;
            at = end;
        }
    }
}
