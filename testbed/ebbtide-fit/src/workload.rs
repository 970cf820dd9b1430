//! The activity of the devices: when they send, how much, and how many exchanges they keep open.

use super::exchanges::CapturedExchange;
use super::read::{CapturedDatagram, Contents};
use super::sides::Sides;
use ebbtide_core::wire::Type;
use ebbtide_sim::stats::quantile;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// A workload as a scenario writes it.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) kind: &'static str,
    pub(super) devices: u32,
    /// Exchanges per device, on average and at least one.
    pub(super) exchanges: u32,
    pub(super) period_ns: u64,
    pub(super) jitter_ns: u64,
    pub(super) burst: u32,
    pub(super) start_window_ns: u64,
    /// The shortest and the longest usual time between an answer and the next request, ns.
    pub(super) pause_ns: (u64, u64),
    pub(super) nstart: u32,
    pub(super) is_confirmable: bool,
    /// Whether a request follows the answer to the one before.
    pub(super) is_back_to_back: bool,
    /// The first and the ninth decile of the times between two requests of a device, ns.
    pub(super) intervals_ns: Option<(f64, f64)>,
}

/// The instants of the exchanges of one device.
struct ObservedDevice {
    starts: Vec<u64>,
    ends: Vec<Option<u64>>,
}

/// Requests this close to each other, or to the answer before, were made together, ns.
const AT_ONCE_NS: u64 = 10_000_000;

/// Describes the traffic by the exchanges that were seen at one place; `is_near`: next to the hosts that begin
/// them.
pub(super) fn traffic(
    all: &[CapturedDatagram],
    sides: &Sides,
    exchanges: &[CapturedExchange],
    is_near: bool,
) -> Traffic {
    let mut devices: BTreeMap<SocketAddr, ObservedDevice> = BTreeMap::new();
    for exchange in exchanges {
        let own = devices
            .entry(exchange.device)
            .or_insert_with(|| ObservedDevice { starts: Vec::new(), ends: Vec::new() });
        own.starts.push(all[exchange.copies[0]].at);
        own.ends.push(exchange.ended);
    }
    let confirmable =
        exchanges.iter().filter(|own| all[own.copies[0]].kind == Type::Confirmable).count();
    let devices: Vec<ObservedDevice> = devices.into_values().collect();
    let count = devices.len().max(1);
    let mean = (exchanges.len() as f64 / count as f64).round().max(1.0);
    let first = |device: &ObservedDevice| device.starts.first().copied();
    let earliest = devices.iter().filter_map(first).min().unwrap_or(0);
    let latest = devices.iter().filter_map(first).max().unwrap_or(0);
    let mut traffic = Traffic {
        kind: "continuous",
        devices: u32::try_from(count).unwrap_or(u32::MAX),
        exchanges: mean as u32,
        period_ns: 0,
        jitter_ns: 0,
        burst: 1,
        start_window_ns: latest - earliest,
        pause_ns: (0, 0),
        nstart: if is_near { devices.iter().map(open_at_once).max().unwrap_or(1) } else { 1 },
        is_confirmable: 2 * confirmable >= exchanges.len(),
        is_back_to_back: true,
        intervals_ns: None,
    };
    let gaps = sorted(devices.iter().flat_map(|own| differences(&own.starts)));
    if gaps.is_empty() {
        return traffic;
    }
    traffic.intervals_ns = Some((quantile(&gaps, 0.1), quantile(&gaps, 0.9)));
    let pauses = sorted(devices.iter().flat_map(|own| own.pauses(traffic.nstart as usize)));
    let times = sorted(devices.iter().flat_map(ObservedDevice::durations));
    let usual_time = quantile(&times, 0.5).max(0.0);
    let spread = |values: &[f64]| quantile(values, 0.9) - quantile(values, 0.1);
    let at_once = (AT_ONCE_NS as f64).max(0.02 * usual_time);
    // A busy host is occasionally late, by less than an exchange takes; what waits for a clock is later.
    let is_prompt = !pauses.is_empty()
        && (quantile(&pauses, 0.9) <= at_once
            || (quantile(&pauses, 0.75) <= at_once && quantile(&pauses, 0.97) <= usual_time));
    // A pause that is steadier than the time between requests is what the device keeps to.
    let has_pause = !pauses.is_empty() && spread(&pauses) < 0.5 * spread(&gaps);
    if sides.are_notifications {
        traffic.kind = "notifications";
        traffic.is_back_to_back = false;
        traffic.period_ns = quantile(&gaps, 0.5) as u64;
        traffic.nstart = 1;
        return traffic;
    }
    let goes_on = !is_near && follows_answers(&devices, &gaps, &pauses);
    if !goes_on && let Some((period, burst)) = clusters(&devices, &gaps) {
        traffic.kind = "bursts";
        traffic.is_back_to_back = false;
        traffic.start_window_ns = 0;
        traffic.period_ns = period;
        traffic.burst = burst;
        traffic.nstart = traffic.nstart.min(burst);
        return traffic;
    }
    if is_near && (is_prompt || (has_pause && !is_regular(&gaps))) {
        if !is_prompt {
            let ends = (quantile(&pauses, 0.05), quantile(&pauses, 0.95));
            traffic.pause_ns = (ends.0.max(0.0) as u64, ends.1.max(0.0) as u64);
        }
        return traffic;
    }
    if goes_on {
        return traffic;
    }
    traffic.is_back_to_back = false;
    traffic.start_window_ns = 0;
    by_the_clock(&mut traffic, &devices, at_once);
    traffic
}

/// The period and the size of bursts, if requests come in groups of one size that keep a period. A device with an
/// NSTART above 1 goes on after answers within a burst, but the next burst waits for its time.
fn clusters(devices: &[ObservedDevice], gaps: &[f64]) -> Option<(u64, u32)> {
    // A burst of the largest size that a scenario has, 64, has one long gap among 64.
    for (long, share) in [(0.95, 0.5), (0.95, 0.25), (0.99, 0.5), (0.99, 0.25)] {
        let pause = share * quantile(gaps, long);
        let (mut lengths, mut between) = (Vec::new(), Vec::new());
        for device in devices {
            let mut starts: Vec<u64> = Vec::new();
            let mut last = None;
            for start in &device.starts {
                match lengths.last_mut() {
                    Some(length) if last.is_some_and(|at| (start - at) as f64 <= pause) => {
                        *length += 1.0;
                    }
                    _ => {
                        starts.push(*start);
                        lengths.push(1.0);
                    }
                }
                last = Some(*start);
            }
            between.extend(differences(&starts));
        }
        let (lengths, between) = (sorted(lengths.into_iter()), sorted(between.into_iter()));
        if between.len() < 2 {
            continue;
        }
        let usual = quantile(&lengths, 0.5).round();
        let same = lengths.iter().filter(|length| (**length - usual).abs() < 0.5).count();
        if (2.0..=64.0).contains(&usual) && 5 * same >= 4 * lengths.len() && is_regular(&between) {
            return Some((quantile(&between, 0.5) as u64, usual as u32));
        }
    }
    None
}

/// Traffic that goes by the clock: bursts, all devices at once, periodic or at random.
fn by_the_clock(traffic: &mut Traffic, devices: &[ObservedDevice], at_once: f64) {
    let runs: Vec<(Vec<u64>, Vec<f64>)> = devices.iter().map(|own| own.runs(at_once)).collect();
    let lengths = sorted(runs.iter().flat_map(|(_, lengths)| lengths.iter().copied()));
    let starts: Vec<&Vec<u64>> = runs.iter().map(|(starts, _)| starts).collect();
    let between = sorted(starts.iter().flat_map(|own| differences(own)));
    if between.is_empty() {
        return;
    }
    let middle = quantile(&between, 0.5);
    traffic.period_ns = middle as u64;
    let usual = quantile(&lengths, 0.5);
    if usual >= 2.0 && is_regular(&between) {
        traffic.kind = "bursts";
        traffic.burst = usual.min(64.0) as u32;
        traffic.nstart = traffic.nstart.min(traffic.burst);
        return;
    }
    let gaps = sorted(devices.iter().flat_map(|own| differences(&own.starts)));
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    // Jitter does not add up: after many periods each request is still near its time.
    let off = sorted(starts.iter().flat_map(|own| deviations(own, middle)));
    let width = quantile(&off, 0.98) - quantile(&off, 0.02);
    if is_regular(&between) || width < 0.9 * middle {
        traffic.kind = "periodic";
        traffic.jitter_ns = if width > 0.02 * middle { width as u64 } else { 0 };
        let phases = sorted(starts.iter().filter_map(|own| own.first()).map(|at| *at as f64));
        let window = quantile(&phases, 1.0) - quantile(&phases, 0.0);
        if devices.len() > 2 && window + width < 0.1 * middle {
            traffic.kind = "synchronised";
            traffic.start_window_ns = window.max(width) as u64;
            traffic.jitter_ns = 0;
        }
        return;
    }
    traffic.kind = "poisson";
    traffic.period_ns = mean as u64;
}

impl ObservedDevice {
    /// Times between the answer to an earlier request and the next request, after the first `open` requests.
    fn pauses(&self, open: usize) -> Vec<f64> {
        let mut ends = BTreeSet::new();
        let mut pauses = Vec::new();
        for (number, (start, end)) in self.starts.iter().zip(&self.ends).enumerate() {
            if number >= open.max(1)
                && let Some(last) = ends.range(..=*start).next_back()
            {
                pauses.push((start - last) as f64);
            }
            ends.extend(*end);
        }
        pauses
    }

    fn durations(&self) -> Vec<f64> {
        let both = self.starts.iter().zip(&self.ends);
        both.filter_map(|(start, end)| Some((*end)?.saturating_sub(*start) as f64)).collect()
    }

    /// The starts and the lengths of the runs of requests that follow each other, or an answer, at once.
    fn runs(&self, at_once: f64) -> (Vec<u64>, Vec<f64>) {
        let (mut starts, mut lengths) = (Vec::new(), Vec::<f64>::new());
        let mut last: Option<(u64, Option<u64>)> = None;
        for (start, end) in self.starts.iter().zip(&self.ends) {
            let near = |at: u64| start.saturating_sub(at) as f64 <= at_once && at <= *start;
            let goes_on = last.is_some_and(|(begun, ended)| near(begun) || ended.is_some_and(near));
            match lengths.last_mut() {
                Some(length) if goes_on => *length += 1.0,
                _ => {
                    starts.push(*start);
                    lengths.push(1.0);
                }
            }
            last = Some((*start, *end));
        }
        (starts, lengths)
    }
}

/// The most exchanges of a device that were open at the same time.
fn open_at_once(device: &ObservedDevice) -> u32 {
    let mut events: Vec<(u64, i32)> = Vec::new();
    for (start, end) in device.starts.iter().zip(&device.ends) {
        // One that was never answered cannot be counted.
        if let Some(end) = end {
            events.push((*start, 1));
            events.push((*end, -1));
        }
    }
    // At the same instant the end comes first: it made room.
    events.sort_unstable();
    let (mut open, mut most) = (0_i32, 1_i32);
    for (_, step) in events {
        open += step;
        most = most.max(open);
    }
    most.unsigned_abs()
}

fn differences(values: &[u64]) -> Vec<f64> {
    values.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect()
}

/// The deviations of instants from multiples of a period, about their median.
fn deviations(starts: &[u64], period: f64) -> Vec<f64> {
    let Some(first) = starts.first() else { return Vec::new() };
    let off = |at: &u64| {
        let since = (at - first) as f64;
        since - (since / period).round() * period
    };
    let values: Vec<f64> = starts.iter().map(off).collect();
    let middle = quantile(&sorted(values.iter().copied()), 0.5);
    values.iter().map(|value| value - middle).collect()
}

/// Whether requests follow the answers that left before them, as far as that shows next to the server: they keep no
/// period, and none comes much sooner after an answer than others do, which a round trip prevents.
fn follows_answers(devices: &[ObservedDevice], gaps: &[f64], pauses: &[f64]) -> bool {
    let period = quantile(gaps, 0.5);
    let off = sorted(devices.iter().flat_map(|own| deviations(&own.starts, period)));
    let width = quantile(&off, 0.9) - quantile(&off, 0.1);
    !pauses.is_empty()
        && width > 0.2 * period
        && quantile(pauses, 0.02) > 0.2 * quantile(pauses, 0.5)
}

/// Whether most of sorted times are within a tenth of the median.
fn is_regular(times: &[f64]) -> bool {
    let middle = quantile(times, 0.5);
    quantile(times, 0.8) - quantile(times, 0.2) < 0.1 * middle
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The sizes of messages.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    /// Bytes of the headers below CoAP.
    pub(super) header: u32,
    pub(super) token: u32,
    /// Bytes of options of the messages that open exchanges, on average.
    pub(super) options: u32,
    /// Their payload, on average, and its range.
    pub(super) payload: (u32, u32, u32),
    /// Bytes of responses without header, token and the four bytes of CoAP, on average, and their range.
    pub(super) response: (u32, u32, u32),
    /// The path of most requests, its segments joined.
    pub(super) path: String,
    /// The number of different paths, as far as they are counted.
    pub(super) paths: usize,
    /// The longest packet.
    pub(super) longest: u32,
}

impl Sizes {
    pub(super) fn found_in(contents: &Contents, exchanges: &[CapturedExchange]) -> Self {
        let all = &contents.datagrams;
        let opening: Vec<&CapturedDatagram> =
            exchanges.iter().map(|own| &all[own.copies[0]]).collect();
        let answers: Vec<&CapturedDatagram> =
            exchanges.iter().filter_map(|own| Some(&all[own.response?])).collect();
        let is_ipv6 = 2 * opening.iter().filter(|own| own.from.is_ipv6()).count() > opening.len();
        let header = if is_ipv6 { 48 } else { 28 };
        let mut paths: BTreeMap<u32, u32> = BTreeMap::new();
        let mut tokens: BTreeMap<usize, u32> = BTreeMap::new();
        for datagram in &opening {
            *tokens.entry(datagram.token.as_slice().len()).or_default() += 1;
            if let Some(path) = datagram.path {
                *paths.entry(path).or_default() += 1;
            }
        }
        let most = paths.iter().max_by_key(|(_, count)| **count).map(|(path, _)| *path);
        let path = most.and_then(|path| contents.paths.get(path as usize)).cloned();
        let token = tokens.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(len, _)| len);
        let rest = |own: &&CapturedDatagram| {
            let fixed = header + 4 + own.token.encoded_len() as u32;
            own.bytes.saturating_sub(fixed)
        };
        Self {
            header,
            token: (token as u32).min(7),
            options: range_of(opening.iter().map(|own| own.options)).0,
            payload: range_of(opening.iter().map(|own| own.payload)),
            response: range_of(answers.iter().map(rest)),
            path: path.unwrap_or_default(),
            paths: paths.len(),
            longest: all.iter().map(|own| own.bytes).max().unwrap_or(0),
        }
    }
}

/// The mean, the smallest and the largest of some numbers; zeros for none.
fn range_of(values: impl Iterator<Item = u32>) -> (u32, u32, u32) {
    let (mut sum, mut count, mut least, mut most) = (0_u64, 0_u64, u32::MAX, 0);
    for value in values {
        sum += u64::from(value);
        count += 1;
        least = least.min(value);
        most = most.max(value);
    }
    if count == 0 {
        return (0, 0, 0);
    }
    // A mean of 32 bits.
    (((sum + count / 2) / count) as u32, least, most)
}
