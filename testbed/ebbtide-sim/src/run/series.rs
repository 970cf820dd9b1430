//! The course of a replication over time, for the report.

use super::flow_series::Flows;
use super::rate::{POINTS, Rate, seconds};
use crate::record::{Details, Recorder, Series, Tagged};
use ebbtide_core::time::{Instant, Micros};

/// Sees what happens over time, in a bounded number of points.
#[derive(Debug)]
pub struct SeriesRecorder {
    flows: Flows,
    queue_up: Envelope,
    queue_down: Envelope,
    goodput: Rate,
    timeouts: Vec<(f64, f64)>,
    /// Every how many timeouts one is kept.
    stride: u64,
    seen: u64,
}

/// Most timeouts that are kept.
const TIMEOUTS: usize = 2000;

impl SeriesRecorder {
    /// An empty recorder.
    pub fn new() -> Self {
        Self {
            flows: Flows::default(),
            queue_up: Envelope::new(),
            queue_down: Envelope::new(),
            goodput: Rate::new(),
            timeouts: Vec::new(),
            stride: 1,
            seen: 0,
        }
    }

    /// Returns the time series for the report.
    pub fn into_series(self, replication: u32) -> Series {
        Series {
            replication,
            queue_down: self.queue_down.points(),
            queue_up: self.queue_up.points(),
            timeouts: self.timeouts,
            throughput: self.goodput.points(),
            flows: self.flows.series(),
        }
    }
}

impl Default for SeriesRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder for SeriesRecorder {
    /// When packets leave the link says when a queue is empty.
    fn wants_departures(&self) -> bool {
        true
    }

    fn armed(&mut self, now: Instant, _tagged: Tagged, timeout: Micros) {
        if self.seen.is_multiple_of(self.stride) {
            self.timeouts.push((seconds(now), timeout.as_secs_f64()));
        }
        self.seen += 1;
        if self.timeouts.len() >= TIMEOUTS {
            let mut keep = false;
            self.timeouts.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
        }
    }

    fn at_link(&mut self, now: Instant, packet: &Details<'_>) {
        let queue = packet.direction.select(&mut self.queue_up, &mut self.queue_down);
        queue.observe(now, packet);
    }

    fn goodput(&mut self, now: Instant, bytes: u64) {
        self.goodput.add(now, bytes);
    }

    fn begins(&mut self, now: Instant, client: u32) {
        self.flows.begins(now, client);
    }

    fn delivered(&mut self, now: Instant, client: u32) {
        self.flows.delivered(now, client);
    }

    fn rate(&mut self, now: Instant, client: u32, rate: f64) {
        self.flows.rate(now, client, rate);
    }
}

/// The longest queue in each of at most [`POINTS`] equal stretches of time, which double when they run out. Where no
/// packet arrives, the queue drains at the rate of the link until the last packet has left.
#[derive(Debug)]
struct Envelope {
    width_ns: u64,
    peaks: Vec<f64>,
    /// When the last packet arrived, and the bytes that it found.
    last: (u64, f64),
    /// When the last packet that is known to pass leaves.
    empty_ns: u64,
}

impl Envelope {
    const fn new() -> Self {
        Self { width_ns: 10_000_000, peaks: Vec::new(), last: (0, 0.0), empty_ns: 0 }
    }

    fn observe(&mut self, now: Instant, packet: &Details<'_>) {
        let (now, value) = (now.as_nanos(), packet.queued as f64);
        let mut index = usize::try_from(now / self.width_ns).unwrap_or(usize::MAX);
        while index >= POINTS {
            let pairs = self.peaks.chunks(2);
            self.peaks = pairs.map(|pair| pair.iter().copied().fold(0.0, f64::max)).collect();
            self.width_ns *= 2;
            index /= 2;
        }
        for place in self.peaks.len()..index {
            self.peaks.push(self.drained(place));
        }
        match self.peaks.get_mut(index) {
            Some(peak) => *peak = peak.max(value),
            None => self.peaks.push(value),
        }
        self.last = (now, value);
        self.empty_ns = self.empty_ns.max(packet.left.map_or(now, Instant::as_nanos));
    }

    /// The queue at the beginning of a stretch after the last arrival, bytes.
    fn drained(&self, place: usize) -> f64 {
        let (at, queued) = self.last;
        let start = (place as u64).saturating_mul(self.width_ns);
        let left = self.empty_ns.saturating_sub(start) as f64;
        queued * left / (self.empty_ns.saturating_sub(at) as f64).max(1.0)
    }

    fn points(&self) -> Vec<(f64, f64)> {
        let width = self.width_ns as f64 / 1e9;
        let end = usize::try_from(self.empty_ns / self.width_ns + 2).unwrap_or(usize::MAX);
        let rest = self.peaks.len()..end.min(POINTS).max(self.peaks.len());
        let drained = rest.map(|place| self.drained(place));
        let all = self.peaks.iter().copied().chain(drained).enumerate();
        all.map(|(place, peak)| (place as f64 * width, peak)).collect()
    }
}
