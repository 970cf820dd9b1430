//! The search for the links that explain what was seen best.

use super::hops::{Hops, Passage, Score, Seen, pass};
use super::passages::Passages;
use crate::stats::quantile;
use std::collections::BTreeMap;

/// Links that were found, and how certain they are.
#[derive(Clone, Debug)]
pub(super) struct Found {
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
pub(super) fn search(observed: Passages, both: bool) -> Option<Found> {
    let Passages { list: mut passages, open } = observed;
    passages.sort_by_key(|packet| packet.sent);
    let arrived = passages.iter().filter(|packet| matches!(packet.seen, Seen::At(_))).count();
    if arrived < 2 {
        return None;
    }
    let hops = coarse(&passages, both)?;
    assign(&mut passages, &open, &hops);
    let mut hops = hops;
    for (step, rounds) in [(1.03, 2), (1.006, 1), (1.001, 1)] {
        for _ in 0..rounds {
            hops = refine(&passages, hops, step, both);
        }
    }
    let score = pass(&passages, &hops, |_, _| {});
    let mut rates = [(hops.rate[0], hops.rate[0]), (hops.rate[1], hops.rate[1])];
    for (link, range) in rates.iter_mut().enumerate().take(if both { 2 } else { 1 }) {
        *range = bounds(&passages, &hops, link, &score);
    }
    Some(Found { hops, score, rates })
}

/// The best of rates over many orders of magnitude.
fn coarse(passages: &[Passage], both: bool) -> Option<Hops> {
    let part = &passages[..passages.len().min(COARSE)];
    let busiest = slowest(part)?;
    let mut best: Option<(f64, Hops)> = None;
    let mut rate = busiest * 0.5;
    // Up to ten thousand times as fast as necessary.
    for _ in 0..130 {
        let seconds: &[f64] =
            if both { &[0.25, 0.5, 1.0, 2.0, 4.0, 16.0] } else { &[f64::INFINITY] };
        for factor in seconds {
            let second = if both { rate * factor } else { f64::INFINITY };
            consider(part, [rate, second], &mut best);
        }
        rate *= 1.075;
    }
    best.map(|(_, hops)| hops)
}

/// A rate below which the packets that were seen cannot have passed: their bytes in the time from the first to the
/// last, bit/s.
fn slowest(passages: &[Passage]) -> Option<f64> {
    let (mut bytes, mut first, mut last) = (0_u64, u64::MAX, 0_u64);
    for packet in passages {
        if let Seen::At(at) = packet.seen {
            bytes += u64::from(packet.bytes[0].max(packet.bytes[1]));
            first = first.min(packet.sent);
            last = last.max(at);
        }
    }
    let time = last.checked_sub(first).filter(|time| *time > 0)?;
    Some(bytes as f64 * 8e9 / time as f64)
}

/// Tries rates with buffers that suit them.
fn consider(passages: &[Passage], rate: [f64; 2], best: &mut Option<(f64, Hops)>) -> f64 {
    let hops = Hops { rate, buffer: f64::INFINITY };
    let endless = pass(passages, &hops, |_, _| {});
    let mut top = (endless.ll, hops);
    if endless.lost >= BUFFER_DROPS {
        let hops = buffer_for(passages, rate);
        let score = pass(passages, &hops, |_, _| {});
        if score.dropped >= BUFFER_DROPS && score.ll > endless.ll + BUFFER_GAIN {
            top = (score.ll, hops);
        }
    }
    if best.as_ref().is_none_or(|(known, _)| top.0 > *known) {
        *best = Some(top);
    }
    top.0
}

/// The smallest buffer that had room for all packets that arrived.
fn buffer_for(passages: &[Passage], rate: [f64; 2]) -> Hops {
    // At first nothing that is missing takes room.
    let mut hops = Hops { rate, buffer: 0.0 };
    for _ in 0..3 {
        let score = pass(passages, &hops, |_, _| {});
        let enough = score.most_waiting;
        // A byte more: lengths are whole.
        if enough <= hops.buffer {
            break;
        }
        hops.buffer = enough + 0.5;
    }
    hops
}

/// The best of rates around the present ones.
fn refine(passages: &[Passage], hops: Hops, step: f64, both: bool) -> Hops {
    let mut best = None;
    consider(passages, hops.rate, &mut best);
    for link in 0..if both { 2 } else { 1 } {
        let centre = best.map_or(hops, |(_, hops)| hops).rate;
        let mut up = 1.0;
        for _ in 0..8 {
            up *= step;
            for factor in [up, 1.0 / up] {
                let mut rate = centre;
                rate[link] *= factor;
                consider(passages, rate, &mut best);
            }
        }
    }
    best.map_or(hops, |(_, hops)| hops)
}

/// The range of a rate in which the likelihood is not much smaller.
fn bounds(passages: &[Passage], hops: &Hops, link: usize, score: &Score) -> (f64, f64) {
    let worth = |factor: f64| {
        let mut hops = *hops;
        hops.rate[link] *= factor;
        pass(passages, &hops, |_, _| {}).ll > score.ll - CONFIDENT
    };
    let end = |up: bool| {
        let (mut inside, mut step) = (1.0_f64, 1.002_f64);
        for _ in 0..14 {
            let factor = inside * step;
            if worth(if up { factor } else { 1.0 / factor }) {
                inside = factor;
                step *= step;
            } else if step > 1.002 {
                step = 1.002;
            } else {
                break;
            }
        }
        inside
    };
    let most = end(true);
    (hops.rate[link] / end(false), if most > 50.0 { f64::INFINITY } else { hops.rate[link] * most })
}

/// Decides which copies of a message arrived where fewer did: those whose predicted times are nearest.
fn assign(passages: &mut [Passage], open: &BTreeMap<usize, Vec<u64>>, hops: &Hops) {
    if open.is_empty() {
        return;
    }
    let mut predicted = vec![None; passages.len()];
    let score = pass(passages, hops, |number, at| predicted[number] = Some(at));
    let mut residuals = score.residuals;
    residuals.sort_unstable_by(f64::total_cmp);
    let delay = quantile(&residuals, 0.5);
    let mut copies: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, packet) in passages.iter().enumerate() {
        if open.contains_key(&packet.group) {
            copies.entry(packet.group).or_default().push(number);
        }
    }
    for (group, arrivals) in open {
        let Some(mut left) = copies.remove(group) else { continue };
        for arrival in arrivals {
            let distance = |number: usize| {
                let expected = predicted[number].map_or(f64::INFINITY, |at| at + delay);
                (expected - *arrival as f64).abs()
            };
            let before = |number: &usize| passages[*number].sent <= *arrival;
            let best = (0..left.len())
                .filter(|place| before(&left[*place]))
                .min_by(|one, other| distance(left[*one]).total_cmp(&distance(left[*other])));
            if let Some(place) = best {
                passages[left.remove(place)].seen = Seen::At(*arrival);
            }
        }
        for number in left {
            passages[number].seen = Seen::Missing;
        }
    }
}
