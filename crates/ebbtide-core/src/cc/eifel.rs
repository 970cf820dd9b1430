//! `eifel`: the Eifel retransmission timer (Ludwig and Sklower, CCR 30(3), 2000) over CoAP, as a program for Contiki
//! has it.

use super::{
    Admission, CongestionControl, Context, Load, Metrics, Outcome, OutgoingMessage, Sample, Slot,
    Transmission, admit_non_at_interval,
};
use crate::time::Micros;

/// 1/GAIN, which is also the weight of the variation in the timeout: the paper's for a sender with
/// one message in flight.
const GAIN: u32 = 3;

/// A timer whose variation only rises with the round trip, and stays where the round trip falls: it
/// is not stretched by a path that becomes faster, and falls slowly.
///
/// Samples come only from exchanges without a retransmission. A timeout that has backed off stays
/// for later exchanges until there is a sample (Karn's algorithm). The first timeout is drawn from
/// `[RTO, 1.5 RTO]` and doubled.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Eifel {
    srtt: Micros,
    rttvar: Micros,
    /// Zero before the first sample and the first backoff.
    rto: Micros,
}

impl Eifel {
    /// Creates a control without a sample.
    #[must_use]
    pub const fn new() -> Self {
        Self { srtt: Micros::ZERO, rttvar: Micros::ZERO, rto: Micros::ZERO }
    }

    /// The program's estimator starts from zero, so a first round trip R gives a timeout of 4/3 R.
    fn update(&mut self, sample: Micros, granularity: Micros) {
        let sample = sample.max(Micros::new(1));
        let fall = self.srtt.saturating_sub(sample);
        let rise = sample.saturating_sub(self.srtt);
        if fall == Micros::ZERO {
            // GAIN where the variation rises, its square where it falls.
            let more = rise.saturating_sub(self.rttvar).scale(1, GAIN);
            let less = self.rttvar.saturating_sub(rise).scale(1, GAIN * GAIN);
            self.rttvar = self.rttvar.saturating_add(more).saturating_sub(less);
        }
        let up = self.srtt.saturating_add(rise.scale(1, GAIN));
        self.srtt = up.saturating_sub(fall.scale(1, GAIN));
        let margin = self.srtt.saturating_add(self.rttvar.scale(GAIN, 1));
        self.rto = margin.max(sample.saturating_add(granularity.scale(2, 1)));
    }
}

impl CongestionControl for Eifel {
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
            let rto = self.original_timeout(cx);
            slot.base = cx.uniform(rto, rto.scale(3, 2));
            slot.base
        } else {
            cx.bounded(slot.armed.scale(2, 1), slot.base)
        }
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        if sample.retransmissions() == 0 {
            self.update(sample.since_first, cx.settings.granularity);
        }
    }

    fn on_close(
        &mut self,
        slot: &Slot,
        _outcome: Outcome,
        retransmissions: u8,
        _cx: &mut Context<'_>,
    ) {
        if retransmissions > 0 {
            self.rto = slot.armed;
        }
    }

    /// The RTO, which is the shortest one: a first timeout is drawn between it and one and a half times of it.
    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        if self.rto > Micros::ZERO { self.rto } else { cx.settings.initial_rto(cx.params) }
    }

    fn metrics(&self) -> Metrics {
        let measured = self.srtt > Micros::ZERO;
        Metrics {
            srtt: measured.then_some(self.srtt),
            rttvar: measured.then_some(self.rttvar),
            rto: (self.rto > Micros::ZERO).then_some(self.rto),
            ..Metrics::default()
        }
    }
}
