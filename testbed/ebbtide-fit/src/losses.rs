//! Whether packets are lost one by one or in bursts.

use super::hops::Score;

/// A bad state in which packets are lost, in the terms of a scenario's `per-packet` errors; in the good one none is.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct LossBursts {
    /// The share that is lost in the bad state.
    pub(super) bad: f64,
    /// The mean stay in it, packets.
    pub(super) packets: f64,
}

/// The bursts in which two directions lose packets; `None` if their losses look independent.
///
/// A chain of two states has covariances between the losses of packets `k` apart that fall as a power of `k`. With
/// no losses in the good state, the average and the first two covariances give all of it.
pub(super) fn bursts(scores: [&Score; 2]) -> Option<LossBursts> {
    let average = |lag: usize| {
        let (mut sum, mut count) = (0_u32, 0_u32);
        for score in scores {
            let fates = &score.fates;
            for (own, later) in fates.iter().zip(fates.iter().skip(lag)) {
                sum += u32::from(*own && *later);
                count += 1;
            }
        }
        (f64::from(sum) / f64::from(count.max(1)), f64::from(count))
    };
    let (share, count) = average(0);
    if count < 100.0 || share <= 0.0 || share >= 0.9 {
        return None;
    }
    let (first, second) = (average(1).0 - share * share, average(2).0 - share * share);
    // Three standard errors of the covariance of independent losses.
    if first < 3.0 * share * (1.0 - share) / count.sqrt() {
        return None;
    }
    let stays = (second / first).clamp(0.05, 0.95);
    let bad = (share + first / (share * stays)).clamp(1.05 * share, 1.0);
    let share_bad = share / bad;
    let recovers = ((1.0 - share_bad) * (1.0 - stays)).clamp(0.001, 1.0);
    Some(LossBursts { bad, packets: 1.0 / recovers })
}
