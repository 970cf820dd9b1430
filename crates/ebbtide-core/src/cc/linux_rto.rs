//! `linux-rto`: TCP's retransmission timer over UDP, with Linux's rules.

use super::{Metrics, RtoEstimate, Settings, TcpTimer};
use crate::time::Micros;

/// `linux-rto`. The initial RTO is 2 s, the minimum is `floor` (1 s as in RFC 6298 section 2.4; Linux uses
/// 200 ms), the maximum is `bound` (120 s).
pub type LinuxRto = TcpTimer<LinuxEstimate>;

/// RFC 6298's estimate with Linux's treatment of the variation.
///
/// Linux's rules (`tcp_rtt_estimator`): the variation is the largest mean deviation within a round
/// trip and falls by a quarter per round trip. A falling round trip counts only an eighth towards
/// it, so that a path that becomes faster does not look unstable. Each CoAP exchange is one round
/// trip.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LinuxEstimate {
    srtt: Micros,
    /// The mean deviation (Linux's `mdev`, scaled by four).
    mdev: Micros,
    /// The variation in use (Linux's `rttvar`), already multiplied by four.
    rttvar: Micros,
}

impl RtoEstimate for LinuxEstimate {
    fn rto(&self, _settings: &Settings) -> Option<Micros> {
        (self.srtt > Micros::ZERO).then(|| self.srtt.saturating_add(self.rttvar))
    }

    fn update(&mut self, round_trip: Micros, _settings: &Settings) {
        /// The minimum that Linux adds to the smoothed round trip (`tcp_rto_min`).
        const MIN_VARIATION: Micros = Micros::from_millis(200);
        let sample = round_trip.max(Micros::new(1));
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

    fn metrics(&self) -> Metrics {
        let measured = self.srtt > Micros::ZERO;
        Metrics {
            srtt: measured.then_some(self.srtt),
            rttvar: measured.then_some(self.rttvar),
            rto: measured.then(|| self.srtt.saturating_add(self.rttvar)),
            ..Metrics::default()
        }
    }
}

/// At most 2^37, so nothing is lost.
const fn signed(span: Micros) -> i64 {
    span.as_micros() as i64
}

fn from_signed(micros: i64) -> Micros {
    Micros::from_u64(u64::try_from(micros).unwrap_or(0)).max(Micros::new(1))
}
