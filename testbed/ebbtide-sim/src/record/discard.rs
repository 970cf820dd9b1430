//! The observer of every replication.

use super::ExchangeRecord;
use super::fine_times::FineTimes;
use super::low_power_times::LowPowerTimes;
use super::phase_times::PhaseTimes;
use super::recorder::{Recorder, Tagged};
use crate::histogram::new_histogram;
use crate::scenario::Scenario;
use ebbtide_core::time::{Duration, Instant, Micros};
use hdrhistogram::Histogram;

/// Sees round trips and durations, which every replication measures, and each exchange if it is to.
#[derive(Debug)]
pub struct Discard {
    all: Distributions,
    /// The distributions of each class.
    classes: Vec<Distributions>,
    /// The class that is measured now.
    class: usize,
    exchanges: Option<Vec<ExchangeRecord>>,
    /// Further times, in a low-power network.
    low_power: Option<Box<LowPowerTimes>>,
    /// The exchanges of each phase, if there are phases.
    phases: Option<Box<PhaseTimes>>,
}

/// Times of the exchanges of all clients, or of those of a class, in µs.
#[derive(Debug)]
pub(crate) struct Distributions {
    pub(crate) rtt: Histogram<u32>,
    pub(crate) durations: Histogram<u32>,
    pub(crate) after: FineTimes,
}

impl Distributions {
    fn new() -> Self {
        Self { rtt: new_histogram(), durations: new_histogram(), after: FineTimes::default() }
    }
}

impl Discard {
    /// Empty histograms.
    pub fn new() -> Self {
        let all = Distributions::new();
        let classes = Vec::new();
        Self { all, classes, class: 0, exchanges: None, low_power: None, phases: None }
    }

    /// Also takes the measurements that not every scenario has.
    pub(crate) fn for_scenario(mut self, scenario: &Scenario) -> Self {
        self.phases = PhaseTimes::new(scenario);
        self.low_power =
            scenario.network.mesh().is_some().then(|| Box::new(LowPowerTimes::new(scenario)));
        self
    }

    /// The times that are measured in low-power networks only.
    pub(crate) fn low_power(&self) -> Option<&LowPowerTimes> {
        self.low_power.as_deref()
    }

    /// The exchanges of each phase.
    pub(crate) fn phases(&self) -> Option<&PhaseTimes> {
        self.phases.as_deref()
    }

    /// A recorder that keeps a row for each exchange if that is wanted.
    pub(crate) fn keeping(exchanges: bool) -> Self {
        Self { exchanges: exchanges.then(Vec::new), ..Self::new() }
    }

    /// The exchanges that have ended, in that order; none unless they were to be kept.
    pub(crate) fn exchanges(self) -> Vec<ExchangeRecord> {
        self.exchanges.unwrap_or_default()
    }

    /// The measurements of a class; `None` if none of its clients did anything.
    pub(crate) fn of_class(&self, class: usize) -> Option<&Distributions> {
        self.classes.get(class)
    }

    /// The round trips seen, µs.
    pub const fn round_trips(&self) -> &Histogram<u32> {
        &self.all.rtt
    }

    /// The durations of exchanges seen, µs.
    pub const fn durations(&self) -> &Histogram<u32> {
        &self.all.durations
    }

    /// How long after they were due the answered exchanges got their response, µs.
    pub(crate) const fn after(&self) -> &FineTimes {
        &self.all.after
    }

    /// Records a value for all clients and, if classes are measured, for the class.
    #[inline]
    fn record(&mut self, of: impl Fn(&mut Distributions) -> &mut Histogram<u32>, value: u64) {
        of(&mut self.all).saturating_record(value);
        if let Some(class) = self.classes.get_mut(self.class) {
            of(class).saturating_record(value);
        }
    }
}

impl Default for Discard {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder for Discard {
    fn whose(&mut self, class: usize) {
        if class >= self.classes.len() {
            self.classes.resize_with(class + 1, Distributions::new);
        }
        self.class = class;
    }

    #[inline]
    fn round_trip(&mut self, rtt: Micros) {
        self.record(|one| &mut one.rtt, rtt.as_micros());
        if let Some(phases) = &mut self.phases {
            phases.round_trip(rtt);
        }
    }

    #[inline]
    fn duration(&mut self, duration: Micros) {
        self.record(|one| &mut one.durations, duration.as_micros());
    }

    #[inline]
    fn answered_after(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.all.after.record(micros);
        if let Some(class) = self.classes.get_mut(self.class) {
            class.after.record(micros);
        }
    }

    #[inline]
    fn ended(&mut self, exchange: &ExchangeRecord) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.push(*exchange);
        }
        if let Some(low_power) = &mut self.low_power {
            low_power.ended(exchange);
        }
        if let Some(phases) = &mut self.phases {
            phases.ended(self.class, exchange);
        }
    }

    fn refused(&mut self, now: Instant, count: u32) {
        if let Some(phases) = &mut self.phases {
            phases.refused(now, count);
        }
    }

    #[inline]
    fn armed(&mut self, _now: Instant, tagged: Tagged, timeout: Micros) {
        if let Some(low_power) = &mut self.low_power {
            low_power.armed(tagged, timeout);
        }
    }
}
