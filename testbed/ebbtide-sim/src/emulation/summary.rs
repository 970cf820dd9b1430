//! The summary of an emulation, and whether its result is valid.

use crate::net::LinkCounts;
use ebbtide_core::time::{Duration, Instant};
use hdrhistogram::Histogram;
use serde::Serialize;

/// The lateness at the 99th percentile beyond which an emulation is not valid.
pub const LATENESS_LIMIT: Duration = Duration::from_millis(1);

/// The summary of an emulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EmulationSummary {
    /// Duration of the emulation, s.
    pub seconds: f64,
    /// From the clients to the server.
    pub up: DirectionSummary,
    /// From the server to the clients.
    pub down: DirectionSummary,
    /// The links between the devices and the bottleneck, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkSummary>,
    /// Packets that were under way at the end.
    pub under_way: usize,
    /// Packets that were dropped because a million of them or 256 MiB were under way.
    pub refused: u64,
    /// How late packets were handed over.
    pub lateness: Lateness,
}

impl EmulationSummary {
    /// Whether the packets were handed over in time: lateness at the 99th percentile within
    /// [`LATENESS_LIMIT`].
    pub fn is_valid(&self) -> bool {
        self.lateness.p99_us <= LATENESS_LIMIT.as_secs_f64() * 1e6
    }
}

/// The summary of a link between the devices and the bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Its name.
    pub name: String,
    /// Towards the server; `delivered` are the packets that it handed on.
    pub up: DirectionSummary,
    /// Towards the devices.
    pub down: DirectionSummary,
}

/// The summary of one direction.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct DirectionSummary {
    /// Packets handed to the link.
    pub sent: u64,
    /// Packets handed over at the other end.
    pub delivered: u64,
    /// Their bytes, headers included.
    pub delivered_bytes: u64,
    /// Packets dropped because the buffer was full.
    pub dropped_queue: u64,
    /// Packets lost after the queue.
    pub lost_link: u64,
    /// The largest number of bytes that waited at the same time.
    pub queue_max: u64,
    /// Bytes in the queue, averaged over time.
    pub queue_mean: f64,
    /// The share of the time in which the link was busy.
    pub utilisation: f64,
}

impl DirectionSummary {
    /// `counts` are those until `now`; `delivered` counts packets and their bytes.
    pub(super) fn new(
        counts: LinkCounts,
        delivered: u64,
        delivered_bytes: u64,
        now: Instant,
    ) -> Self {
        let span = now.as_nanos().max(1) as f64;
        Self {
            sent: counts.sent,
            delivered,
            delivered_bytes,
            dropped_queue: counts.dropped_queue,
            lost_link: counts.lost_link,
            queue_max: counts.queue_max,
            queue_mean: counts.queue_byte_ns as f64 / span,
            utilisation: counts.busy_ns as f64 / span,
        }
    }
}

/// How late packets were handed over, in microseconds.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Lateness {
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The maximum.
    pub max_us: f64,
}

impl Lateness {
    pub(super) fn new(histogram: &Histogram<u64>) -> Self {
        let us = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self { p50_us: us(0.5), p99_us: us(0.99), max_us: histogram.max() as f64 / 1e3 }
    }
}
