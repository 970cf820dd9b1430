//! Saturation throughput of unslotted IEEE 802.15.4 CSMA/CA in one hop, by a fixed point.
//!
//! In the manner of Bianchi (Performance Analysis of the IEEE 802.11 Distributed Coordination
//! Function, 2000), carried over to sensing that is unslotted and depends on what was sensed before
//! (Lauwens, Scheers, Van de Capelle: Performance analysis of unslotted CSMA/CA in wireless
//! networks, 2010): the channel is a renewal process that starts anew whenever it falls idle, and
//! stations are independent of each other given that. One approximation is made, Bianchi's: at such
//! an instant, a station that has not just transmitted is in a state drawn from one distribution
//! common to all of them, whatever the others are in.
//!
//! Further assumptions: frames are not acknowledged, all of the same length, none is lost but in a
//! collision, and everybody hears everybody. Time is in steps of 4 symbols, of which all durations
//! are multiples: nothing is rounded.
//!
//! A *cycle* starts when the channel falls idle. Let `d` be the steps from there to the start of a
//! station's next channel assessment. The first assessment, at `t`, finds the channel idle, and so
//! do all that start before its transmission can be heard (8 + 12 symbols later, and 8 symbols are
//! needed to hear it): those with `d` from `t` to `t + 3`. They all transmit; one alone succeeds. All
//! later ones until the end of the transmission find the channel busy and back off further.

#![expect(clippy::disallowed_methods, reason = "a closed form to compare with, not a result")]

/// Steps that are looked at: more than the longest frame and then the longest backoff (31 units).
const HORIZON: usize = 256;
/// BE by the number of assessments that found the channel busy.
const EXPONENTS: [u32; 5] = [3, 4, 5, 5, 5];
/// aUnitBackoffPeriod, the assessment, assessment and turnaround, the long interframe spacing.
const UNIT: usize = 5;
const ASSESSMENT: usize = 2;
const BEFORE_FRAME: usize = 5;
const SPACING: usize = 10;
/// Assessments that start so much later than the first are too late not to notice.
const VULNERABLE: usize = 4;
/// By how much two colliding transmissions are out of step, on average.
const OUT_OF_STEP: usize = 2;

/// The chance of each `d`, one row per stage of backoff.
type Waits = [[f64; HORIZON]; 5];

/// Frames per second that get through.
pub(crate) fn throughput(stations: usize, frame_bytes: usize) -> f64 {
    const STEPS_PER_SECOND: f64 = 15_625.0;
    // Preamble included; two symbols a byte.
    let airtime = (frame_bytes + 6) / 2;
    assert_eq!(frame_bytes % 2, 0, "a frame is a whole number of steps");
    if stations == 1 {
        let cycle = 3.5 * UNIT as f64 + (BEFORE_FRAME + airtime + SPACING) as f64;
        return STEPS_PER_SECOND / cycle;
    }
    // After a success its sender is fresh, after a collision several are, out of step.
    let fresh = [fresh(0..1), fresh(0..3)];
    let mut waits: Waits = [[0.0; HORIZON]; 5];
    waits[1][..100].fill(0.01);
    let mut starters = vec![0.0; stations + 1];
    starters[1] = 1.0;
    let mut rate = 0.0;
    for _ in 0..200 {
        let cycle = cycle(stations, &fresh, &waits, &starters);
        let collided = 1.0 - cycle.starters[1];
        let length =
            cycle.mean_idle + (BEFORE_FRAME + airtime) as f64 + OUT_OF_STEP as f64 * collided;
        let next = cycle.starters[1] / length;
        let busy = [BEFORE_FRAME + airtime, BEFORE_FRAME + airtime + OUT_OF_STEP];
        waits = after(cycle.left, busy);
        starters = cycle.starters;
        if (next - rate).abs() < 1e-7 {
            break;
        }
        rate = next;
    }
    rate * STEPS_PER_SECOND
}

/// The waits of a station that has just transmitted, out of step by one of `offsets`.
fn fresh(offsets: std::ops::Range<usize>) -> [f64; HORIZON] {
    let mut waits = [0.0; HORIZON];
    let share = 1.0 / (8 * offsets.len()) as f64;
    for offset in offsets {
        (0..8).for_each(|units| waits[SPACING + UNIT * units - offset] += share);
    }
    waits
}

struct Cycle {
    /// The chance that so many transmit.
    starters: Vec<f64>,
    /// Steps until the first assessment.
    mean_idle: f64,
    /// The waits of those who do not transmit, from the first assessment on, after one transmission
    /// and after several.
    left: [Waits; 2],
}

/// One cycle, given who transmitted in the last one.
fn cycle(stations: usize, fresh: &[[f64; HORIZON]; 2], waits: &Waits, before: &[f64]) -> Cycle {
    let mut all = [0.0; HORIZON];
    waits.iter().for_each(|stage| stage.iter().zip(&mut all).for_each(|(wait, sum)| *sum += wait));
    let fresh_tail = fresh.map(|waits| tail(&waits));
    let other_tail = tail(&all);
    let mut starters = vec![0.0; stations + 1];
    let (mut mean_idle, mut total) = (0.0, 0.0);
    let mut left = [[[0.0; HORIZON]; 5]; 2];
    for t in 0..HORIZON - VULNERABLE {
        // How many of the fresh and of the others remain, per chance of remaining.
        let mut weights = [[[0.0; 2]; 2]; 2];
        for (own, chance) in before.iter().enumerate().filter(|(_, chance)| **chance > 1e-10) {
            let kind = usize::from(own > 1);
            let (f, o) = (&fresh_tail[kind], &other_tail);
            let (late_f, late_o) = (f[t + VULNERABLE], o[t + VULNERABLE]);
            if f[t].powi(own as i32) * o[t].powi((stations - own) as i32) < 1e-12 {
                continue;
            }
            let window = |from: usize, i: usize, j: usize| {
                (f[from] - late_f).powi(i as i32) * (o[from] - late_o).powi(j as i32)
            };
            for i in 0..=own {
                for j in usize::from(i == 0)..=stations - own {
                    let (rest_f, rest_o) = (own - i, stations - own - j);
                    // In the window, and not all of them after its first step.
                    let first = window(t, i, j) - window(t + 1, i, j);
                    let others = late_f.powi(rest_f as i32) * late_o.powi(rest_o as i32);
                    let ways = choose(own, i) * choose(stations - own, j);
                    let chance = chance * ways * first * others;
                    if chance < 1e-15 {
                        continue;
                    }
                    starters[i + j] += chance;
                    mean_idle += chance * t as f64;
                    total += chance;
                    let several = usize::from(i + j > 1);
                    if rest_f > 0 {
                        weights[several][0][kind] += chance * rest_f as f64 / late_f;
                    }
                    if rest_o > 0 {
                        weights[several][1][0] += chance * rest_o as f64 / late_o;
                    }
                }
            }
        }
        for (left, [own, other]) in left.iter_mut().zip(weights) {
            if own == [0.0; 2] && other[0] == 0.0 {
                continue;
            }
            for d in t + VULNERABLE..HORIZON {
                left[0][d - t] += own[0] * fresh[0][d] + own[1] * fresh[1][d];
                for stage in 0..5 {
                    left[stage][d - t] += other[0] * waits[stage][d];
                }
            }
        }
    }
    starters.iter_mut().for_each(|chance| *chance /= total);
    Cycle { starters, mean_idle: mean_idle / total, left }
}

/// Those who assess while the channel is busy back off, at the fifth time with a new frame; what is
/// left at the end is where the next cycle starts.
fn after(mut left: [Waits; 2], busy: [usize; 2]) -> Waits {
    let mut next = [[0.0; HORIZON]; 5];
    let mut total = 0.0;
    for (waits, end) in left.iter_mut().zip(busy) {
        for d in 0..end {
            for stage in 0..5 {
                let chance = waits[stage][d];
                let stage = (stage + 1) % 5;
                let units = 1 << EXPONENTS[stage];
                for unit in 0..units {
                    let at = d + ASSESSMENT + UNIT * unit;
                    if at < HORIZON {
                        waits[stage][at] += chance / units as f64;
                    }
                }
            }
        }
        for (stage, row) in waits.iter().enumerate() {
            for d in end..HORIZON {
                next[stage][d - end] += row[d];
                total += row[d];
            }
        }
    }
    next.iter_mut().flatten().for_each(|chance| *chance /= total);
    next
}

/// The chance of at least so many steps.
fn tail(waits: &[f64; HORIZON]) -> [f64; HORIZON + 1] {
    let mut tail = [0.0; HORIZON + 1];
    for d in (0..HORIZON).rev() {
        tail[d] = tail[d + 1] + waits[d];
    }
    tail
}

fn choose(n: usize, k: usize) -> f64 {
    (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}
