//! `ecoap` and `ecoap-rpl`: the two controls of Pisa's eCoAP (2018), which draw every timeout anew.

use super::default::{admit_non_at_probing_rate, initial_timeout};
use super::{
    Admission, CongestionControl, Context, Load, Metrics, Outcome, OutgoingMessage, Sample, Slot,
    Transmission, admit_non_at_interval,
};
use crate::time::Micros;

/// Timeouts from an average h of round trips: try i (from 1) waits for a time drawn from `[i h, 2 i h]`. When the first
/// exchange ends, h is a first timeout of RFC 7252; each round trip moves it by a tenth of the difference, and an
/// exchange without an answer does not. Until the first exchange ends, the series is that of RFC 7252.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ecoap {
    /// The average; zero until the first exchange ends.
    average: Micros,
}

impl Ecoap {
    /// Creates a control without a sample.
    #[must_use]
    pub const fn new() -> Self {
        Self { average: Micros::ZERO }
    }

    fn begun(self, cx: &mut Context<'_>) -> Micros {
        if self.average == Micros::ZERO { initial_timeout(cx) } else { self.average }
    }
}

impl core::default::Default for Ecoap {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionControl for Ecoap {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        admit_non_at_interval(message, load, self.original_timeout(cx), cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        let try_number = u32::from(transmission.ordinal) + 1;
        if transmission.ordinal == 0 {
            // A sample from an overlapping exchange does not change a series that has begun.
            slot.base = self.average;
        }
        if slot.base == Micros::ZERO {
            return match transmission.ordinal {
                0 => initial_timeout(cx),
                _ => cx.bounded(slot.armed.scale(2, 1), Micros::ZERO),
            };
        }
        let low = slot.base.scale(try_number, 1);
        let timeout = cx.uniform(low, low.scale(2, 1));
        cx.bounded(timeout, slot.base)
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        let kept = self.begun(cx).scale(9, 10);
        self.average = kept.saturating_add(sample.since_first.scale(1, 10)).max(Micros::new(1));
    }

    fn on_close(
        &mut self,
        _slot: &Slot,
        outcome: Outcome,
        _retransmissions: u8,
        cx: &mut Context<'_>,
    ) {
        if outcome == Outcome::GaveUp {
            self.average = self.begun(cx);
        }
    }

    /// The longest one: eCoAP draws a first timeout between once and twice the average, and has no RTO.
    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        match self.average {
            Micros::ZERO => cx.settings.ack_timeout(cx.params),
            average => average.scale(2, 1),
        }
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            srtt: (self.average > Micros::ZERO).then_some(self.average),
            ..Metrics::default()
        }
    }
}

/// Timeouts from a range that a controller chooses: try i (from 1) waits for a time drawn from
/// `[min f^(i-1), max f^(i-1)]`. It learns nothing by itself.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct EcoapRpl;

impl CongestionControl for EcoapRpl {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        admit_non_at_probing_rate(message, load, cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        _slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        let settings = cx.settings.ecoap;
        let growth = settings.growth_percent.into();
        let low = (0..transmission.ordinal).fold(settings.min, |low, _| low.scale(growth, 100));
        let least = settings.min.as_micros().max(1);
        let spread = settings.max.max(settings.min).as_micros() * 1000 / least;
        let high = low.scale(u32::try_from(spread).unwrap_or(u32::MAX), 1000);
        let timeout = cx.uniform(low, high);
        cx.bounded(timeout, Micros::ZERO)
    }

    fn on_feedback(&mut self, _slot: &Slot, _sample: &Sample, _cx: &mut Context<'_>) {}
}
