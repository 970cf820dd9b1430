//! The rates and delays of a link over time, from its schedule or its trace.

use super::limits::LONGEST_SPAN;
use super::units::{Rate, TimeRange};
use super::{LinkSpec, Trace};
use crate::keys::{Check, LONGEST, require};
use crate::net::{RateStep, Schedule, ScheduleError};
use std::sync::Arc;

impl LinkSpec {
    /// The link's rates and delays over time; `None` if they do not change.
    pub fn schedule(&self) -> Option<Arc<Schedule>> {
        let recorded = self.trace.as_ref().and_then(Trace::schedule);
        recorded.or_else(|| self.try_schedule().ok().flatten().map(Arc::new))
    }

    /// How long the link needs for so many bytes if they are there from the start, s.
    pub fn seconds_for(&self, bytes: f64) -> f64 {
        let rate = self.rate.0.max(1) as f64;
        self.schedule().map_or(bytes * 8.0 / rate, |schedule| schedule.seconds_for(bytes))
    }

    /// The longest time for which packets wait because the link has no rate, ns.
    pub fn longest_outage_ns(&self) -> u64 {
        let mut since = None;
        let mut longest = 0;
        let period = self.schedule_period.0;
        // A second round, for an outage that lasts beyond the end of the period.
        let rounds = if period > 0 { 2 } else { 1 };
        for round in 0..rounds {
            for change in &self.schedule {
                let at = change.at.0.saturating_add(round * period);
                match change.rate {
                    Some(Rate(0)) => since = since.or(Some(at)),
                    Some(_) => longest = longest.max(since.take().map_or(0, |since| at - since)),
                    None => {}
                }
            }
        }
        longest
    }

    fn try_schedule(&self) -> Result<Option<Schedule>, ScheduleError> {
        if self.schedule.is_empty() {
            return Ok(None);
        }
        let (mut rate, mut delay) = (self.rate.0, self.delay.delay());
        let mut steps = vec![RateStep { from: 0, bits_per_second: rate, delay }];
        for change in &self.schedule {
            rate = change.rate.map_or(rate, |rate| rate.0);
            delay = change.delay.map_or(delay, TimeRange::delay);
            if change.at.0 == 0 && steps.len() == 1 {
                steps.clear();
            }
            steps.push(RateStep { from: change.at.0, bits_per_second: rate, delay });
        }
        let period = self.schedule_period.0;
        Schedule::new(steps, (period > 0).then_some(period)).map(Some)
    }
}

/// Checks rates and delays over time that parse but are impossible.
pub(super) fn check(name: &str, link: &LinkSpec) -> Check {
    let key = format!("network.{name}.schedule");
    let period = format!("network.{name}.schedule_period");
    if link.trace.is_some() {
        let trace = format!("network.{name}.trace");
        require(
            link.schedule.is_empty(),
            &trace,
            "takes the place of a schedule: keep one of them",
        )?;
    }
    if link.schedule.is_empty() {
        return require(
            link.schedule_period.0 == 0,
            &period,
            "needs [[network.*.schedule]] entries",
        );
    }
    require(link.schedule.len() <= 100_000, &key, "must be at most 100000 entries")?;
    for change in &link.schedule {
        require(change.at <= LONGEST, &key, "must have at = at most 36525 days")?;
        let rate = change.rate.is_none_or(|rate| rate.0 <= 1_000_000_000_000);
        require(rate, &key, "must have rates of at most 1000 Gbit/s")?;
        let delay = change.delay.is_none_or(|delay| delay.ends().1 <= LONGEST_SPAN.0);
        require(delay, &key, "must have delays of at most a day (86400 s)")?;
        let says_something = change.rate.is_some() || change.delay.is_some();
        require(says_something, &key, "must have a rate or a delay in each entry")?;
    }
    match link.try_schedule() {
        Ok(_) => Ok(()),
        Err(ScheduleError::OutOfOrder) => {
            require(false, &key, "must be in the order of time: each `at` above the one before")
        }
        Err(ScheduleError::ShortPeriod) => {
            require(false, &period, "must be above the `at` of the last entry")
        }
        Err(ScheduleError::NeverTransmits) => {
            let message = "must not end in an outage: add an entry with a rate, or schedule_period";
            require(false, &key, message)
        }
    }
}
