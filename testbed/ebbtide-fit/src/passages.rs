//! The capture as passages over links: each packet with the instants at which it entered and left.

use super::exchanges::CapturedExchange;
use super::hops::{Passage, Seen};
use super::read::CapturedDatagram;
use super::sides::Sides;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

/// The packets that passed the same links.
#[derive(Debug, Default)]
struct Passages {
    list: Vec<Passage>,
    /// The copies of messages of which fewer were seen to arrive than to leave, with the arrivals.
    open: Vec<(Range<usize>, Vec<u64>)>,
}

impl Passages {
    /// Adds the copies of a message and the arrivals of some of them, both in order.
    fn add(&mut self, copies: impl Iterator<Item = (u64, [u32; 2])>, arrivals: Vec<u64>) {
        let first = self.list.len();
        self.list.extend(copies.map(|(sent, bytes)| Passage { sent, bytes, seen: Seen::Unknown }));
        let own = &mut self.list[first..];
        if !arrivals.is_empty() && arrivals.len() < own.len() {
            self.open.push((first..self.list.len(), arrivals));
            return;
        }
        for (number, packet) in own.iter_mut().enumerate() {
            packet.seen = arrivals.get(number).map_or(Seen::Missing, |at| Seen::At(*at));
        }
    }

    /// Decides which copies of a message arrived where fewer did: those that took about as long as other packets
    /// that arrived at about the same time.
    fn decided(mut self) -> Vec<Passage> {
        let mut known: Vec<(u64, u64)> = Vec::new();
        for packet in &self.list {
            if let Seen::At(at) = packet.seen {
                known.push((at, at.saturating_sub(packet.sent)));
            }
        }
        known.sort_unstable();
        for (copies, arrivals) in self.open {
            let Some(mut left) = (!known.is_empty()).then(|| copies.collect::<Vec<usize>>()) else {
                continue;
            };
            for arrival in arrivals {
                let place = known.partition_point(|(at, _)| *at < arrival);
                let around =
                    place.saturating_sub(NEIGHBOURS)..(place + NEIGHBOURS).min(known.len());
                let mut times: Vec<u64> = known[around].iter().map(|(_, time)| *time).collect();
                times.sort_unstable();
                let usual = times.get(times.len() / 2).copied().unwrap_or(0);
                let distance = |copy: usize| {
                    let sent = self.list[copy].sent;
                    // What was sent later did not arrive then.
                    if sent > arrival { u64::MAX } else { (arrival - sent).abs_diff(usual) }
                };
                let best = (0..left.len()).min_by_key(|place| distance(left[*place]));
                if let Some(best) = best {
                    self.list[left.remove(best)].seen = Seen::At(arrival);
                }
            }
            for copy in left {
                self.list[copy].seen = Seen::Missing;
            }
        }
        self.list
    }
}

/// Arrivals before and after one that show how long packets took then.
const NEIGHBOURS: usize = 3;

/// The packets from the interface `from` to the interface `to`, in one direction.
pub(super) fn one_way(
    all: &[CapturedDatagram],
    sides: &Sides,
    from: usize,
    to: usize,
    outward: bool,
) -> Vec<Passage> {
    type PassageKey = (SocketAddr, SocketAddr, u64);
    let mut messages: Vec<(Vec<usize>, Vec<u64>)> = Vec::new();
    let mut known: BTreeMap<PassageKey, usize> = BTreeMap::new();
    let last = all.last().map_or(0, |datagram| datagram.at);
    for (number, datagram) in all.iter().enumerate() {
        if sides.is_outward(datagram) != outward {
            continue;
        }
        let key = (datagram.from, datagram.to, datagram.hash);
        if datagram.interface == from {
            let place = *known.entry(key).or_insert_with(|| {
                messages.push((Vec::new(), Vec::new()));
                messages.len() - 1
            });
            messages[place].0.push(number);
        } else if datagram.interface == to
            && let Some(place) = known.get(&key)
        {
            messages[*place].1.push(datagram.at);
        }
    }
    // What was sent at the very end may still be on its way.
    let transit = messages.iter().filter(|(copies, seen)| copies.len() == seen.len());
    let longest = transit
        .flat_map(|(copies, seen)| copies.iter().zip(seen))
        .map(|(copy, at)| at.saturating_sub(all[*copy].at))
        .max()
        .unwrap_or(0);
    let mut passages = Passages::default();
    for (copies, mut arrivals) in messages {
        arrivals.truncate(copies.len());
        if arrivals.is_empty() && all[copies[0]].at.saturating_add(longest) > last {
            continue;
        }
        passages.add(copies.iter().map(|copy| (all[*copy].at, [all[*copy].bytes, 0])), arrivals);
    }
    passages.decided()
}

/// The round trips that are seen next to the hosts that begin exchanges: a copy, and its answer.
pub(super) fn round_trips(
    all: &[CapturedDatagram],
    exchanges: &[CapturedExchange],
) -> Vec<Passage> {
    let last = all.last().map_or(0, |datagram| datagram.at);
    let usual = usual_answer(all, exchanges);
    let longest = exchanges
        .iter()
        .filter(|own| own.copies.len() == own.answers.len())
        .flat_map(|own| own.copies.iter().zip(&own.answers))
        .map(|(copy, answer)| all[*answer].at.saturating_sub(all[*copy].at))
        .max()
        .unwrap_or(0);
    let mut passages = Passages::default();
    for exchange in exchanges {
        let arrivals: Vec<u64> =
            exchange.answers.iter().take(exchange.copies.len()).map(|own| all[*own].at).collect();
        if arrivals.is_empty() && all[exchange.copies[0]].at.saturating_add(longest) > last {
            continue;
        }
        let answer = exchange.answers.first().map_or(usual, |own| all[*own].bytes);
        let copies = exchange.copies.iter().map(|own| (all[*own].at, [all[*own].bytes, answer]));
        passages.add(copies, arrivals);
    }
    passages.decided()
}

/// The trips that are seen next to the hosts that answer: an answer, and the next message of the host that got it.
/// They are round trips if those hosts go on at once.
pub(super) fn return_trips(
    all: &[CapturedDatagram],
    exchanges: &[CapturedExchange],
) -> Vec<Passage> {
    let mut of_device: BTreeMap<SocketAddr, Vec<&CapturedExchange>> = BTreeMap::new();
    for exchange in exchanges {
        of_device.entry(exchange.device).or_default().push(exchange);
    }
    let mut passages = Vec::new();
    for own in of_device.values() {
        for (number, exchange) in own.iter().enumerate() {
            let next = own.get(number + 1).map(|next| &all[next.copies[0]]);
            for answer in &exchange.answers {
                let answer = &all[*answer];
                // Only one answer can have caused the next message.
                let is_sole = exchange.answers.len() == 1;
                let seen = match next {
                    Some(next) if is_sole && next.at > answer.at => Seen::At(next.at),
                    _ => Seen::Unknown,
                };
                let bytes = [answer.bytes, next.map_or(all[exchange.copies[0]].bytes, |n| n.bytes)];
                passages.push(Passage { sent: answer.at, bytes, seen });
            }
        }
    }
    passages
}

/// The length of most answers in bytes.
fn usual_answer(all: &[CapturedDatagram], exchanges: &[CapturedExchange]) -> u32 {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for answer in exchanges.iter().flat_map(|own| &own.answers) {
        *counts.entry(all[*answer].bytes).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(bytes, _)| bytes)
}
