//! The search for the links that explain what was seen best.

use super::hops::{Hops, Passage, Score, Seen, pass, pass_with, settle};

/// Links that were found, and how certain they are.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The packets, in the order in which they were sent.
    pub(super) passages: Vec<Passage>,
    pub(super) hops: Hops,
    pub(super) score: Score,
    /// The range of each rate in which the likelihood is not much smaller.
    pub(super) rates: [(f64, f64); 2],
}

/// A logarithm of likelihoods by which a range of 95 % is bounded (half of the quantile of chi squared with one
/// degree of freedom).
const CONFIDENT: f64 = 1.92;
/// A finite buffer has to explain the capture better by this much than losses do, in logarithms of likelihood.
const BUFFER_GAIN: f64 = 8.0;
/// Packets that a full buffer must have dropped before it is believed.
const BUFFER_DROPS: u32 = 4;
/// Packets on which the coarse search goes.
const COARSE: usize = 6_000;

/// Finds the rates and the buffer of links. With `both`, packets pass two links, else only the first.
pub(super) fn search(mut passages: Vec<Passage>, both: bool) -> Option<Found> {
    passages.sort_by_key(|packet| packet.sent);
    let arrived = passages.iter().filter(|packet| matches!(packet.seen, Seen::At(_))).count();
    if arrived < 2 {
        return None;
    }
    let hops = coarse(&passages, both)?;
    let hops = climb(&passages, hops, &FINE);
    let score = pass(&passages, &hops);
    let mut rates = [(hops.rate[0], hops.rate[0]), (hops.rate[1], hops.rate[1])];
    for (link, range) in rates.iter_mut().enumerate().take(if both { 2 } else { 1 }) {
        *range = bounds(&passages, &hops, link, &score);
    }
    let score = settle(&passages, &hops);
    Some(Found { passages, hops, score, rates })
}

/// Factors by which a rate is changed on the way to the best one. Where a link works without a pause, its rate
/// decides the time of the last packet, and the likelihood has a peak that is that much narrower.
const COARSER: [f64; 3] = [1.02, 1.005, 1.001];
const FINE: [f64; 6] = [1.01, 1.002, 1.0004, 1.0001, 1.00002, 1.000_005];
/// Links of which the coarse search looks at the surroundings.
const KEPT: usize = 6;

/// The best links of all orders of magnitude.
fn coarse(passages: &[Passage], both: bool) -> Option<Hops> {
    let part = &passages[..passages.len().min(COARSE)];
    let endless = f64::INFINITY;
    let alone = |link: usize| {
        let rates = |rate| if link == 0 { [rate, endless] } else { [endless, rate] };
        let tried = candidates(part, link)?.into_iter().map(|rate| consider(part, rates(rate)));
        climb_from(part, tried.collect())
    };
    if !both {
        return Some(alone(0)?.1);
    }
    // Where all packets of a direction have one length, either may be the bottleneck. More likely it is the one
    // with the longer packets.
    let bytes = |link: usize| part.iter().map(|own| f64::from(own.bytes[link])).sum::<f64>();
    let bytes = [bytes(0), bytes(1)];
    let own = usize::from(bytes[1] >= bytes[0]);
    let (likely, other) = (alone(own)?, alone(1 - own)?);
    let (own, best) =
        if other.0 > likely.0 + PREFERENCE { (1 - own, other) } else { (own, likely) };
    // The other link is as fast or faster for its packets.
    let equal = best.1.rate[own] * bytes[1 - own] / bytes[own].max(1.0);
    let second = |step: i32| {
        let mut rates = best.1.rate;
        rates[1 - own] = equal * 0.9 * power(1.12, step);
        consider(part, rates)
    };
    Some(climb_from(part, (0..60).map(second).collect())?.1)
}

/// The logarithm of likelihood by which the less likely bottleneck has to explain the capture better.
const PREFERENCE: f64 = 10.0;

/// Rates that a link may have: those of a scale, and those at which packets arrived behind each other.
fn candidates(passages: &[Passage], link: usize) -> Option<Vec<f64>> {
    let busiest = slowest(passages, link)?;
    // Up to ten thousand times as fast as necessary.
    let mut rates: Vec<f64> = (0..130).map(|step| busiest * 0.5 * power(1.075, step)).collect();
    let mut arrivals: Vec<(u64, u32)> = Vec::new();
    let mut missing = 0_u32;
    for packet in passages {
        match packet.seen {
            Seen::At(at) => arrivals.push((at, packet.bytes[link])),
            Seen::Missing => missing += 1,
            Seen::Unknown => {}
        }
    }
    arrivals.sort_unstable();
    let share = arrivals.len() as f64 / (arrivals.len() as f64 + f64::from(missing)).max(1.0);
    let mut length = 4;
    while length < arrivals.len() {
        let mut bytes: u64 = arrivals[1..=length].iter().map(|(_, bytes)| u64::from(*bytes)).sum();
        let mut most = 0.0_f64;
        for start in 0..arrivals.len() - length {
            if start > 0 {
                bytes += u64::from(arrivals[start + length].1);
                bytes -= u64::from(arrivals[start].1);
            }
            let time = arrivals[start + length].0 - arrivals[start].0;
            most = most.max(bytes as f64 * 8e9 / time.max(1) as f64);
        }
        for lost in [1.0, share] {
            for step in -4_i32..=4 {
                rates.push(most / lost * (1.0 + f64::from(step) / (2.0 * length as f64)));
            }
        }
        length = (length * 3 / 2).max(length + 1);
    }
    rates.retain(|rate| rate.is_finite() && *rate > 0.0 && *rate < 1e13);
    Some(rates)
}

/// A small power.
fn power(base: f64, exponent: i32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

/// The best links around the best of those that were tried.
fn climb_from(passages: &[Passage], mut tried: Vec<(f64, Hops)>) -> Option<(f64, Hops)> {
    tried.sort_by(|one, other| other.0.total_cmp(&one.0));
    let near = |one: &Hops, other: &Hops| {
        let close = |one: f64, other: f64| one == other || (one / other - 1.0).abs() < 0.002;
        close(one.rate[0], other.rate[0]) && close(one.rate[1], other.rate[1])
    };
    let mut kept: Vec<Hops> = Vec::new();
    for (_, hops) in &tried {
        if kept.len() < KEPT && !kept.iter().any(|own| near(own, hops)) {
            kept.push(*hops);
        }
    }
    let climbed = kept.into_iter().map(|hops| {
        let hops = climb(passages, hops, &COARSER);
        consider(passages, hops.rate)
    });
    climbed.chain(tried.first().copied()).max_by(|one, other| one.0.total_cmp(&other.0))
}

/// The best links near these, with smaller and smaller steps.
fn climb(passages: &[Passage], hops: Hops, steps: &[f64]) -> Hops {
    let mut best = consider(passages, hops.rate);
    for step in steps {
        for _ in 0..12 {
            let before = best.0;
            for link in 0..2 {
                for factor in [*step, 1.0 / step] {
                    let mut rate = best.1.rate;
                    if rate[link].is_infinite() {
                        continue;
                    }
                    rate[link] *= factor;
                    let other = consider(passages, rate);
                    if other.0 > best.0 {
                        best = other;
                    }
                }
            }
            if best.0 <= before {
                break;
            }
        }
    }
    best.1
}

/// A rate below which the packets that were seen cannot have passed: their bytes in the time from the first to the
/// last, bit/s.
fn slowest(passages: &[Passage], link: usize) -> Option<f64> {
    let (mut bytes, mut first, mut last) = (0_u64, u64::MAX, 0_u64);
    for packet in passages {
        if let Seen::At(at) = packet.seen {
            bytes += u64::from(packet.bytes[link]);
            first = first.min(packet.sent);
            last = last.max(at);
        }
    }
    let time = last.checked_sub(first).filter(|time| *time > 0)?;
    Some(bytes as f64 * 8e9 / time as f64)
}

/// The likelihood of rates with the buffer that suits them.
fn consider(passages: &[Passage], rate: [f64; 2]) -> (f64, Hops) {
    let hops = Hops { rate, buffer: f64::INFINITY };
    let endless = pass(passages, &hops);
    let mut best = (endless.ll, hops);
    if endless.lost >= BUFFER_DROPS {
        for buffer in buffers_for(passages, rate) {
            let hops = Hops { rate, buffer };
            let score = pass(passages, &hops);
            if score.dropped >= BUFFER_DROPS
                && score.ll > endless.ll + BUFFER_GAIN
                && score.ll > best.0
            {
                best = (score.ll, hops);
            }
        }
    }
    best
}

/// Buffers that had room for all packets that arrived: the first if nothing that is missing took room, the second if
/// that did which fits the first.
fn buffers_for(passages: &[Passage], rate: [f64; 2]) -> [f64; 2] {
    let enough = |buffer: f64| {
        // Half a byte more: lengths are whole.
        pass_with(passages, &Hops { rate, buffer }, false, 0.0).most_waiting + 0.5
    };
    let first = enough(0.0);
    [first, enough(first)]
}

/// The range of a rate in which the likelihood is not much smaller.
fn bounds(passages: &[Passage], hops: &Hops, link: usize, score: &Score) -> (f64, f64) {
    let worth = |factor: f64| {
        let mut hops = *hops;
        hops.rate[link] *= factor;
        pass(passages, &hops).ll > score.ll - CONFIDENT
    };
    let end = |up: bool| {
        let is_inside = |factor: f64| worth(if up { factor } else { 1.0 / factor });
        let (mut inside, mut outside) = (1.0_f64, 1.0002_f64);
        while is_inside(outside) {
            inside = outside;
            outside *= outside;
            if outside > 1e5 {
                return f64::INFINITY;
            }
        }
        for _ in 0..6 {
            let middle = (inside * outside).sqrt();
            *(if is_inside(middle) { &mut inside } else { &mut outside }) = middle;
        }
        inside
    };
    let most = end(true);
    let low = hops.rate[link] / end(false);
    (low, if most > 50.0 { f64::INFINITY } else { hops.rate[link] * most })
}
