//! The model that is fitted: one or two links in a row, each a buffer with tail drop, a rate and a constant delay,
//! through which packets pass in their order.

use super::logarithm::ln;

/// A packet on its way: when it entered the first link, and when it was seen behind the last.
#[derive(Copy, Clone, Debug)]
pub(super) struct Passage {
    /// Nanoseconds.
    pub(super) sent: u64,
    /// Its bytes on the first link and, if there are two, those of its answer on the second.
    pub(super) bytes: [u32; 2],
    pub(super) seen: Seen,
}

/// The fate of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was seen behind the last link, at this instant.
    At(u64),
    /// It was not.
    Missing,
    /// It cannot be told.
    Unknown,
}

/// The links' parameters.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Hops {
    /// Bits per second; infinite for a link that takes no time.
    pub(super) rate: [f64; 2],
    /// Bytes that may wait before each; infinite for no limit.
    pub(super) buffer: f64,
}

/// How well links explain what was seen.
#[derive(Clone, Debug)]
pub(super) struct Score {
    /// The logarithm of the likelihood.
    pub(super) ll: f64,
    /// Packets that arrived although the buffer had no room.
    pub(super) contradictions: f64,
    /// Packets that were seen behind the links.
    pub(super) arrived: u32,
    /// Packets that the buffer had no room for, and that did not arrive.
    pub(super) dropped: u32,
    /// Packets that there was room for, and that did not arrive.
    pub(super) lost: u32,
    /// The largest number of bytes that waited with a packet that arrived.
    pub(super) most_waiting: f64,
    /// The smallest number of bytes that would have waited with a packet that found no room.
    pub(super) least_dropped: f64,
    /// Times that packets took beyond those in queues and on links, ns, in the order of the packets.
    pub(super) residuals: Vec<f64>,
    /// `residuals` of the packets that found every link idle.
    pub(super) idle: Vec<f64>,
    /// Whether each packet that there was room for, and of which it is known, was lost, in their order.
    pub(super) fates: Vec<bool>,
}

/// The times and lengths of the packets that wait before a link.
#[derive(Default)]
struct HopQueue {
    waiting: std::collections::VecDeque<(f64, f64)>,
    bytes: f64,
    free_at: f64,
}

impl HopQueue {
    /// Bytes that wait, and whether the link is idle.
    fn look(&mut self, now: f64) -> (f64, bool) {
        while let Some((start, bytes)) = self.waiting.front().copied()
            && start <= now
        {
            self.waiting.pop_front();
            self.bytes -= bytes;
        }
        (self.bytes, self.free_at <= now)
    }

    /// Forgets bytes that came last: the queue was shorter than assumed.
    fn shrink(&mut self, mut excess: f64, rate: f64) {
        while excess > 0.0
            && let Some((_, bytes)) = self.waiting.back_mut()
        {
            let less = bytes.min(excess);
            *bytes -= less;
            self.bytes -= less;
            self.free_at -= less * 8e9 / rate;
            excess -= less;
            if *bytes <= 0.0 {
                self.waiting.pop_back();
            }
        }
    }

    /// Takes a packet; returns when it has left.
    fn take(&mut self, now: f64, bytes: f64, rate: f64) -> f64 {
        let start = self.free_at.max(now);
        if start > now {
            self.waiting.push_back((start, bytes));
            self.bytes += bytes;
        }
        self.free_at = start + bytes * 8e9 / rate;
        self.free_at
    }
}

/// A time below which differences are noise of clocks, ns.
const NOISE: f64 = 20_000.0;

/// The fate that links have for each packet, compared with what was seen.
pub(super) fn pass(passages: &[Passage], hops: &Hops) -> Score {
    pass_with(passages, hops, true, 0.0)
}

/// Like [`pass`], once the links are known. Delays before a link vary, so a missing packet may have met one packet
/// more than the model has: it was dropped, not lost, if the buffer had no room for another one.
pub(super) fn settle(passages: &[Passage], hops: &Hops) -> Score {
    let known = pass_with(passages, hops, true, 1.0);
    let Score { lost, dropped, fates, .. } = known;
    Score { lost, dropped, fates, ..pass(passages, hops) }
}

/// Like [`pass`]. If `is_strict`, a packet that arrives although the buffer is full shows that the queue was shorter
/// than assumed; else that packet has room. A missing packet was
/// dropped if `margin` more of its length would not have fitted.
pub(super) fn pass_with(passages: &[Passage], hops: &Hops, is_strict: bool, margin: f64) -> Score {
    let origin = passages.first().map_or(0, |first| first.sent);
    let mut queues = [HopQueue::default(), HopQueue::default()];
    let mut score = Score {
        ll: 0.0,
        contradictions: 0.0,
        arrived: 0,
        dropped: 0,
        lost: 0,
        most_waiting: 0.0,
        least_dropped: f64::INFINITY,
        residuals: Vec::with_capacity(passages.len()),
        idle: Vec::new(),
        fates: Vec::with_capacity(passages.len()),
    };
    for packet in passages {
        let mut now = packet.sent.saturating_sub(origin) as f64;
        let mut has_waited = false;
        let mut is_out = false;
        for ((queue, rate), bytes) in queues.iter_mut().zip(hops.rate).zip(packet.bytes) {
            if rate.is_infinite() {
                continue;
            }
            let bytes = f64::from(bytes);
            let (waiting, is_idle) = queue.look(now);
            let needed = waiting + bytes;
            let excess = if is_idle { f64::NEG_INFINITY } else { needed - hops.buffer };
            let least = if packet.seen == Seen::Missing { -margin * bytes } else { 0.0 };
            if excess > least {
                match packet.seen {
                    Seen::At(_) => {
                        score.contradictions += (excess / (4.0 * bytes.max(1.0))).min(1.0);
                        if is_strict {
                            queue.shrink(excess, rate);
                        }
                    }
                    Seen::Missing => {
                        if excess > 0.0 {
                            score.least_dropped = score.least_dropped.min(needed);
                        }
                        is_out = true;
                    }
                    Seen::Unknown => is_out = true,
                }
            }
            if is_out {
                break;
            }
            if !is_idle && matches!(packet.seen, Seen::At(_)) {
                score.most_waiting = score.most_waiting.max(needed);
            }
            has_waited |= !is_idle;
            now = queue.take(now, bytes, rate);
        }
        match packet.seen {
            _ if is_out => score.dropped += u32::from(packet.seen == Seen::Missing),
            Seen::At(at) => {
                score.arrived += 1;
                score.fates.push(false);
                let residual = at as f64 - origin as f64 - now;
                score.residuals.push(residual);
                if !has_waited {
                    score.idle.push(residual);
                }
            }
            Seen::Missing => {
                score.fates.push(true);
                score.lost += 1;
            }
            Seen::Unknown => {}
        }
    }
    score.ll = likelihood(&mut score.residuals.clone(), &score);
    score
}

/// The logarithm of the likelihood: times around their median with normal tails, of which outliers beyond five mean
/// deviations weigh no more than those, and independent losses.
fn likelihood(residuals: &mut [f64], score: &Score) -> f64 {
    let arrived = f64::from(score.arrived);
    if residuals.is_empty() {
        return f64::NEG_INFINITY;
    }
    let middle = residuals.len() / 2;
    let (_, median, _) = residuals.select_nth_unstable_by(middle, f64::total_cmp);
    let median = *median;
    let mean = residuals.iter().map(|value| (value - median).abs()).sum::<f64>() / arrived;
    let most = 5.0 * mean;
    let square = |value: &f64| {
        let off = (value - median).abs().min(most);
        off * off
    };
    let variance = residuals.iter().map(square).sum::<f64>() / arrived;
    let share = (f64::from(score.lost) + 0.5) / (f64::from(score.lost) + arrived + 1.0);
    let times = -0.5 * arrived * ln((variance + NOISE * NOISE) / (NOISE * NOISE));
    let losses = f64::from(score.lost) * ln(share) + arrived * ln(1.0 - share);
    // A packet that arrives although the buffer is full refutes the buffer.
    times + losses - 20.0 * score.contradictions
}
