//! The links between the two sides: what is known of each from where the capture was taken.

use super::exchanges::CapturedExchange;
use super::hops::settle;
use super::passages::{one_way, return_trips, round_trips};
use super::read::CapturedDatagram;
use super::search::{Found, search};
use super::sides::Sides;
use ebbtide_sim::stats::quantile;

/// One direction, or the way there and back if only that can be seen.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    pub(super) found: Found,
    /// The shortest, the mean and the longest delay without queues and transmission, ns.
    pub(super) delay: (f64, f64, f64),
    /// Whether some of the times include waits of hosts, such as timeouts.
    has_pauses: bool,
}

impl Leg {
    fn new(found: Found, has_pauses: bool) -> Self {
        // Small errors of the rate add up in a queue, and do not concern packets that found none.
        let score = &found.score;
        let times = if score.idle.len() < IDLE { &score.residuals } else { &score.idle };
        let delay = delay_of(times, has_pauses);
        Self { found, delay, has_pauses }
    }

    /// The leg with other rates, which leave other delays.
    pub(super) fn at_rate(&self, rate: [f64; 2]) -> Self {
        let mut found = self.found.clone();
        found.hops.rate = rate;
        found.score = settle(&found.passages, &found.hops);
        Self::new(found, self.has_pauses)
    }
}

/// So many packets without a queue show the delay.
const IDLE: usize = 20;

/// The shortest, the mean and the longest of the times that links leave unexplained, without the outliers of busy
/// hosts.
fn delay_of(residuals: &[f64], has_pauses: bool) -> (f64, f64, f64) {
    let mut sorted = residuals.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mean = sorted.iter().sum::<f64>() / sorted.len().max(1) as f64;
    if has_pauses {
        return (quantile(&sorted, 0.05), quantile(&sorted, 0.2), quantile(&sorted, 0.4));
    }
    (quantile(&sorted, 0.005), mean, quantile(&sorted, 0.995))
}

/// The known links. The first direction is that of the messages that open exchanges.
#[derive(Debug)]
pub(super) enum FittedPath {
    /// Both directions by themselves.
    Both(Box<[Leg; 2]>),
    /// There and back: the first hop is the way there.
    RoundTrip(Box<Leg>),
    /// Back and there again, seen from the hosts that answer.
    ReturnTrip(Box<Leg>),
    /// Nothing but what the traffic itself needs.
    Unknown,
}

/// Clocks and busy hosts disturb times by this much, ns.
const TOLERANCE_NS: f64 = 1e6;

impl FittedPath {
    /// Whether one link in each direction explains the times. A model that suits leaves no times below zero, unless
    /// the clocks of the two places differ, which makes all times of a direction smaller.
    pub(super) fn is_suited(&self) -> bool {
        let Self::Both(legs) = self else { return true };
        legs.iter().all(|leg| leg.delay.0 > -TOLERANCE_NS || leg.delay.2 <= 0.0)
    }

    /// `are_back_to_back`: whether hosts send the next message as soon as the one before is answered.
    pub(super) fn estimated(
        all: &[CapturedDatagram],
        sides: &Sides,
        exchanges: &[CapturedExchange],
        are_back_to_back: bool,
    ) -> Self {
        let leg = |passages, both| search(passages, both).map(|found| Leg::new(found, false));
        if let (Some(near), Some(far)) = (sides.near, sides.far) {
            let out = leg(one_way(all, sides, near, far, true), false);
            let back = leg(one_way(all, sides, far, near, false), false);
            if let (Some(out), Some(back)) = (out, back) {
                return Self::Both(Box::new([out, back]));
            }
        }
        if sides.near.is_some() {
            return leg(round_trips(all, exchanges), true)
                .map_or(Self::Unknown, |leg| Self::RoundTrip(Box::new(leg)));
        }
        if are_back_to_back {
            let found = search(return_trips(all, exchanges), true);
            return found
                .map_or(Self::Unknown, |found| Self::ReturnTrip(Box::new(Leg::new(found, true))));
        }
        Self::Unknown
    }
}
