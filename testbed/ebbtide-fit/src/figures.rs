//! The figures of the network, from the links that explain what was seen.

use super::devices::ClientCount;
use super::exchanges::CapturedExchange;
use super::losses::{LossBursts, bursts};
use super::path::{FittedPath, Leg};
use super::read::Contents;
use super::search::Found;
use super::sides::Sides;
use super::taken_at::TakenAt;
use super::workload::{Sizes, Traffic};
use ebbtide_sim::stats::quantile;
use std::collections::BTreeMap;

/// A figure that was estimated.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The dotted key of the scenario, such as `network.up.rate`; or the name of a figure that is
    /// not a key: `round_trip`.
    pub key: &'static str,
    /// The value in the unit; infinite for a buffer without a limit.
    pub value: f64,
    /// `bit/s`, `s`, `B`, or empty for shares and numbers.
    pub unit: &'static str,
    /// The smallest value that is likely (95 %), if one is known.
    pub low: Option<f64>,
    /// The largest value that is likely, if one is known.
    pub high: Option<f64>,
    /// Whether the capture tells the value. If not, the value is one that contradicts nothing.
    pub is_known: bool,
    /// How it was found, in a few words.
    pub how: String,
}

/// The measurements of a capture.
#[derive(Copy, Clone)]
pub(super) struct MeasuredCapture<'m> {
    pub(super) contents: &'m Contents,
    /// Whom the capture shows asking.
    pub(super) clients: ClientCount,
    pub(super) sides: &'m Sides,
    /// Seen next to the hosts that begin them or, if the capture is not of there, next to the others.
    pub(super) exchanges: &'m [CapturedExchange],
    /// Seen next to the hosts that answer, where the capture is of both places.
    pub(super) far: &'m [CapturedExchange],
    pub(super) traffic: &'m Traffic,
    pub(super) sizes: &'m Sizes,
    pub(super) path: &'m FittedPath,
    pub(super) taken_at: TakenAt,
}

/// The bytes that may wait before a link.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum BufferRoom {
    /// Packets were dropped: more than the first fits, the second does not.
    Between(f64, f64),
    /// So many bytes waited, and nothing was dropped.
    AtLeast(f64),
}

impl BufferRoom {
    /// The value for a scenario; `None` for no limit.
    pub(super) fn bytes(self) -> Option<f64> {
        match self {
            Self::Between(low, high) => {
                Some(if high.is_finite() && high > low { (low + high) / 2.0 } else { low }.floor())
            }
            Self::AtLeast(_) => None,
        }
    }
}

/// One direction of the network.
#[derive(Copy, Clone, Debug)]
pub(super) struct FittedDirection {
    pub(super) rate: f64,
    pub(super) rates: (f64, f64),
    pub(super) is_rate_known: bool,
    /// The shortest, mean and longest delay, ns.
    pub(super) delay: (f64, f64, f64),
    pub(super) room: BufferRoom,
    /// The share of packets lost outside of the queue, and its range.
    pub(super) loss: (f64, f64, f64),
}

/// The network.
#[derive(Copy, Clone, Debug)]
pub(super) struct FittedNetwork {
    pub(super) up: FittedDirection,
    pub(super) down: FittedDirection,
    /// The time of the server from request to response, ns.
    pub(super) processing: Option<(f64, f64)>,
    /// The bursts in which packets are lost, if they are.
    pub(super) bursts: Option<LossBursts>,
    /// Whether delay and losses are known at all.
    pub(super) is_known: bool,
    /// Whether one link of a constant rate for each direction explains the times.
    pub(super) is_suited: bool,
}

/// A rate of which one end of the range is this many times the other is not known.
const VAGUE: f64 = 1.25;

/// The figures of the network that was found.
pub(super) fn network(measured: &MeasuredCapture<'_>) -> FittedNetwork {
    let (first, second, is_known) = match measured.path {
        FittedPath::Both(legs) => {
            let [out, back] = &**legs;
            let (one, other) = (alone(out), alone(back));
            let rates = (taken(&one, &other), taken(&other, &one));
            let endless = f64::INFINITY;
            (
                alone(&out.at_rate([rates.0, endless])),
                alone(&back.at_rate([rates.1, endless])),
                true,
            )
        }
        FittedPath::RoundTrip(leg) | FittedPath::ReturnTrip(leg) => {
            let are_lost = matches!(measured.path, FittedPath::RoundTrip(_));
            let (one, other) = halves(leg, are_lost);
            let leg = leg.at_rate([taken(&one, &other), taken(&other, &one)]);
            let (one, other) = halves(&leg, are_lost);
            let (one, other) = (from_one_place(one), from_one_place(other));
            if are_lost { (one, other, true) } else { (other, one, true) }
        }
        FittedPath::Unknown => {
            // What arrived has passed the way there; what was sent may be lost on the way back.
            let (out, back) = (traffic_rate(measured, true), traffic_rate(measured, false));
            let rate = out.max(back);
            (nothing(rate, out), nothing(rate, 0.0), false)
        }
    };
    let (up, down) = if measured.sides.is_from_server { (second, first) } else { (first, second) };
    let bursts = match measured.path {
        FittedPath::Both(legs) => bursts([&legs[0].found.score, &legs[1].found.score]),
        _ => None,
    };
    let is_suited = measured.path.is_suited();
    FittedNetwork { up, down, processing: processing(measured), bursts, is_known, is_suited }
}

/// The rate of a direction; one that is not known is taken to be that of the other direction, as far as that
/// contradicts nothing.
fn taken(own: &FittedDirection, other: &FittedDirection) -> f64 {
    if own.is_rate_known || !other.is_rate_known {
        return own.rate;
    }
    other.rate.clamp(own.rates.0, own.rates.1)
}

/// From one place the delay and the two rates share the same times: the likelihood of one rate alone makes its
/// range too narrow.
fn from_one_place(own: FittedDirection) -> FittedDirection {
    let (low, high) = own.rates;
    FittedDirection { rates: (low * 0.95, high * 1.05), ..own }
}

/// A direction of which nothing is known but the rate of its traffic.
fn nothing(rate: f64, least: f64) -> FittedDirection {
    FittedDirection {
        rate,
        rates: (least, f64::INFINITY),
        is_rate_known: false,
        delay: (0.0, 0.0, 0.0),
        room: BufferRoom::AtLeast(0.0),
        loss: (0.0, 0.0, 1.0),
    }
}

fn alone(leg: &Leg) -> FittedDirection {
    let found = &leg.found;
    let lost = f64::from(found.score.lost);
    let loss = wilson(lost, lost + f64::from(found.score.arrived));
    direction_of(leg, 0, leg.delay, loss)
}

/// The two directions of a round trip: what cannot be told apart is divided evenly. `are_lost`: whether packets that
/// were not seen again are known to be lost.
fn halves(leg: &Leg, are_lost: bool) -> (FittedDirection, FittedDirection) {
    let score = &leg.found.score;
    let lost = f64::from(score.lost);
    let (share, _, high) =
        if are_lost { wilson(lost, lost + f64::from(score.arrived)) } else { (0.0, 0.0, 1.0) };
    let each = |share: f64| 1.0 - (1.0 - share).max(0.0).sqrt();
    // All of it may have happened in one direction.
    let loss = (each(share), 0.0, high);
    let (_, mean, _) = leg.delay;
    let half = mean / 2.0;
    // Two equal independent delays have this range each, if they are uniform.
    let count = score.residuals.len().max(1) as f64;
    let square = |value: &f64| (value - mean) * (value - mean);
    let variance = score.residuals.iter().map(square).sum::<f64>() / count;
    let width = ((6.0 * variance).sqrt() / 2.0).min(half);
    let delay = (half - width, half, half + width);
    (direction_of(leg, 0, delay, loss), direction_of(leg, 1, delay, loss))
}

fn direction_of(
    leg: &Leg,
    link: usize,
    delay: (f64, f64, f64),
    loss: (f64, f64, f64),
) -> FittedDirection {
    let Found { hops, score, rates, .. } = &leg.found;
    let rates = rates[link];
    let room = if hops.buffer.is_finite() {
        BufferRoom::Between(score.most_waiting.min(hops.buffer), score.least_dropped)
    } else {
        BufferRoom::AtLeast(score.most_waiting)
    };
    let is_rate_known = rates.1 <= VAGUE * rates.0;
    FittedDirection { rate: hops.rate[link], rates, is_rate_known, delay, room, loss }
}

/// The share of `count` events in `all`, with the range that Wilson's interval of 95 % gives.
fn wilson(count: f64, all: f64) -> (f64, f64, f64) {
    if all <= 0.0 {
        return (0.0, 0.0, 1.0);
    }
    let square = 1.96 * 1.96;
    let share = count / all;
    let centre = (share + square / (2.0 * all)) / (1.0 + square / all);
    let root = (share * (1.0 - share) / all + square / (4.0 * all * all)).sqrt();
    let half = 1.96 * root / (1.0 + square / all);
    (share, (centre - half).max(0.0), (centre + half).min(1.0))
}

/// The times from requests to their answers next to the hosts that answer, without the outermost ones: a range
/// whose middle is their mean. A busy host is occasionally late, and a range that reached as far as that would say
/// that it usually is.
fn processing(measured: &MeasuredCapture<'_>) -> Option<(f64, f64)> {
    let list = match measured.path {
        FittedPath::Both(..) => measured.far,
        FittedPath::ReturnTrip(_) => measured.exchanges,
        _ => return None,
    };
    let all = &measured.contents.datagrams;
    let time = |own: &CapturedExchange| {
        let (copy, end) = (all.get(*own.copies.first()?)?, own.ended?);
        (own.copies.len() == 1).then(|| end.saturating_sub(copy.at) as f64)
    };
    let mut times: Vec<f64> = list.iter().filter_map(time).collect();
    times.sort_unstable_by(f64::total_cmp);
    let (low, high) = (quantile(&times, 0.01), quantile(&times, 0.99));
    times.retain(|time| (low..=high).contains(time));
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    (!times.is_empty()).then(|| (low.max(2.0 * mean - high), high.min(2.0 * mean - low)))
}

/// The rate that the traffic of a direction has on average, bit/s.
fn traffic_rate(measured: &MeasuredCapture<'_>, is_outward: bool) -> f64 {
    let all = &measured.contents.datagrams;
    let own = all.iter().filter(|own| measured.sides.is_outward(own) == is_outward);
    let bytes: u64 = own.map(|own| u64::from(own.bytes)).sum();
    let time = match (all.first(), all.last()) {
        (Some(first), Some(last)) => last.at - first.at,
        _ => 0,
    };
    bytes as f64 * 8e9 / time.max(1_000_000) as f64
}

/// Whether a lower bound of a rate, bit/s, or of a buffer, bytes, says anything.
pub(super) fn has_bound(low: f64) -> bool {
    low >= 1.0
}

/// The usual number of copies after the first of messages that were given up: those without a response whose host
/// went on to another.
pub(super) fn given_up(measured: &MeasuredCapture<'_>) -> Option<usize> {
    let all = &measured.contents.datagrams;
    let mut last = BTreeMap::new();
    for exchange in measured.exchanges {
        last.insert(exchange.device, all[exchange.copies[0]].at);
    }
    let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
    for exchange in measured.exchanges.iter().filter(|own| own.ended.is_none()) {
        let end = exchange.copies.last().map_or(0, |copy| all[*copy].at);
        if last.get(&exchange.device).is_some_and(|latest| *latest > end) {
            *counts.entry(exchange.copies.len() - 1).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(copies, _)| copies)
}
