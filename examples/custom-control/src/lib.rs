//! A congestion control outside of Ebbtide's crates.
//!
//! [`Doubling`] waits a multiple of the last round trip and doubles the wait with each
//! retransmission. [`Doublings`] is its factory: it gives the control a name and a setting,
//! `doubling:factor=4`, and is accepted by a [`Client`](ebbtide::Client), a
//! [`Server`](ebbtide::Server), and a [`Source`](ebbtide_sim::scenario::Source) of the simulator.

use ebbtide::congestion::Micros;
use ebbtide::congestion::{
    CongestionControl, Context, ControlFactory, Custom, DynControl, Metrics, Sample, SettingError,
    Slot, Transmission,
};
use std::fmt;

/// Waits `factor` times the last round trip, and twice as long after each retransmission.
#[derive(Debug)]
pub struct Doubling {
    factor: u32,
    round_trip: Option<Micros>,
}

impl CongestionControl for Doubling {
    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        _slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        let known = self.round_trip.map(|round_trip| round_trip.scale(self.factor, 1));
        let first = known.unwrap_or(cx.params.ack_timeout);
        // Spread over half of it, so that clients that began together do not stay synchronised.
        let spread = cx.uniform(first, first.scale(3, 2));
        spread.scale(1 << transmission.ordinal.min(10), 1)
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, _cx: &mut Context<'_>) {
        // Without retransmissions it is certain which transmission was answered (Karn's
        // algorithm).
        if sample.retransmissions() == 0 {
            self.round_trip = Some(sample.since_first);
        }
    }

    fn metrics(&self) -> Metrics {
        Metrics::default().with_srtt(self.round_trip)
    }
}

/// Builds controls that wait `factor` times the last round trip.
#[derive(Copy, Clone, Debug)]
pub struct Doublings {
    /// From 2 to 16.
    pub factor: u32,
}

impl Default for Doublings {
    fn default() -> Self {
        Self { factor: 3 }
    }
}

impl ControlFactory for Doublings {
    fn name(&self) -> &'static str {
        "doubling"
    }

    fn build(&self) -> Box<dyn DynControl> {
        Box::new(Doubling { factor: self.factor, round_trip: None })
    }

    fn keys(&self) -> &'static [&'static str] {
        &["factor", "nstart"]
    }

    fn with(&self, key: &str, value: &str) -> Result<Custom, SettingError> {
        if key != "factor" {
            return Err(SettingError::Key);
        }
        let factor = value.parse().ok().filter(|factor| (2..=16).contains(factor));
        let expected = "a whole number from 2 to 16";
        Ok(Custom::new(Self { factor: factor.ok_or(SettingError::Value { expected })? }))
    }

    fn write_settings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.factor {
            3 => Ok(()),
            factor => write!(f, ":factor={factor}"),
        }
    }
}
