//! `peak-hopper`, the Peak-Hopper RTO over UDP (Ekstrom and Ludwig, "The Peak-Hopper: A New
//! End-to-End Retransmission Timer for Reliable Unicast Transport", INFOCOM 2004).

use super::{Metrics, RtoEstimate, Settings, TcpTimer};
use crate::time::Micros;

/// `peak-hopper`.
pub type PeakHopper = TcpTimer<PeakHopperEstimate>;

/// A timeout that hops up when the round trip rises and decays slowly after a peak.
///
/// Two histories compete, and the larger one is used. The long history is the previous RTO, faded
/// by D = 1 - 1/F with F = 24 per sample. The short history is the larger of the last two round
/// trips times 1 + B; B follows twice the relative rise of the round trip, is at most 1, and fades
/// by D as well. The RTO is at least the last round trip plus two clock ticks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PeakHopperEstimate {
    rto: Micros,
    previous: Micros,
    /// B in thousandths.
    boost_permille: u16,
}

/// The fading factor D as a fraction.
const FADE: (u32, u32) = (23, 24);
/// The largest B, in thousandths.
const MAX_BOOST: u64 = 1000;

impl RtoEstimate for PeakHopperEstimate {
    fn rto(&self, _settings: &Settings) -> Option<Micros> {
        measured(self.rto)
    }

    fn update(&mut self, round_trip: Micros, settings: &Settings) {
        let sample = round_trip.max(Micros::new(1));
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
        let least = sample.saturating_add(settings.granularity.scale(2, 1));
        self.rto = self.rto.scale(FADE.0, FADE.1).max(peak).max(least);
        self.previous = sample;
    }

    fn metrics(&self) -> Metrics {
        Metrics { srtt: measured(self.previous), rto: measured(self.rto), ..Metrics::default() }
    }
}

/// A quantity that is zero before the first round trip.
fn measured(span: Micros) -> Option<Micros> {
    (span > Micros::ZERO).then_some(span)
}
