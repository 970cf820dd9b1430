//! `peak-hopper`, the Peak-Hopper RTO over UDP (Ekstrom and Ludwig, "The Peak-Hopper: A New
//! End-to-End Retransmission Timer for Reliable Unicast Transport", INFOCOM 2004).

use super::karn::Karn;
use super::{
    Admission, CongestionControl, Context, Load, Metrics, Outcome, OutgoingMessage, Sample, Slot,
    Transmission, admit_non_at_interval,
};
use crate::time::Micros;

/// A timeout that hops up when the round trip rises and decays slowly after a peak.
///
/// Two histories compete, and the larger one is used. The long history is the previous RTO, faded
/// by D = 1 - 1/F with F = 24 per sample. The short history is the larger of the last two round
/// trips times 1 + B; B follows twice the relative rise of the round trip, is at most 1, and fades
/// by D as well. The RTO is at least the last round trip plus two clock ticks. Samples obey Karn's
/// algorithm, and the backed-off timeout is kept until the next sample, as in TCP.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PeakHopper {
    rto: Micros,
    previous: Micros,
    karn: Karn,
    /// B in thousandths.
    boost_permille: u16,
}

/// The fading factor D as a fraction.
const FADE: (u32, u32) = (23, 24);
/// The largest B, in thousandths.
const MAX_BOOST: u64 = 1000;

impl PeakHopper {
    /// Creates a control without a sample.
    #[must_use]
    pub const fn new() -> Self {
        Self { rto: Micros::ZERO, previous: Micros::ZERO, karn: Karn::new(), boost_permille: 0 }
    }

    fn update(&mut self, sample: Micros, cx: &Context<'_>) {
        let sample = sample.max(Micros::new(1));
        let previous = if self.previous == Micros::ZERO { sample } else { self.previous };
        let rise = sample.saturating_sub(previous).as_micros() * 1000 / previous.as_micros().max(1);
        let faded = u64::from(self.boost_permille) * u64::from(FADE.0) / u64::from(FADE.1);
        let boost = if self.previous == Micros::ZERO {
            // The variation is not known yet, so the algorithm is as careful as it can be.
            MAX_BOOST
        } else {
            (2 * rise).max(faded).min(MAX_BOOST)
        };
        self.boost_permille = boost as u16;
        let peak = sample.max(previous).scale(1000 + boost as u32, 1000);
        let least = sample.saturating_add(cx.settings.granularity.scale(2, 1));
        self.rto = self.rto.scale(FADE.0, FADE.1).max(peak).max(least);
        self.previous = sample;
    }
}

impl core::default::Default for PeakHopper {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionControl for PeakHopper {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        admit_non_at_interval(message, load, self.original_timeout(cx), cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        if transmission.ordinal == 0 {
            self.original_timeout(cx)
        } else {
            Karn::backed_off(slot, self.rto, cx)
        }
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        if let Some(round_trip) = self.karn.round_trip(sample) {
            self.update(round_trip, cx);
        }
    }

    fn on_close(
        &mut self,
        slot: &Slot,
        _outcome: Outcome,
        retransmissions: u8,
        _cx: &mut Context<'_>,
    ) {
        self.karn.close(slot, retransmissions);
    }

    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        let estimate =
            if self.rto > Micros::ZERO { self.rto } else { cx.settings.initial_rto(cx.params) };
        self.karn.timeout(estimate, cx)
    }

    fn metrics(&self) -> Metrics {
        let some = |span: Micros| (span > Micros::ZERO).then_some(span);
        Metrics {
            srtt: some(self.previous),
            rttvar: None,
            rto: some(self.rto),
            second: self.karn.kept(),
            interval: None,
            state: self.karn.state(),
        }
    }
}
