//! Properties of a rate over time.

use ebbtide_sim::result::FlowSeries;

/// The ratio from which on two rates count as the same.
const SAME: f64 = 0.99;

/// A fall of the rate.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct RateFall {
    /// The time, s.
    pub(super) at: f64,
    /// The rate before it, messages/s.
    pub(super) before: f64,
    /// The rate right after it, messages/s.
    pub(super) after: f64,
    /// The time until the rate was restored, s; `None` if it never was.
    pub(super) restored: Option<f64>,
}

/// The rate in force when the first message left, messages/s.
pub(super) fn initial(flow: &FlowSeries) -> Option<f64> {
    let begins = flow.begins?;
    let before = flow.rate.iter().take_while(|(at, _)| *at <= begins);
    before.last().map(|(_, rate)| *rate)
}

/// The time from the first message of a flow until it reached a rate, s.
pub(super) fn time_to(flow: &FlowSeries, rate: f64) -> Option<f64> {
    let begins = flow.begins?;
    let reached = flow.rate.iter().find(|(at, own)| *at >= begins && *own >= SAME * rate);
    reached.map(|(at, _)| at - begins)
}

/// The first fall of the rate.
pub(super) fn fall(flow: &FlowSeries) -> Option<RateFall> {
    let begins = flow.begins?;
    let place = flow.rate.windows(2).position(|pair| {
        let [(_, before), (at, after)] = pair else { return false };
        *at > begins && *after < SAME * before
    })?;
    let ((_, before), (at, after)) = (flow.rate[place], flow.rate[place + 1]);
    let later = &flow.rate[place + 1..];
    let restored = later.iter().find(|(_, rate)| *rate >= SAME * before).map(|(back, _)| back - at);
    Some(RateFall { at, before, after, restored })
}

/// The lowest rate after a fall, and the steps by which it rises from there to the rate before the
/// fall, messages/s.
pub(super) fn rise(flow: &FlowSeries, fall: &RateFall) -> Option<(f64, Vec<f64>)> {
    let after: Vec<f64> =
        flow.rate.iter().filter(|(at, _)| *at >= fall.at).map(|(_, rate)| *rate).collect();
    let lowest = after.iter().copied().fold(f64::INFINITY, f64::min);
    let from = after.iter().rposition(|rate| *rate == lowest)?;
    // The limit may cut off the last step.
    let rising = after[from..].iter().take_while(|rate| **rate < SAME * fall.before);
    let rising: Vec<f64> = rising.copied().collect();
    Some((lowest, rising.windows(2).map(|pair| pair[1] - pair[0]).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(rate: &[(f64, f64)]) -> FlowSeries {
        FlowSeries { begins: Some(1.0), rate: rate.to_vec(), ..FlowSeries::default() }
    }

    #[test]
    fn a_fall_is_found_with_what_came_of_it() {
        let restored = flow(&[(0.0, 9.0), (1.0, 8.0), (5.0, 4.0), (5.5, 8.0)]);
        let found = RateFall { at: 5.0, before: 8.0, after: 4.0, restored: Some(0.5) };
        assert_eq!((initial(&restored), fall(&restored)), (Some(8.0), Some(found)));
        let kept = flow(&[(1.0, 8.0), (5.0, 4.0), (5.5, 2.0), (6.0, 3.0), (6.5, 4.0)]);
        let found = fall(&kept).unwrap();
        assert_eq!((found.restored, rise(&kept, &found)), (None, Some((2.0, vec![1.0, 1.0]))));
        assert_eq!(time_to(&kept, 8.0), Some(0.0));
    }

    #[test]
    fn a_steady_rate_does_not_fall() {
        assert_eq!(fall(&flow(&[(1.0, 8.0), (2.0, 9.0)])), None);
        assert_eq!(fall(&FlowSeries::default()), None);
    }
}
