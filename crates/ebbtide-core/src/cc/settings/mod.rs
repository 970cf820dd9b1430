//! The settings of the congestion controls.

mod cocoa;
mod ebb;
mod ecoap;
mod rcoap;

pub use cocoa::{CocoaCode, CocoaSettings};
pub use ebb::EbbSettings;
pub use ecoap::EcoapSettings;
pub use rcoap::RcoapSettings;

use crate::params::Parameters;
use crate::time::Micros;

/// The settings of a control: those that several controls share, and those of each family.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The maximum of backed-off timeouts; `None` for no maximum. It does not hold below what the path
    /// needs: see [`Context::bounded`](super::Context::bounded).
    pub bound: Option<Micros>,
    /// The minimum RTO of `linux-rto`, `peak-hopper` and `rcoap` (RFC 6298 section 2.4: 1 s).
    pub floor: Micros,
    /// The RTO before the first sample; `None` for ACK_TIMEOUT, of which `ebb` takes a fifth.
    pub initial_rto: Option<Micros>,
    /// ACK_TIMEOUT for this control; `None` for the endpoint's value.
    pub ack_timeout: Option<Micros>,
    /// NSTART for this control; `None` for the endpoint's value.
    pub nstart: Option<u16>,
    /// G, the clock's granularity: the minimum margin above a smoothed round trip (RFC 6298).
    pub granularity: Micros,
    /// Whether estimates age (Thesis19 turns it off).
    pub ageing: bool,
    /// The limit on messages in flight.
    pub in_flight: InFlight,
    /// The settings of the CoCoA family.
    pub cocoa: CocoaSettings,
    /// The settings of `ebb`.
    pub ebb: EbbSettings,
    /// The settings of `ecoap-rpl`.
    pub ecoap: EcoapSettings,
    /// The settings of `rcoap`.
    pub rcoap: RcoapSettings,
}

/// The limit on unacknowledged Confirmable messages of a scope.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// NSTART (RFC 7252 section 4.7).
    Nstart,
    /// The number of messages that fill the path, R x RTT rounded up, as a pacing control
    /// estimates it; at most NSTART if the control has a value of its own, and at most
    /// [`InFlight::MAX`].
    Rate,
    /// A fixed number of messages.
    Messages(u16),
}

impl InFlight {
    /// The maximum number of messages in flight at any rate.
    pub const MAX: u16 = 1024;
}

impl Settings {
    /// The settings of a control that changes none.
    pub const DEFAULT: Self = Self {
        bound: Some(Micros::from_millis(60_000)),
        floor: Micros::from_millis(1_000),
        initial_rto: None,
        ack_timeout: None,
        nstart: None,
        granularity: Micros::from_millis(1),
        ageing: true,
        in_flight: InFlight::Nstart,
        cocoa: CocoaSettings::DEFAULT,
        ebb: EbbSettings::DEFAULT,
        ecoap: EcoapSettings::DEFAULT,
        rcoap: RcoapSettings::DEFAULT,
    };

    /// The same without a bound.
    pub(super) const UNBOUNDED: Self = Self { bound: None, ..Self::DEFAULT };

    /// The same with this bound in milliseconds.
    pub(super) const fn bounded(millis: u32) -> Self {
        Self { bound: Some(Micros::from_millis(millis)), ..Self::DEFAULT }
    }

    /// The RTO before the first sample.
    #[inline]
    #[must_use]
    pub fn initial_rto(&self, params: &Parameters) -> Micros {
        self.initial_rto.unwrap_or(params.ack_timeout)
    }

    /// ACK_TIMEOUT as it applies to this control.
    #[inline]
    #[must_use]
    pub fn ack_timeout(&self, params: &Parameters) -> Micros {
        self.ack_timeout.unwrap_or(params.ack_timeout)
    }

    /// The first timeout as it is set, for this control or for the endpoint: what the user says of the
    /// length of the path.
    #[inline]
    #[must_use]
    pub fn first_timeout(&self, params: &Parameters) -> Micros {
        // None is shorter than any span.
        self.initial_rto.max(self.ack_timeout).unwrap_or(params.ack_timeout)
    }

    /// NSTART as it applies to this control, at least 1.
    #[inline]
    #[must_use]
    pub fn nstart(&self, params: &Parameters) -> u16 {
        self.nstart.unwrap_or(params.nstart).max(1)
    }

    /// The maximum number of open Confirmable exchanges, at least 1: NSTART, or the limit on
    /// messages in flight of a control that keeps a rate (RFC 7252 section 4.7 allows a larger
    /// NSTART to an endpoint with a congestion control of its own).
    #[inline]
    #[must_use]
    pub fn places(&self, params: &Parameters) -> u16 {
        match self.in_flight {
            InFlight::Nstart => self.nstart(params),
            InFlight::Rate => self.nstart.unwrap_or(InFlight::MAX).clamp(1, InFlight::MAX),
            InFlight::Messages(most) => most.clamp(1, InFlight::MAX),
        }
    }
}
