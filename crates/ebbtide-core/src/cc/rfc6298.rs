//! `rfc6298`: TCP's retransmission timer as its RFC has it, on CoAP exchanges.

use super::{Estimator, Gains, Metrics, RtoEstimate, Settings, TcpTimer};
use crate::time::Micros;

/// K, the weight of the variation (RFC 6298 section 2.2).
const K: u32 = 4;

/// `rfc6298`. Samples come only from exchanges without a retransmission, and the doubled timeout stays until
/// there is one (RFC 6298 section 3).
pub type Rfc6298 = TcpTimer<Rfc6298Estimate>;

/// SRTT + max(G, 4 RTTVAR), at least 1 s and at first 1 s (RFC 6298 sections 2.1 to 2.4), doubled with
/// each expiry (section 5.5). There is no dither below the maximum of 60 s (section 2.5), at which timeouts
/// are drawn from 54 to 60 s ([`Context::bounded`](super::Context::bounded)).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Rfc6298Estimate(Estimator);

impl RtoEstimate for Rfc6298Estimate {
    fn rto(&self, settings: &Settings) -> Option<Micros> {
        self.0.rto(K, settings.granularity)
    }

    fn update(&mut self, round_trip: Micros, _settings: &Settings) {
        self.0.update(round_trip, Gains::RFC6298, 2);
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            srtt: self.0.srtt(),
            rttvar: self.0.rttvar(),
            rto: self.0.rto(K, Micros::ZERO),
            ..Metrics::default()
        }
    }
}
