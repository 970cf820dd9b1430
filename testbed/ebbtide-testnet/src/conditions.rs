//! The conditions of a link.

use ebbtide_sim::net::{Delay, Link, Loss, LossModel, Schedule};
use ebbtide_sim::random::{Probability, Streams};
use rand_chacha::ChaCha8Rng;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// The conditions between any two hosts of a [`TestNetwork`](crate::TestNetwork), the same in both
/// directions. By default a packet arrives after 10 ms, and none is lost.
#[derive(Clone, Debug)]
#[must_use]
pub struct Conditions {
    delay: RangeInclusive<Duration>,
    loss: LossModel,
    pub(crate) duplicates: Probability,
    bits_per_second: u64,
    buffer: Option<u64>,
    schedule: Option<Arc<Schedule>>,
}

impl Default for Conditions {
    fn default() -> Self {
        let usual = Duration::from_millis(10);
        Self {
            delay: usual..=usual,
            loss: LossModel::None,
            duplicates: Probability::new(0.0),
            bits_per_second: 1_000_000_000,
            buffer: None,
            schedule: None,
        }
    }
}

impl Conditions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the one-way delay, drawn for each packet. If its ends differ by more than the distance of two packets,
    /// the second can arrive first.
    pub const fn delay(mut self, delay: RangeInclusive<Duration>) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the share of packets that are lost, each independently of the others: 0 to 1.
    pub fn loss(self, share: f64) -> Self {
        self.loss_model(LossModel::of_share(share))
    }

    /// Sets a model of losses, for example in bursts.
    pub const fn loss_model(mut self, loss: LossModel) -> Self {
        self.loss = loss;
        self
    }

    /// Sets the share of packets that are sent twice: 0 to 1.
    pub fn duplicates(mut self, share: f64) -> Self {
        self.duplicates = Probability::new(share);
        self
    }

    /// Sets the rate in bits per second, and the bytes that wait for it; what does not fit is
    /// dropped. Each packet has 28 bytes of headers. Default 1 Gbit/s without a limit.
    pub const fn rate(mut self, bits_per_second: u64, buffer: u64) -> Self {
        self.bits_per_second = bits_per_second;
        self.buffer = Some(buffer);
        self
    }

    /// Lets rate and delay change with time, for example between the paging windows of a device that sleeps. The
    /// schedule takes the place of the other rate and delay.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = Some(Arc::new(schedule));
        self
    }

    /// The link in one direction, whose randomness has this name.
    pub(crate) fn link(&self, streams: &Streams, name: &str) -> Link<ChaCha8Rng> {
        let ns = |span: &Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let delay = Delay { low: ns(self.delay.start()), high: ns(self.delay.end()) };
        let stream = |of: &str| streams.stream(&format!("{name}/{of}"));
        let loss = Loss::new(self.loss, stream("loss"), stream("states"));
        let mut link = Link::new(self.bits_per_second, self.buffer, delay, loss, stream("delay"));
        if let Some(schedule) = &self.schedule {
            link.follow(schedule.clone());
        }
        link
    }
}
