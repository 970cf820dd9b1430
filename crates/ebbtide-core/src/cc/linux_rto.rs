//! `linux-rto`: TCP's retransmission timer over UDP, with Linux's rules.

use super::karn::Karn;
use super::{
    Admission, CongestionControl, Context, Load, Metrics, Outcome, OutgoingMessage, Sample, Slot,
    Transmission, admit_non_at_interval,
};
use crate::time::Micros;

/// RFC 6298 with Karn's algorithm and Linux's treatment of the variation.
///
/// Samples come only from exchanges without a retransmission. The timeout in force at the end of
/// an exchange with a retransmission is kept until the next sample arrives (RFC 6298 section 5.7
/// and Karn's algorithm). The initial RTO is 2 s, the minimum is `floor` (1 s as in RFC 6298
/// section 2.4; Linux uses 200 ms), the maximum is `bound` (120 s), below which there is no dither.
///
/// Linux's rules (`tcp_rtt_estimator`): the variation is the largest mean deviation within a round
/// trip and falls by a quarter per round trip. A falling round trip counts only an eighth towards
/// it, so that a path that becomes faster does not look unstable. Each CoAP exchange is one round
/// trip.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LinuxRto {
    srtt: Micros,
    /// The mean deviation (Linux's `mdev`, scaled by four).
    mdev: Micros,
    /// The variation in use (Linux's `rttvar`), already multiplied by four.
    rttvar: Micros,
    karn: Karn,
}

impl LinuxRto {
    /// Creates a control without a sample.
    #[must_use]
    pub const fn new() -> Self {
        Self { srtt: Micros::ZERO, mdev: Micros::ZERO, rttvar: Micros::ZERO, karn: Karn::new() }
    }

    fn estimate(&self, cx: &Context<'_>) -> Micros {
        if self.srtt > Micros::ZERO {
            self.srtt.saturating_add(self.rttvar)
        } else {
            cx.settings.initial_rto(cx.params)
        }
    }

    fn update(&mut self, sample: Micros) {
        /// The minimum that Linux adds to the smoothed round trip (`tcp_rto_min`).
        const MIN_VARIATION: Micros = Micros::from_millis(200);
        let sample = sample.max(Micros::new(1));
        if self.srtt == Micros::ZERO {
            self.srtt = sample;
            self.mdev = sample.scale(2, 1);
            self.rttvar = self.mdev.max(MIN_VARIATION);
            return;
        }
        let (old, new) = (signed(self.srtt), signed(sample));
        let error = new - old;
        // `mdev` is four times the deviation, so that mdev += |error| - mdev/4 is a gain of 1/4.
        let mut change = error.abs() - signed(self.mdev) / 4;
        if error < 0 && change > 0 {
            change /= 8;
        }
        self.srtt = from_signed(old + error / 8);
        self.mdev = from_signed(signed(self.mdev) + change);
        let peak = self.mdev.max(MIN_VARIATION);
        self.rttvar = if peak >= self.rttvar {
            peak
        } else {
            self.rttvar.saturating_sub(self.rttvar.saturating_sub(peak).scale(1, 4))
        };
    }
}

/// At most 2^37, so nothing is lost.
const fn signed(span: Micros) -> i64 {
    span.as_micros() as i64
}

fn from_signed(micros: i64) -> Micros {
    Micros::from_u64(u64::try_from(micros).unwrap_or(0)).max(Micros::new(1))
}

impl CongestionControl for LinuxRto {
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
            Karn::backed_off(slot, self.estimate(cx), cx)
        }
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, _cx: &mut Context<'_>) {
        if let Some(round_trip) = self.karn.round_trip(sample) {
            self.update(round_trip);
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
        self.karn.timeout(self.estimate(cx), cx)
    }

    fn metrics(&self) -> Metrics {
        let measured = self.srtt > Micros::ZERO;
        Metrics {
            srtt: measured.then_some(self.srtt),
            rttvar: measured.then_some(self.rttvar),
            rto: measured.then(|| self.srtt.saturating_add(self.rttvar)),
            second: self.karn.kept(),
            interval: None,
            state: self.karn.state(),
        }
    }
}
