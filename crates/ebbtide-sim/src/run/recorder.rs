//! Observers of a replication. They see everything and change nothing.

use super::discard::Discard;
use super::flow_series::Flows;
use crate::net::Fate;
use crate::record::ExchangeRecord;
use crate::report::Series;
use ebbtide_core::cc::{Metrics, Sample};
use ebbtide_core::endpoint::Failure;
use ebbtide_core::time::{Duration, Instant, Micros};
use hdrhistogram::Histogram;

/// The exchange and transmission to which a message belongs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tagged {
    /// The client.
    pub client: u32,
    /// The number of the exchange at its client, from 0.
    pub exchange: u32,
    /// Which transmission of it, or which one is answered; 0 is the original.
    pub ordinal: u8,
    /// It is a probe that congestion control sent after that transmission, or the answer to one.
    pub probe: bool,
}

/// The transport of a client's messages.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A datagram each (RFC 7252).
    #[default]
    Udp,
    /// A byte stream (RFC 8323).
    Tcp,
}

/// A packet at a link, as an observer sees it.
#[derive(Copy, Clone, Debug)]
pub struct Details<'p> {
    /// Towards the server, or towards the clients.
    pub upwards: bool,
    /// The transport of the message.
    pub transport: Transport,
    /// The exchange and transmission to which it belongs.
    pub tagged: Tagged,
    /// Over UDP the CoAP message; over TCP the IPv4 packet.
    pub datagram: &'p [u8],
    /// Bytes in the queue before it.
    pub queued: u64,
    /// The fate of the packet at the link.
    pub fate: Fate,
    /// When its last bit leaves the link's serialiser; only at a link that does not drop it, and only for an
    /// observer that [wants details](Recorder::wants_details).
    pub left: Option<Instant>,
}

/// Where a datagram was lost in a low-power network.
#[derive(Copy, Clone, Debug)]
pub struct LostAt<'c> {
    /// The node that lost it.
    pub node: u32,
    /// On the way to the server, or back.
    pub upwards: bool,
    /// Why, in words.
    pub cause: &'c str,
}

/// Sees what happens in a replication.
pub trait Recorder {
    /// Whether `answered` and [`Details::left`] are worth computing for this observer.
    fn wants_details(&self) -> bool {
        false
    }
    /// Whether the bytes of frames are worth putting together for this observer.
    fn wants_frames(&self) -> bool {
        false
    }
    /// The measurements from now on belong to clients of this class. Called only in
    /// scenarios with classes.
    fn whose(&mut self, class: usize) {
        let _ = class;
    }
    /// The round trip of an answered transmission.
    fn round_trip(&mut self, rtt: Micros) {
        let _ = rtt;
    }
    /// How long an exchange took, from the application's request to its first response.
    fn duration(&mut self, duration: Micros) {
        let _ = duration;
    }
    /// An exchange was answered so long after it was due.
    fn answered_after(&mut self, time: Duration) {
        let _ = time;
    }
    /// A client transmits and arms a timeout.
    fn armed(&mut self, now: Instant, tagged: Tagged, timeout: Micros) {
        let _ = (now, tagged, timeout);
    }
    /// A client sends a packet: on the air or, without a radio, onto the link.
    fn client_sent(&mut self, now: Instant, packet: &Details<'_>) {
        let _ = (now, packet);
    }
    /// A packet leaves the Wi-Fi or LoRaWAN cell (`"wifi"`, `"lora"`): it has crossed it, was dropped before or
    /// lost in it. [`Details::queued`] are packets, not bytes.
    fn crossed(&mut self, now: Instant, medium: &str, packet: &Details<'_>) {
        let _ = (now, medium, packet);
    }
    /// A packet joins the queue of a link whose discipline decides its fate later: then the link reports it. Only
    /// for an observer that [wants details](Self::wants_details).
    fn joins_queue(&mut self, now: Instant, packet: &Details<'_>) {
        let _ = (now, packet);
    }
    /// A packet is handed to the link.
    fn at_link(&mut self, now: Instant, packet: &Details<'_>) {
        let _ = (now, packet);
    }
    /// A packet is handed to the link of this name, which is not the bottleneck.
    fn at_other_link(&mut self, now: Instant, link: &str, packet: &Details<'_>) {
        let _ = (now, link, packet);
    }
    /// The server sends a packet towards the link.
    fn server_sent(&mut self, now: Instant, packet: &Details<'_>) {
        let _ = (now, packet);
    }
    /// A packet arrives at a host: the server or a client.
    fn arrived(&mut self, now: Instant, packet: &Details<'_>) {
        let _ = (now, packet);
    }
    /// A node begins to transmit a frame or an acknowledgement to another one.
    fn on_air(&mut self, now: Instant, ends: (u32, u32), frame: &[u8]) {
        let _ = (now, ends, frame);
    }
    /// A datagram was lost in a low-power network.
    fn lost_at(&mut self, now: Instant, tagged: Tagged, at: &LostAt<'_>) {
        let _ = (now, tagged, at);
    }
    /// A message reached its host in a low-power network.
    fn reached(&mut self, now: Instant, tagged: Tagged, upwards: bool) {
        let _ = (now, tagged, upwards);
    }
    /// An exchange got its response; what the control made of it.
    fn answered(
        &mut self,
        now: Instant,
        tagged: Tagged,
        sample: Option<Sample>,
        metrics: &Metrics,
    ) {
        let _ = (now, tagged, sample, metrics);
    }
    /// An exchange failed.
    fn failed(&mut self, now: Instant, tagged: Tagged, reason: Failure) {
        let _ = (now, tagged, reason);
    }
    /// An exchange has ended, with its response or without.
    fn ended(&mut self, exchange: &ExchangeRecord) {
        let _ = exchange;
    }
    /// The first message of a flow left.
    fn begins(&mut self, now: Instant, client: u32) {
        let _ = (now, client);
    }
    /// A message of a flow arrived at the server, for the first time.
    fn delivered(&mut self, now: Instant, client: u32) {
        let _ = (now, client);
    }
    /// The rate at which a control lets a client's messages leave, messages/s.
    fn rate(&mut self, now: Instant, client: u32, rate: f64) {
        let _ = (now, client, rate);
    }
    /// Payload reached an application, in bytes.
    fn goodput(&mut self, now: Instant, bytes: u64) {
        let _ = (now, bytes);
    }
}

#[expect(clippy::expect_used, reason = "the bounds are constants that the crate accepts")]
pub(crate) fn new_histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, u64::from(u32::MAX), 2).expect("constant bounds are valid")
}

/// Up to 2^40 µs, which are 12 days, to 0.1 %: times by which controls are compared.
#[expect(clippy::expect_used, reason = "the bounds are constants that the crate accepts")]
pub(super) fn fine_histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(1, 1 << 40, 3).expect("constant bounds are valid")
}

/// Sees what happens over time, in a bounded number of points.
#[derive(Debug)]
pub struct SeriesRecorder {
    plain: Discard,
    flows: Flows,
    queue_up: Envelope,
    queue_down: Envelope,
    goodput: Rate,
    timeouts: Vec<(f64, f64)>,
    /// Every how many timeouts one is kept.
    stride: u64,
    seen: u64,
}

/// Most points of a series.
const POINTS: usize = 600;
/// Most timeouts that are kept.
const TIMEOUTS: usize = 2000;

impl SeriesRecorder {
    /// An empty recorder.
    #[must_use]
    pub fn new() -> Self {
        Self::around(Discard::new())
    }

    /// One that measures with `plain` what every replication measures.
    pub(super) fn around(plain: Discard) -> Self {
        Self {
            plain,
            flows: Flows::default(),
            queue_up: Envelope::new(),
            queue_down: Envelope::new(),
            goodput: Rate::new(),
            timeouts: Vec::new(),
            stride: 1,
            seen: 0,
        }
    }

    /// Returns the measurements that every replication takes.
    #[must_use]
    pub const fn plain(&self) -> &Discard {
        &self.plain
    }

    /// Returns the time series for the report, and the measurements that every replication takes.
    #[must_use]
    pub fn into_series(self, replication: u32) -> (Series, Discard) {
        let series = Series {
            replication,
            queue_down: self.queue_down.points(),
            queue_up: self.queue_up.points(),
            timeouts: self.timeouts,
            throughput: self.goodput.points(),
            flows: self.flows.series(),
        };
        (series, self.plain)
    }
}

impl Default for SeriesRecorder {
    fn default() -> Self {
        Self::new()
    }
}

pub(super) fn seconds(now: Instant) -> f64 {
    now.as_nanos() as f64 / 1e9
}

impl Recorder for SeriesRecorder {
    fn whose(&mut self, class: usize) {
        self.plain.whose(class);
    }

    fn round_trip(&mut self, rtt: Micros) {
        self.plain.round_trip(rtt);
    }

    fn duration(&mut self, duration: Micros) {
        self.plain.duration(duration);
    }

    fn answered_after(&mut self, time: Duration) {
        self.plain.answered_after(time);
    }

    fn ended(&mut self, exchange: &ExchangeRecord) {
        self.plain.ended(exchange);
    }

    fn armed(&mut self, now: Instant, _tagged: Tagged, timeout: Micros) {
        if self.seen.is_multiple_of(self.stride) {
            self.timeouts.push((seconds(now), f64::from(timeout.get()) / 1e6));
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
        let queue = if packet.upwards { &mut self.queue_up } else { &mut self.queue_down };
        queue.observe(now, packet.queued as f64);
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

/// The largest value of each of at most [`POINTS`] equal stretches of time; stretches double when
/// they run out.
#[derive(Debug)]
struct Envelope {
    width_ns: u64,
    peaks: Vec<Option<f64>>,
}

impl Envelope {
    const fn new() -> Self {
        Self { width_ns: 10_000_000, peaks: Vec::new() }
    }

    fn observe(&mut self, now: Instant, value: f64) {
        let mut index = usize::try_from(now.as_nanos() / self.width_ns).unwrap_or(usize::MAX);
        while index >= POINTS {
            self.peaks = self
                .peaks
                .chunks(2)
                .map(|pair| pair.iter().flatten().copied().reduce(f64::max))
                .collect();
            self.width_ns *= 2;
            index /= 2;
        }
        if index >= self.peaks.len() {
            self.peaks.resize(index + 1, None);
        }
        let peak = self.peaks[index].get_or_insert(value);
        *peak = peak.max(value);
    }

    fn points(&self) -> Vec<(f64, f64)> {
        let width = self.width_ns as f64 / 1e9;
        let known = self.peaks.iter().enumerate();
        known.filter_map(|(i, peak)| peak.map(|peak| (i as f64 * width, peak))).collect()
    }
}

/// Bytes per stretch of time, as a rate.
#[derive(Debug)]
pub(super) struct Rate {
    width_ns: u64,
    bytes: Vec<u64>,
}

impl Rate {
    /// Rates over less than a second are noise at the rates of the papers' links.
    pub(super) const fn new() -> Self {
        Self { width_ns: 1_000_000_000, bytes: Vec::new() }
    }

    pub(super) fn add(&mut self, now: Instant, bytes: u64) {
        let mut index = usize::try_from(now.as_nanos() / self.width_ns).unwrap_or(usize::MAX);
        while index >= POINTS {
            self.bytes = self.bytes.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.width_ns *= 2;
            index /= 2;
        }
        if index >= self.bytes.len() {
            self.bytes.resize(index + 1, 0);
        }
        self.bytes[index] += bytes;
    }

    /// The length of a stretch, s, and what was added in each.
    pub(super) fn counts(&self) -> (f64, &[u64]) {
        (self.width_ns as f64 / 1e9, &self.bytes)
    }

    fn points(&self) -> Vec<(f64, f64)> {
        let width = self.width_ns as f64 / 1e9;
        let rate = |bytes: u64| bytes as f64 * 8.0 / width;
        self.bytes.iter().enumerate().map(|(i, b)| (i as f64 * width, rate(*b))).collect()
    }
}
