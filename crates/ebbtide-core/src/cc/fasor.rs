//! The FASOR family: `fasor`, `fasor-k4`, `fasor-token`, `fasor-option`, `slow`, `fast-slow`
//! (Thesis19 section 7, draft-ietf-core-fasor-02).

use super::estimator::{Estimator, Gains};
use super::{
    Admission, CongestionControl, Context, Load, Marking, Metrics, Outcome, OutgoingMessage,
    Sample, Slot, Transmission, admit_non_at_interval,
};
use crate::time::Micros;

/// FASOR: a fast timeout for losses, a slow one for queues, and a state that selects which one
/// comes first.
///
/// The *fast RTO* is RFC 6298's from unambiguous samples, without the floor of 1 s. The *slow RTO*
/// is 1.5 times the whole duration of the last exchange with retransmissions, and is never
/// smoothed. With f and s as the two after dithering, the timeouts of one exchange are
///
/// ```text
/// FAST            f, 2f, 4f, 8f, ...
/// FAST_SLOW_FAST  f, max(s, 2f), 2f, 4f, ...
/// SLOW_FAST       s, f, 2f, 4f, ...
/// ```
///
/// An exchange without a retransmission leads to FAST. An exchange with one leads from FAST to
/// FAST_SLOW_FAST and from there to SLOW_FAST. `fast-slow` and `slow` are the development variants
/// of Thesis19 section 7.1, in which the slow value backs off.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Fasor {
    pub(super) fast: Estimator,
    /// The slow RTO; zero before the first exchange with a retransmission.
    pub(super) slow: Micros,
    /// The previous sample; zero before the first. With marks, the base of a series is at least
    /// this (fasor-02).
    pub(super) previous: Micros,
    state: FasorState,
    series: Series,
    pub(super) marking: Marking,
    /// The divisor of the first sample that gives the first variation: 2 or 2K = 8.
    first_divisor: u8,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
enum FasorState {
    Fast,
    FastSlow,
    Slow,
}

impl FasorState {
    const fn from_tag(tag: u8) -> Self {
        match tag {
            0 => Self::Fast,
            1 => Self::FastSlow,
            _ => Self::Slow,
        }
    }
}

/// The order of a variant's timeouts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Series {
    /// The fast timeout backs off after the slow one (`fasor` and its marked variants).
    SlowThenFast,
    /// The slow timeout itself backs off, after one fast try (`fast-slow`).
    FastThenSlow,
    /// The slow timeout itself backs off from the start (`slow`).
    Slow,
}

/// K of the fast RTO.
const K: u32 = 4;

impl Fasor {
    const fn new(series: Series, marking: Marking, first_divisor: u8) -> Self {
        Self {
            fast: Estimator::new(),
            slow: Micros::ZERO,
            previous: Micros::ZERO,
            state: FasorState::Fast,
            series,
            marking,
            first_divisor,
        }
    }

    /// `fasor` (FastSlowFast), with or without marks: the first sample R gives an RTO of 1.5 R.
    #[must_use]
    pub const fn fast_slow_fast(marking: Marking) -> Self {
        Self::new(Series::SlowThenFast, marking, 2 * K as u8)
    }

    /// `fasor-k4`: like `fasor`, but the first sample R gives an RTO of 3 R, as in RFC 6298.
    #[must_use]
    pub const fn k4() -> Self {
        Self::new(Series::SlowThenFast, Marking::None, 2)
    }

    /// `fast-slow`: one fast try, then the slow RTO and its backoff.
    #[must_use]
    pub const fn fast_slow() -> Self {
        Self::new(Series::FastThenSlow, Marking::None, 2)
    }

    /// `slow`: the slow RTO and its backoff after any exchange with a retransmission.
    #[must_use]
    pub const fn slow() -> Self {
        Self::new(Series::Slow, Marking::None, 2)
    }

    fn fast_rto(&self, cx: &Context<'_>) -> Micros {
        let measured = self.fast.rto(K, cx.settings.granularity);
        let rto = measured.unwrap_or_else(|| cx.settings.initial_rto(cx.params));
        // fasor-02 section 4.4: with marks, a sample above the estimate raises the base of the
        // next series.
        if self.marking == Marking::None { rto } else { rto.max(self.previous) }
    }

    /// Spreads `rto` over `[RTO + SRTT/4, RTO + SRTT]`. Before any sample, a third of the initial
    /// RTO takes the place of SRTT.
    fn dithered(&self, rto: Micros, cx: &mut Context<'_>) -> Micros {
        let srtt =
            self.fast.srtt().unwrap_or_else(|| cx.settings.initial_rto(cx.params).scale(1, 3));
        cx.uniform(rto.saturating_add(srtt.scale(1, 4)), rto.saturating_add(srtt))
    }

    fn next_state(&self, retransmissions: u8) -> FasorState {
        match (retransmissions, self.series, self.state) {
            (0, ..) => FasorState::Fast,
            (_, Series::Slow, _) => FasorState::Slow,
            (_, _, FasorState::Fast) => FasorState::FastSlow,
            _ => FasorState::Slow,
        }
    }
}

impl CongestionControl for Fasor {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        admit_non_at_interval(message, load, self.fast_rto(cx), cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        let ordinal = transmission.ordinal;
        // The base is zero if another control began this exchange and this one took over.
        if ordinal == 0 || slot.base == Micros::ZERO {
            slot.tag = self.state as u8;
            let fast = self.fast_rto(cx);
            slot.base = self.dithered(fast, cx);
        }
        let fast = |doublings: u8| {
            slot.base.scale(1u32.checked_shl(doublings.into()).unwrap_or(u32::MAX), 1)
        };
        // An exchange that began without a slow RTO cannot use one, so its state is FAST
        // throughout.
        let state = if self.slow == Micros::ZERO {
            FasorState::Fast
        } else {
            FasorState::from_tag(slot.tag)
        };
        let timeout = match (self.series, state, ordinal) {
            (_, FasorState::Fast, n) => fast(n),
            (_, FasorState::FastSlow, 0) => fast(0),
            (Series::SlowThenFast, FasorState::FastSlow, 1) => {
                self.dithered(self.slow, cx).max(fast(1))
            }
            (Series::SlowThenFast, FasorState::Slow, 0) => self.dithered(self.slow, cx),
            (Series::SlowThenFast, _, n) => fast(n - 1),
            (_, FasorState::FastSlow, 1) | (_, FasorState::Slow, 0) => self.dithered(self.slow, cx),
            _ => slot.armed.scale(2, 1),
        };
        // The base comes from measured round trips, or from the initial RTO.
        cx.bounded(timeout, slot.base)
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, _cx: &mut Context<'_>) {
        let retransmissions = sample.retransmissions();
        let unambiguous = match (self.marking, sample.answered) {
            (Marking::Token | Marking::CopyToken | Marking::Option, Some(answered)) => {
                Some(answered.since)
            }
            _ if retransmissions == 0 => Some(sample.since_first),
            _ => None,
        };
        if let Some(rtt) = unambiguous {
            self.fast.update(rtt, Gains::RFC6298, u32::from(self.first_divisor));
            self.previous = rtt;
        }
        if retransmissions > 0 {
            // 1.5 times the time from the original transmission to the first acknowledgement.
            self.slow = sample.since_first.scale(3, 2).max(Micros::new(1));
        }
    }

    fn on_close(
        &mut self,
        _slot: &Slot,
        outcome: Outcome,
        retransmissions: u8,
        _cx: &mut Context<'_>,
    ) {
        if outcome != Outcome::Cancelled || retransmissions > 0 {
            self.state = self.next_state(retransmissions);
        }
    }

    fn marking(&self) -> Marking {
        self.marking
    }

    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        match self.state {
            FasorState::Slow if self.slow > Micros::ZERO => self.slow,
            _ => self.fast_rto(cx),
        }
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            srtt: self.fast.srtt(),
            rttvar: self.fast.rttvar(),
            rto: self.fast.rto(K, Micros::ZERO),
            second: (self.slow > Micros::ZERO).then_some(self.slow),
            interval: None,
            state: match (self.series, self.state) {
                (_, FasorState::Fast) => "FAST",
                (Series::SlowThenFast, FasorState::FastSlow) => "FAST_SLOW_FAST",
                (Series::SlowThenFast, FasorState::Slow) => "SLOW_FAST",
                (_, FasorState::FastSlow) => "FAST_SLOW",
                (_, FasorState::Slow) => "SLOW",
            },
        }
    }
}
